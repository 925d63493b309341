# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drain_feasibility
short_description: Tell whether nodes can be drained, and how
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Plans how the nodes are emptied together. Each VM gets a target and a turn such that its live migration, pinned to
    the target, is legal for kube-scheduler 1.36 at that moment, with the VM's own pod and those of the others where
    they are then.
  - Says of each VM that cannot be migrated why, in the words of kube-scheduler or of KubeVirt's own rules, and what its
    policy makes of it.
  - Says how long the migrations take under KubeVirt's caps and its MigrationPolicies, and what would become of each VM
    without this plan, by an ordinary drain, an eviction or the loss of its node.
  - Says of ordinary pods which stay, which are evicted, and where kube-scheduler will put their replacements.
  - Nothing is asked of the cluster or changed. What is carried out is the plan of M(virtops.kubevirt.maintenance_plan).
    The search for a plan is thorough but bounded, so one may rarely be missed in a cluster that is nearly full.
  - It runs on the controller.
requirements: [numpy >= 1.26, "jmespath >= 1.0.0, for policies with expressions"]
options:
  _input:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - All lists of a snapshot may matter. At least C(nodes), C(pods) and C(vmis) are needed for a meaningful answer.
      - Prefer the path. Ansible is slow with variables of thousands of objects.
    type: raw
    required: true
  nodes:
    description:
      - Names of the nodes to drain together, or the name of one.
      - They are taken as cordoned, whether they are or not.
      - Of a list of such lists each is planned as if it were the only one, which reads the snapshot only once.
    type: list
    elements: str
    required: true
extends_documentation_fragment:
  - virtops.kubevirt._drain
  - virtops.kubevirt._policies
  - virtops.kubevirt._profile
positional: _input, nodes
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - plugin: virtops.kubevirt.drainable
    plugin_type: test
  - plugin: virtops.kubevirt.feasible_nodes
    plugin_type: filter
notes:
  - Where the scheduler chooses, for evicted pods and restarted VMs, the answer foretells its choice. Of nodes with
    equal scores it takes any, so RV(_value.pods[].choices) names them all.
  - Running pods are not preempted in the answer. In the cluster, one with a priority may push others out.
  - Migrations that are pinned get past topology spread constraints of their own VM, for which KubeVirt's own migrations
    would wait. The plan prefers targets on which the constraints hold in the end, and says in RV(_value.moves[].why)
    where there is none.
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Refuse to go on unless both nodes can be drained together
  ansible.builtin.assert:
    that: plan.feasible
    fail_msg: "{{ plan.message }}"
  vars:
    plan: "{{ cluster | virtops.kubevirt.drain_feasibility(['worker-1', 'worker-2'], policies=policies) }}"
    policies:
      - selector:
          app: database
        policy: stop
      - expression: "spec.domain.cpu.dedicatedCpuPlacement"
        policy: restart

- name: Name the VMs that would be shut down by an ordinary drain
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }}: {{ item.drain.message }}"
  loop: "{{ plan.fates | selectattr('drain.outcome', 'in', ['restart', 'stay_down']) }}"
  vars:
    plan: "{{ cluster | virtops.kubevirt.drain_feasibility('worker-1') }}"

- name: Say where each VM will go
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }} goes to {{ item.target_node }} ({{ item.why }})"
  loop: "{{ plan.moves }}"
  vars:
    plan: "{{ cluster | virtops.kubevirt.drain_feasibility('worker-1', avoid=['worker-2']) }}"
"""

RETURN = r"""
_value:
  description: The plan. With a list of lists in O(nodes), a list of a plan for each.
  type: raw
  contains:
    feasible:
      description: Whether all VMs and pods leave, or follow their policy.
      type: bool
      returned: always
    passing:
      description: Whether it is infeasible now, and all that stands against it goes away by itself.
      type: bool
      returned: always
    message:
      description: The plan in a sentence or two.
      type: str
      returned: always
      sample: "worker-1 can be drained in 2 waves: 3 VMs migrate, 1 pod is evicted."
    nodes:
      description: Names of the nodes that are drained.
      type: list
      elements: str
      returned: always
    moves:
      description:
        - Live migrations in the order of their waves.
        - What is in a wave may start together, in any order, once everything in earlier waves has ended. Waves respect
          KubeVirt's caps on parallel migrations.
      type: list
      elements: dict
      returned: always
      contains:
        namespace:
          description: Of the VirtualMachineInstance.
          type: str
          returned: always
        name:
          description: Of the VirtualMachineInstance.
          type: str
          returned: always
        source_node:
          description: The node it leaves.
          type: str
          returned: always
        target_node:
          description: The node it goes to.
          type: str
          returned: always
        node_selector:
          description: The C(addedNodeSelector) that pins its migration.
          type: dict
          returned: always
          sample:
            kubernetes.io/hostname: worker-3
        wave:
          description: Counts from 1, with VMs and pods together.
          type: int
          returned: always
        score:
          description: Of the target among the nodes that fit.
          type: int
          returned: always
        why:
          description: Why this node, a clause.
          type: str
          returned: always
          sample: of 4 nodes that fit it is the best
        unevaluated:
          description: What its pod asks for and kube-scheduler looks at, but this plan leaves out.
          type: list
          elements: str
          returned: always
        migration_policy:
          description: Name of the MigrationPolicy that changes how it is migrated. Empty for none.
          type: str
          returned: always
        seconds:
          description: How long its migration takes if the guest is idle, else longer. See RV(_value.seconds).
          type: int
          returned: always
        ending:
          description:
            - How its migration ends if the guest is idle. It is V(in_time), or what KubeVirt does after the completion
              timeout, which is V(post_copy), V(paused) for the rest of the copying, or V(aborted).
            - With V(aborted) raise the bandwidth or the timeout before the drain.
          type: str
          returned: always
    stuck:
      description: VMs that cannot be migrated once all moves are done.
      type: list
      elements: dict
      returned: always
      contains:
        namespace:
          description: Of the VirtualMachineInstance.
          type: str
          returned: always
        name:
          description: Of the VirtualMachineInstance.
          type: str
          returned: always
        node:
          description: The node it runs on.
          type: str
          returned: always
        policy:
          description: What the policies say, V(fail), V(restart) or V(stop).
          type: str
          returned: always
        outcome:
          description:
            - What becomes of it, V(stays), V(waits), V(restarts) or V(stops).
            - With V(waits) all RV(_value.stuck[].blockers) go away by themselves, such as a backup that runs. The drain
              is infeasible until then, and no policy ends a VM that has only to be waited for.
          type: str
          returned: always
        wave:
          description: When it is shut down. V(null) if it stays or waits.
          type: int
          returned: always
        target_node:
          description: Where it will start again, the first of RV(_value.stuck[].choices). V(null) if it will not.
          type: str
          returned: always
        choices:
          description: Nodes that are equally good for kube-scheduler.
          type: list
          elements: str
          returned: always
        message:
          description:
            - What kube-scheduler would say to its migration, which is not pinned to a node unless O(targets) names one.
              For one that stops while its owner starts another one, what it would say to that.
            - Empty with RV(_value.stuck[].blockers), as there would be no pod to place.
          type: str
          returned: always
          sample: "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient memory."
        reasons:
          description: The same for each node.
          type: dict
          returned: always
        blockers:
          description: What keeps KubeVirt from migrating it before kube-scheduler is asked.
          type: list
          elements: dict
          returned: always
          contains:
            id:
              description: Stable name of the kind of blocker.
              type: str
              returned: always
            effect:
              description: What KubeVirt does with such a migration, V(refused) or V(held).
              type: str
              returned: always
            object:
              description: What it is about.
              type: str
              returned: always
            message:
              description: A sentence.
              type: str
              returned: always
            remedy:
              description: What to do, a sentence.
              type: str
              returned: always
            passing:
              description: Whether it goes away by itself.
              type: bool
              returned: always
        why:
          description: What its policy makes of it, a sentence.
          type: str
          returned: always
    pods:
      description: The other pods of the nodes.
      type: list
      elements: dict
      returned: always
      contains:
        namespace:
          description: Of the pod.
          type: str
          returned: always
        name:
          description: Of the pod.
          type: str
          returned: always
        node:
          description: The node it runs on.
          type: str
          returned: always
        outcome:
          description:
            - V(stays) if a drain leaves it alone.
            - V(moves) if its replacement lands on another node, V(waits) if that fits none, V(ends) if there is none.
            - V(refused) if it can never be evicted, V(returns) if its replacement would come back to a drained node.
              With one of these the drain is infeasible.
          type: str
          returned: always
        wave:
          description: When it is evicted. V(null) if it is not.
          type: int
          returned: always
        target_node:
          description: Where its replacement will land, the first of RV(_value.pods[].choices). V(null) if nowhere.
          type: str
          returned: always
        choices:
          description: Nodes that are equally good for kube-scheduler.
          type: list
          elements: str
          returned: always
        message:
          description: What kube-scheduler would say to a replacement that waits.
          type: str
          returned: always
        needs:
          description: What has to be allowed for its eviction, V(force) or V(delete_emptydir_data).
          type: list
          elements: str
          returned: always
        budgets:
          description: Names of the PodDisruptionBudgets that do not allow its eviction now.
          type: list
          elements: str
          returned: always
        why:
          description: What happens to it, a sentence or two.
          type: str
          returned: always
    seconds:
      description:
        - How long the migrations of RV(_value.moves) take, wave after wave and beside those of RV(_value.queue), which
          are taken to begin now. V(null) if KubeVirt's caps let one never start.
        - What no API tells is assumed, idle guests, nodes that are linked by 10 Gbit/s, which the migrations that may
          leave one at a time share, and 10 seconds for each beside the copying. The time until pods have ended and
          guests have shut down is not in it.
      type: int
      returned: always
      sample: 54
    queue:
      description:
        - VMIs whose migrations are under way in the cluster already, by V(namespace/name). Those in V(running) hold a
          place under KubeVirt's caps, those in V(waiting) wait for one, the one that KubeVirt prefers first.
      type: dict
      returned: always
    fates:
      description:
        - What becomes of each VM without this plan, of which V(namespace), V(name) and V(node) are told. V(drain) is
          when all pods of its node are evicted and none may come back, V(eviction) when its pod alone is evicted while
          the node stays open, and V(node_failure) when the node is lost. The sample shows the first.
        - The V(outcome) is V(migrate), V(restart), V(stay_down), V(block) if it stays and who waits for that waits in
          vain, or V(unknown) if its owner is not in the snapshot. V(where) is V(elsewhere) or V(anywhere), and empty if
          the VM runs nowhere new. V(awaits) is what has to come first, V(fencing) of the lost node or V(external) for
          some other controller.
      type: list
      elements: dict
      returned: always
      sample:
        - namespace: shop
          name: cache
          node: worker-1
          drain:
            event: drain
            outcome: stay_down
            where: ""
            awaits: ""
            message: >-
              The eviction shuts the guest down, as its evictionStrategy is None, and nothing that owns it starts it
              again.
            remedy: Set its evictionStrategy to LiveMigrate, or migrate it before.
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.plugin_utils._drain_plan import drain_plans, in_batches


def drain_feasibility(
    source: object,
    nodes: object,
    *,
    policies: object = (),
    avoid: object = (),
    targets: object = None,
    profile: object = "LowNodeUtilization",
    delete_emptydir_data: object = None,
    force: object = None,
) -> Any:
    """The plan, or a list of plans; see RETURN. Raises AnsibleFilterError."""
    batches, several = in_batches(nodes)
    given = {"delete_emptydir_data": delete_emptydir_data, "force": force}
    permissions = {need: allowed for need, allowed in given.items() if allowed is not None}
    plans = drain_plans(source, batches, policies, avoid, {} if targets is None else targets, profile, permissions)
    found = [plan.to_json() for plan in plans]
    return found if several else found[0]


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"drain_feasibility": drain_feasibility}
