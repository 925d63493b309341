#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Empty a node without stopping virtual machines
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Virtual machines leave by live migrations pinned to nodes, to those of the O(plan), or to where kube-scheduler's
    rules allow it. Those that cannot be migrated follow O(policies).
  - Other pods leave by the eviction API, all at once, and are tried again where a disruption budget forbids it for now.
    Pods of virtual machines are never evicted.
  - Pods of DaemonSets, mirror pods, and pods that have ended stay.
  - What is to leave is known before anything is done. If something cannot or may not leave, nothing is done.
  - Each leaves when its turn has come. Pods go before VMs that follow them, and a VM is restarted or stopped only when
    everything before it has left.
  - A task that was interrupted is continued by running it again. Its migrations in flight are watched, not repeated. In
    a O(run), what has failed and whose restart has begun is kept in the cluster, as long as the node stays cordoned.
options:
  name:
    description: Name of the node.
    type: str
    required: true
  owner:
    description: Name of the maintenance, which has the node by M(virtops.kubevirt.node_maintenance).
    type: str
    required: true
  state:
    description:
      - V(drained) empties the node.
      - V(verified) changes nothing, and fails unless the node is cordoned by O(owner) and empty. It is the last look
        before the maintenance itself.
      - V(restored) starts the virtual machines again that were stopped for this node and owner, when the node is back.
        One that has lost its mark since, as by C(kubectl replace), is not started, as nothing tells whether it is to
        run. If it does not, the task fails and names it.
        Replica sets start theirs by themselves, and are waited for. A VM that fails before it runs is started again,
        after ever longer pauses. Within a run a VM waits for those to have a node that the plan starts there first,
        unless something comes in their way, and 30 seconds at most.
    type: str
    choices: [drained, verified, restored]
    default: drained
  plan:
    description:
      - The plan that is carried out, by the path of its file, as what M(virtops.kubevirt.maintenance_plan) returned, or
        as its C(document).
        Of a plan of many nodes, what leaves O(name) is done, in the order of the plan. What it waits for on other nodes
        of the batch is done as well, unless their own tasks have done it. That nodes of earlier batches are back is not
        asked; role P(virtops.kubevirt.drain#role) sees to that.
      - A file that group or others may read or write is refused, and so is a plan of another run than O(run).
      - What is left of the plan is held against a fresh look at the whole cluster before anything is done.
      - Without it a plan is made for this node alone, by O(policies), O(avoid), O(delete_emptydir_data) and O(force). A
        plan brings its own. Such an option that is given beside it, also as it is by default, has to be as it has it.
    type: raw
  drift:
    description:
      - What to do when the plan is not right any more. With V(repair) it is changed as little as possible, and what
        changes is told. With V(fail) the task fails, and says what differs in the batch beside what its drains did.
    type: str
    choices: [repair, fail]
    default: repair
  snapshot:
    description:
      - A snapshot that was taken a moment ago, by its path or as what M(virtops.kubevirt.cluster_snapshot) returned, to
        hold O(plan) against. By default the cluster is read anew.
    type: raw
  terminate_grace_period:
    description: Seconds that evicted pods get to end, in place of their own.
    type: int
  cordon:
    description:
      - Whether to take the node as M(virtops.kubevirt.node_maintenance) does, once it is clear that it can be drained.
        With a O(plan) all nodes of its batch are taken, before anything leaves one of them.
      - Without it a node that O(owner) has not cordoned is not drained, as pods could come back.
    type: bool
    default: false
  reason:
    description: What is done to the node, for O(cordon).
    type: str
  foreign_cordon:
    description: Whether to go on, with V(keep), with a node that somebody else has cordoned.
    type: str
    choices: [fail, keep]
    default: fail
  evacuations:
    description:
      - What happens to VMs on the node that KubeVirt is evacuating already, as somebody has evicted their pods, like
        C(kubectl drain) or an autoscaler.
      - V(wait) lets KubeVirt migrate them. It picks their nodes itself, knows nothing of the plan, and goes on trying
        for as long as the VM is on its node, so where none is free the task waits until O(wait_timeout).
      - V(take_over) withdraws the evacuations and migrates the VMs by the plan, which may make room for them first. A
        migration of KubeVirt's that has found a node already is waited for.
    type: str
    choices: [wait, take_over]
    default: wait
  lease_duration:
    description: Seconds for which the node's Lease is held, for O(cordon), as in M(virtops.kubevirt.node_maintenance).
    type: int
    default: 3600
  lease_namespace:
    description: Namespace of the Leases of nodes.
    type: str
    default: medik8s-leases
  wait_timeout:
    description:
      - Seconds the whole task may take. After it the task fails and tells what is left and why.
      - Migrations in flight go on.
    type: int
    default: 1800
  unschedulable_timeout:
    description: Seconds after which KubeVirt gives up a migration for which there is no node.
    type: int
    default: 60
  retries:
    description: How often a VM whose migration failed is migrated again, to where it then fits.
    type: int
    default: 2
  max_failed_vms:
    description: >-
      When more VMs than that have failed for good, nothing more is begun. What is under way is followed to its end, and
      the task fails. By default all others leave nevertheless.
    type: int
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._document
  - virtops.kubevirt._policies.drain
  - virtops.kubevirt._drain.node
  - virtops.kubevirt._run
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Everything is decided, and each migration, eviction, restart and stop is put to the server without being done.
        The task fails if the server refuses one of them for good.
  diff_mode:
    support: full
    details:
      - Lists the VMs and pods on the node that are to leave, and those that are left.
  idempotent:
    support: full
requirements:
  - numpy >= 1.26
  - jmespath >= 1.0.0, for policies with expressions
notes:
  - To plan, the whole cluster is read. With a O(plan) that was made from the very O(snapshot) that is given, that is
    done only if something goes otherwise than planned.
  - The rights that are needed are those of role P(virtops.kubevirt.drain#role), see
    R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights). Role
    P(virtops.kubevirt.access#role) grants them. Outside of a run they are asked for before anything is done.
  - On the controller, as with C(delegate_to=localhost), and without C(become), progress is shown on stderr meanwhile,
    and each phase with C(-v). Nodes that are drained together share a line of totals. Elsewhere it works in silence.
  - The task cannot be run with C(async).
seealso:
  - module: virtops.kubevirt.node_maintenance
  - module: virtops.kubevirt.vmi_migration
  - module: kubernetes.core.k8s_drain
"""

EXAMPLES = r"""
- name: Take a node and empty it, with databases stopped that have nowhere to go
  virtops.kubevirt.node_drain:
    name: worker-2
    owner: kernel-update
    cordon: true
    delete_emptydir_data: true
    policies:
      - selector:
          app: database
        policy: stop

- name: Plan the drain of a node, with a VM that may go to one node only
  virtops.kubevirt.maintenance_plan:
    nodes: [worker-2]
    targets:
      shop/web-1: worker-3
    path: ~/plans/worker-2.json
  register: plan

- name: Take the node and empty it by that plan
  virtops.kubevirt.node_drain:
    name: worker-2
    owner: kernel-update
    plan: "{{ plan }}"
    cordon: true
    wait_timeout: 3600

- name: Give the node back
  virtops.kubevirt.node_maintenance:
    name: worker-2
    owner: kernel-update
    state: uncordoned

- name: Start what was stopped for it
  virtops.kubevirt.node_drain:
    name: worker-2
    owner: kernel-update
    state: restored
"""

RETURN = r"""
moves:
  description:
    - The VMs that were to be migrated, as M(virtops.kubevirt.vmi_migration) returns them. The outcome of one that ended
      before is V(ended). Those on other nodes that they had to wait for are among them, here and in RV(evicted) and
      RV(interrupted); C(for_node) is the node for whose maintenance it left.
  returned: O(state=drained), when something was tried
  type: list
  elements: dict
  sample:
    - {"namespace": "shop", "name": "web-1", "outcome": "migrated", "source_node": "worker-2",
       "target_node": "worker-3", "node": "worker-3", "seconds": 12, "for_node": "worker-2"}
evicted:
  description: The pods that were to be evicted.
  returned: O(state=drained), when something was tried
  type: list
  elements: dict
  contains:
    namespace: {description: Its namespace., returned: always, type: str, sample: shop}
    name: {description: Its name., returned: always, type: str, sample: cache-7c9}
    outcome:
      {description: "V(evicted), V(gone) by itself or by others, V(evicting), V(waiting), V(failed), or V(would_evict)
        in check mode.", returned: always, type: str, sample: evicted}
    expected_node: {description: "Where its replacement should run, empty if nowhere for now.",
                    returned: always, type: str, sample: worker-3}
    refusal: {description: "Why the server refused the last attempt, or would for now.", returned: always, type: str,
              sample: ""}
    seconds: {description: From the first attempt to its end., returned: always, type: int, sample: 3}
    for_node: {description: The node for whose maintenance it left., returned: always, type: str, sample: worker-2}
interrupted:
  description: The VMs that were to be restarted or stopped.
  returned: O(state=drained), when something was tried
  type: list
  elements: dict
  contains:
    namespace: {description: Namespace of the VMI., returned: always, type: str, sample: shop}
    name: {description: Name of the VMI., returned: always, type: str, sample: db-1}
    action: {description: V(restart) or V(stop)., returned: always, type: str, sample: stop}
    outcome:
      {description: "V(restarted), V(stopped), V(ended) without this task, V(already_gone) elsewhere, V(ending),
        V(waiting), V(failed), V(would_restart) or V(would_stop).", returned: always, type: str, sample: stopped}
    why: {description: Why it is not migrated., returned: always, type: str, sample: no node can take it}
    owner_kind: {description: Kind of what brings it back., returned: always, type: str, sample: VirtualMachine}
    owner: {description: Name of what brings it back., returned: always, type: str, sample: db-1}
    successor: {description: The VMI in its place., returned: always, type: str, sample: ""}
    target_node: {description: Where that runs or should run., returned: always, type: str, sample: ""}
    seconds: {description: How long it took., returned: always, type: int, sample: 4}
    failure_reason:
      {description: "Why it failed, what would refuse it for now, or who has ended it.",
        returned: always, type: str, sample: ""}
    for_node: {description: The node for whose maintenance it ended., returned: always, type: str, sample: worker-2}
left:
  description: What should have left and has not. In check mode it is empty, unless the server refuses something.
  returned: O(state=drained), when something was tried; O(state=verified), when the node was looked at
  type: list
  elements: dict
  contains:
    kind: {description: "V(vm), V(pod), or V(node) that has to stay.", returned: always, type: str, sample: pod}
    namespace: {description: "Its namespace, empty for a node.", returned: always, type: str, sample: shop}
    name: {description: Its name., returned: always, type: str, sample: api-0}
    why: {description: What keeps it., returned: always, type: str, sample: the disruption budget api needs 1}
    for_node: {description: For the maintenance of which node it was to leave., returned: always, type: str, sample: w2}
boot_id:
  description: The node's boot ID before its maintenance, for M(virtops.kubevirt.node_readiness) after it.
  returned: O(state=drained) and O(state=verified), on success
  type: str
  sample: 41e9e1b5-8c33-4a8c-b0d2-3f8b7a8e5a11
heartbeat:
  description: Virt-handler's last sign of life before that, as the node has it. Empty if there is none.
  returned: O(state=drained) and O(state=verified), on success
  type: str
  sample: "2026-11-21T14:49:02Z"
started:
  description: The VMs that were started again, and the replica sets that have their VMIs back.
  returned: O(state=restored), when something was tried
  type: list
  elements: dict
  contains:
    kind: {description: Of the API., returned: always, type: str, sample: VirtualMachine}
    namespace: {description: Its namespace., returned: always, type: str, sample: shop}
    name: {description: Its name., returned: always, type: str, sample: db-1}
    outcome: {description: "V(started), V(starting), V(waiting), V(failed), V(would_start), or V(deleted) of what
                            somebody else has deleted meanwhile, which is no failure.",
              returned: always, type: str, sample: started}
    node: {description: Where the VM runs., returned: always, type: str, sample: worker-2}
    message: {description: What keeps it from running., returned: always, type: str, sample: ""}
    seconds: {description: How long it took., returned: always, type: int, sample: 9}
as_planned:
  description:
    - How many of those that were to leave for the node's sake left as the plan had it, target for target. Of an evicted
      pod whose replacement's node the plan tells, one has to be seen on that in its place.
  returned: O(state=drained), when something was tried
  type: int
  sample: 14
deviations:
  description:
    - What came otherwise than by the plan, with what was planned and done, and why, where that is known. C(assumed) is
      true of a node that the scheduler chooses and the plan told as an assumption. Of O(state=restored) it is what
      started elsewhere than by the plan that the O(run) keeps in the cluster.
  returned: O(state=drained) or O(state=restored), when something was tried
  type: list
  elements: dict
  sample:
    - {kind: vm, namespace: shop, name: web, planned: goes to w3, done: migrated to w4 in 12 s, why: no room,
       assumed: false}
    - {kind: pod, namespace: shop, name: api-7c9-x5k2v, planned: comes back on w3, done: came back on w4,
       why: w3 is cordoned, assumed: false}
document:
  description:
    - What was, or would be, done in the node's batch, or started, by C(docs/schemas/maintenance-plan.json). Verdict and
      totals of a batch of a run may be those of the whole run.
  returned: with O(document), and O(state=drained) or O(state=restored), when something was tried
  type: dict
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted: {description: What was tried., returned: failure, type: str, sample: drain node worker-2}
    object: {description: On which server it was tried.,
             returned: when something was tried, type: str, sample: "https://api.example.org:6443"}
    status: {description: "HTTP status of the server's answer, if there was one.",
             returned: when something was tried, type: int, sample: 403}
    reason:
      description:
        - One word for the cause, the server's own where it gave one. V(NotDrainable) and V(OtherCluster) tell that
          nothing was done, V(DrainFailed), V(StartFailed), V(NotEmpty) and V(DeadlineExceeded) that something is left.
        - V(RightsMissing) tells before anything was done that something is not allowed, see RV(error.missing).
        - V(NotCordoned), V(CordonedByOther), V(LeaseHeld), V(RunLost) and V(PlanDrifted) may come up before or in the
          middle; RV(ignore:changed) tells which.
      returned: when something was tried
      type: str
      sample: DeadlineExceeded
    server_message: {description: "What is left and why, or the words of the server.",
                     returned: when something was tried, type: str, sample: "after 600 s there is left pod shop/api-0"}
    missing: {description: "The rights that are missing, as M(virtops.kubevirt.access_review) returns them.",
              returned: "when rights are missing, before anything was done", type: list, elements: dict}
    node_owner: {description: "Who has the node, the holder of its Lease or who has cordoned it.",
                 returned: with V(LeaseHeld) and V(CordonedByOther), type: str, sample: kubectl-cordon}
    holder: {description: "Who holds the run, as RV(virtops.kubevirt.maintenance_run#module:holder).",
             returned: "with V(RunLost), when another invocation holds the run", type: dict}
    newcomers: {description: What has come to the node since the first look.,
                returned: when somebody has uncordoned it, type: list, elements: str, sample: [vm shop/web-9]}
    problems:
      description: Each thing that is wrong or left, by itself.
      returned: when there are several
      type: list
      elements: str
      sample: ["vm shop/db-1: no node can take it: 0/6 nodes are available: 6 Insufficient memory."]
    problems_left_out: {description: "How many problems there are beside the first, which alone stand in C(problems).",
                        returned: when there are many, type: int, sample: 50}
    missing_rules: {description: Rules of a ClusterRole that would grant what is missing.,
                    returned: when the cluster may not be read, type: list, elements: dict}
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Run the task again to go on, with a longer wait_timeout if it only takes longer.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (
    arguments,
    drain_task,
    guard,
    rights,
    start_task,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_arguments as own_arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def node_drain(module: Module) -> JsonObject:
    own_arguments.check(module.params)
    states = {"drained": drain_task.drain, "verified": drain_task.verify, "restored": start_task.restore}
    client = connect(module)
    guard.require(client, module.params, dry_run=module.check_mode)
    rights.require_for_drain(client, module.params)
    return states[module.params["state"]](module, client)


def main() -> None:
    argument_spec = {**arguments.connection(), **own_arguments.spec()}
    run(node_drain, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
