#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vmi_migration
short_description: Live-migrate virtual machines to given nodes
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Live-migrates running virtual machine instances (VMIs), each to a given node or to any node with given labels, by
    C(VirtualMachineInstanceMigration) objects. It works the same for VMIs of virtual machines and of replica sets.
  - All migrations are asked for at once and run in parallel, as far as KubeVirt's own limits allow. They are watched
    to their end, and tried again when they fail.
  - A VMI that is where it is wanted stays untouched. A migration that an earlier, interrupted run of this module
    has started is not started again, but watched.
  - With O(plan) it carries out what M(virtops.kubevirt.rebalance_plan) has planned, or an earlier task of this module
    in check mode.
  - Everything that can be known beforehand is checked before the first migration is created. If one VMI cannot be
    migrated as wanted, none is.
options:
  state:
    description:
      - With V(present), the VMIs are migrated to where they are wanted.
      - With V(absent), their unfinished migrations are cancelled, whoever started them. The VMIs stay where they are.
        If KubeVirt evacuates a VMI from its node, as after an eviction, that is withdrawn as well. It would start
        another migration at once otherwise, and go on with it until the VMI has left.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the one VMI. Use O(vmis) for several.
    type: str
  namespace:
    description:
      - Namespace of the VMI, and of those of O(vmis) that do not name their own.
    type: str
  target_node:
    description:
      - Name of the node to migrate to, for the VMI, and for those of O(vmis) that do not say where to.
      - The migration is pinned to it by its label C(kubernetes.io/hostname).
    type: str
  added_node_selector:
    description:
      - Labels of nodes to migrate to, in place of O(target_node). The scheduler picks one of them.
      - A VMI on a node that has these labels is where it is wanted.
      - A label that the VMI asks for itself is an error. KubeVirt would silently ignore it.
    type: dict
  vmis:
    description:
      - The VMIs, if there are several, in place of O(name).
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the VMI.
        type: str
        required: true
      namespace:
        description: Its namespace.
        type: str
      target_node:
        description: The node to migrate it to.
        type: str
      added_node_selector:
        description: Labels of nodes to migrate it to.
        type: dict
  plan:
    description:
      - A plan by which VMIs move and no node is maintained, as the path of its file, as what returned it with its
        C(plan_path) or C(document), or as that document itself. One that maintains nodes is for
        M(virtops.kubevirt.node_drain).
      - Pods that are evicted by it are evicted here as well, as by M(virtops.kubevirt.pod_eviction). What has to wait
        for something waits until that has ended, and evicted pods are replaced and ready. It waits for nothing else,
        and what fails stops only what waits for it.
      - Before anything moves each VMI is looked for. If one is another than was planned for, or elsewhere, the task
        fails and nothing was changed. Each is looked at once more when it has its turn. What is done already stays as
        it is, so the plan can be given again.
      - A file that group or others may read or write is refused.
    type: raw
  wait:
    description:
      - Whether to wait until all migrations have ended. Without it none is tried again. A O(plan) is always waited for.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds the whole task may take, all attempts included. After it the task fails and tells what is left.
      - With O(plan) these are the seconds within which something of it has to come to its end, a migration, an
        eviction or what comes in place of a pod. Each end gives what is left as much time again.
      - Migrations still in flight go on. Run the task again to go on waiting, or cancel them with O(state=absent).
    type: int
    default: 900
  unschedulable_timeout:
    description:
      - Seconds after which KubeVirt gives up a migration for which there is no node. It is set on each migration, where
        KubeVirt's own default is 300.
    type: int
    default: 60
  retries:
    description:
      - How often a failed migration is tried again.
    type: int
    default: 2
  lease_namespace:
    description: Namespace of the Leases, in which that of O(run) is.
    type: str
    default: medik8s-leases
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._document
  - virtops.kubevirt._run
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Everything is checked, and each migration is put to KubeVirt's admission without being created. Whether a node
        can take the VMI is found out only by migrating it.
  diff_mode:
    support: full
    details:
      - Lists the node of each VMI before and after. Where the scheduler has the choice, check mode shows the labels.
  idempotent:
    support: full
notes:
  - The rights that are needed stand in R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
    With O(invocation) the Lease of the run is read, and renewed where nobody does so any more.
    Those to list pods and events serve only to tell why a migration fails. For VMIs in several namespaces, migrations
    are watched in all namespaces.
  - For a O(plan) that evicts pods the rights of M(virtops.kubevirt.pod_eviction) are needed, too, and for one that
    says for which cluster it is that to read namespace C(kube-system).
  - KubeVirt runs as many migrations at once as its configuration allows; the others wait in its queue, and that time
    counts for O(wait_timeout).
  - Where the module runs on the controller, as with C(delegate_to=localhost), progress is shown on stderr meanwhile,
    and each phase with C(-v). On other hosts, or as another user, it works in silence.
  - The task cannot be run with C(async).
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - module: virtops.kubevirt.rebalance_plan
"""

EXAMPLES = r"""
- name: Move a database to another node
  virtops.kubevirt.vmi_migration:
    namespace: shop
    name: db-1
    target_node: worker-2

- name: Move two VMs, one to a node and one to a zone, within ten minutes
  virtops.kubevirt.vmi_migration:
    namespace: shop
    vmis:
      - name: db-1
        target_node: worker-2
      - name: web-1
        added_node_selector:
          topology.kubernetes.io/zone: bcn
    wait_timeout: 600
  register: moved

- name: Show where they are and how long it took
  ansible.builtin.debug:
    msg: "{{ item.name }} on {{ item.node }} after {{ item.seconds }} s"
  loop: "{{ moved.migrations }}"

- name: Find out what would rather be elsewhere
  virtops.kubevirt.rebalance_plan:
    path: ~/plans/moves.json
  register: plan

- name: Move it, as planned
  virtops.kubevirt.vmi_migration:
    plan: "{{ plan }}"

- name: Cancel whatever migrates the database
  virtops.kubevirt.vmi_migration:
    namespace: shop
    name: db-1
    state: absent
"""

RETURN = r"""
migrations:
  description: One entry for each VMI, in the order of the task or plan. Of a O(plan), those that had their turn.
  returned: unless nothing was tried
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the VMI.
      returned: always
      type: str
      sample: shop
    name:
      description: Name of the VMI.
      returned: always
      type: str
      sample: db-1
    outcome:
      description:
        - With O(state=present) one of V(already_there), V(migrated), V(failed), V(would_migrate) in check mode, or
          V(waiting) and V(migrating) where it was not waited for the end.
        - With O(state=absent) one of V(not_migrating), V(cancelled), V(migrated) if it was too late for that,
          V(would_cancel) in check mode, V(cancelling) where it was not waited for the end or the end is not known, or
          V(migrating) where the API server could not be asked to.
      returned: always
      type: str
      sample: migrated
    source_node:
      description: The node on which the VMI ran at the begin of the task, or which it was leaving by a migration then.
      returned: always
      type: str
      sample: worker-1
    target_node:
      description: The node that was asked for, if one was.
      returned: O(state=present)
      type: str
      sample: worker-2
    node_selector:
      description: The labels that pin the migration.
      returned: O(state=present)
      type: dict
      sample: {"kubernetes.io/hostname": "worker-2"}
    node:
      description: The node on which the VMI runs at the end of the task.
      returned: always
      type: str
      sample: worker-2
    migration:
      description: Name of the newest C(VirtualMachineInstanceMigration), or empty.
      returned: always
      type: str
      sample: db-1-3f9c2a71-1
    attempts:
      description: How many migrations there were, failed ones included.
      returned: O(state=present)
      type: int
      sample: 1
    phases:
      description: The phases of the newest migration, and when each was reached, in UTC.
      returned: O(state=present)
      type: list
      elements: dict
      sample:
        - {"phase": "Pending", "reached_at": "2026-11-21T14:39:37Z"}
        - {"phase": "Succeeded", "reached_at": "2026-11-21T14:39:45Z"}
    seconds:
      description: Time from the first to the last of RV(migrations[].phases).
      returned: O(state=present)
      type: int
      sample: 8
    failure_reason:
      description: Why the newest failed attempt failed, or empty.
      returned: O(state=present)
      type: str
      sample: Live migration is not completed after 150 seconds and has been aborted
    scheduler_message:
      description: Why no node can take the VMI, in the scheduler's words, or empty.
      returned: O(state=present)
      type: str
      sample: "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules."
evicted:
  description: The pods that were there, as M(virtops.kubevirt.pod_eviction) returns them.
  returned: with O(plan)
  type: list
  elements: dict
  sample: [{"namespace": "shop", "name": "cache-7c9", "outcome": "evicted", "seconds": 2, "refusal": ""}]
gone:
  description: The pods that were not there any more, C(namespace/name).
  returned: with O(plan)
  type: list
  elements: str
  sample: []
replacements:
  description: What came in place of the pods, by controller, as M(virtops.kubevirt.pod_eviction) returns it.
  returned: with O(plan)
  type: list
  elements: dict
  sample: [{"controller": "shop/cache", "kind": "ReplicaSet", "pods": [{"name": "cache-x2d", "node": "worker-1"}]}]
deviations:
  description:
    - Evicted pods in whose place none has come up where the plan had it, and why, where that is known. C(assumed) is
      true where the plan told that node as an assumption.
  returned: with O(plan)
  type: list
  elements: dict
  sample: [{"kind": "pod", "namespace": "shop", "name": "cache-7c9", "planned": "comes back on worker-1",
            "done": "came back on worker-4", "why": "worker-1 is cordoned", "assumed": false}]
document:
  description: What the task does, or would do, by C(docs/schemas/maintenance-plan.json) of the collection.
  returned: with O(document) and O(state=present)
  type: dict
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: migrate 2 VMIs
    object:
      description: On which server it was tried.
      returned: when something was tried
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when something was tried
      type: int
      sample: 403
    reason:
      description:
        - One word for the cause, the server's own where it gave one.
        - V(MigrationFailed) if a migration failed, V(DeadlineExceeded) if O(wait_timeout) was over before.
        - V(RunLost) if O(invocation) does not hold O(run) any more, V(OtherCluster) if O(cluster_uid) is another's.
      returned: when something was tried
      type: str
      sample: MigrationFailed
    server_message:
      description: What is wrong with which VMI, or the words of the server.
      returned: when something was tried
      type: str
      sample: "shop/db-1: Live migration is not completed after 150 seconds and has been aborted"
    problems:
      description: What is wrong with the task or with its VMIs, if nothing was tried because of it.
      returned: when nothing was tried
      type: list
      elements: str
      sample: ["shop/db-1: there is no node worker-9; check the spelling"]
    problems_left_out: {description: "How many problems there are beside the first, which alone stand in C(problems).",
                        returned: when there are many, type: int, sample: 50}
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Remove the cause and run the task again; VMIs that have arrived stay untouched.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.cancellation import Cancellation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (
    arguments,
    guard,
    migration_results,
    migration_task,
    moves_task,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import migration_arguments as own_arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def vmi_migration(module: Module) -> JsonObject:
    deadline = Deadline(module.params["wait_timeout"])
    plan = own_arguments.read_plan(module.params) if module.params["plan"] else None
    requests = own_arguments.read_requests(module.params) if plan is None else []
    client = connect(module) if plan is None else moves_task.connect_to_move(module, plan)
    may = guard.require(client, module.params, dry_run=module.check_mode)
    if plan is not None:
        return moves_task.carry_out(module, client, plan, may)
    if module.params["state"] == "absent":
        return _cancel(module, client, deadline, requests, may)
    return migration_task.migrate(module, client, deadline, requests, may)


def _cancel(
    module: Module, client: Client, deadline: Deadline, requests: list[MigrationRequest], may: May
) -> JsonObject:
    cancellation = Cancellation(client, requests, may)
    cancellation.request(dry_run=module.check_mode)
    if module.params["wait"] and not module.check_mode:
        cancellation.wait(deadline.left)
    return migration_results.cancelled(module, client.server, cancellation)


def main() -> None:
    argument_spec = {**arguments.connection(), **own_arguments.spec()}
    run(vmi_migration, argument_spec=argument_spec, supports_check_mode=True, **own_arguments.CONSTRAINTS)


if __name__ == "__main__":
    main()
