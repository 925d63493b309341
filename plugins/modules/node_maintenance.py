#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_maintenance
short_description: Cordon a node with an owner, and undo just that
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Takes a node out of scheduling for an owner, such as a maintenance run, and gives it back. Nothing is moved away.
  - The owner is written on the node, in annotation C(virtops.kubevirt/maintenance), and in the node's Lease, which the
    operators of medik8s (node maintenance, fencing) respect as well.
  - Only what the owner has done is undone. A cordon of somebody else is named and stays.
options:
  name:
    description: The node.
    type: str
    required: true
  owner:
    description:
      - Who takes the node. Choose one name for each run and use it again when the run is continued, so that the run
        finds what is its own.
    type: str
    required: true
  state:
    description:
      - V(cordoned) takes the Lease, or renews it, and makes the node unschedulable.
      - V(uncordoned) makes the node schedulable and releases the Lease, each as far as it is the owner's. A cordoned
        node is refused while somebody else holds its Lease, whosever the cordon is.
    type: str
    choices: [cordoned, uncordoned]
    default: cordoned
  reason:
    description: What is done to the node, for others who find it cordoned. It is written when the node is cordoned.
    type: str
  foreign_cordon:
    description:
      - What to do with a node that somebody else has cordoned, by hand or as another owner.
      - V(fail) changes nothing and names them.
      - V(keep) takes and releases the Lease, leaves their cordon as it is and, with C(state=uncordoned), warns that the
        node stays cordoned. While O(run) has the node, annotation C(virtops.kubevirt/cordon-kept) says so beside it.
    type: str
    choices: [fail, keep]
    default: fail
  maintained:
    description:
      - Whether O(run) is done with the node that is given back. Its label C(virtops.kubevirt/maintained) says so then,
        from the moment on in which it is uncordoned, and a run that is continued passes over it.
    type: bool
    default: false
  lease_duration:
    description:
      - Seconds for which the Lease is held from now on. After that others may take the node, so run the module again
        before, or choose the longest time that the maintenance can take.
      - With O(run) it is renewed as long as M(virtops.kubevirt.maintenance_run) holds that.
    type: int
    default: 3600
  lease_namespace:
    description: Namespace of the Leases, which is created if it is missing. The default is that of medik8s' operators.
    type: str
    default: medik8s-leases
  wait:
    description:
      - Whether to wait with C(state=cordoned) until others let go of the node, instead of failing at once.
      - In check mode nothing is waited for.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait altogether.
    type: int
    default: 120
  wait_sleep:
    description: Seconds between two looks.
    type: int
    default: 5
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._run
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - The API server checks each change, permissions and admission included, and keeps none.
  diff_mode:
    support: full
    details:
      - The diff shows whether the node is schedulable, its cordon, the holder of its Lease, and the last run that was
        done with it.
  idempotent:
    support: full
    details:
      - That a Lease is held for longer is no change; a second run renews it without reporting one.
      - Neither is it that another process of C(ansible-playbook) goes on with O(run). The annotation on the node says
        so then, and what an earlier process would still write is refused.
notes:
  - The rights that are needed to take a node and to give it back stand in
    R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights). Outside of a run they are asked for
    before anything is done. The right to create namespaces is needed only where O(lease_namespace) is missing.
  - Who else has cordoned a node is told by the API server's notes of who wrote which field, such as C(kubectl-cordon).
seealso:
  - module: kubernetes.core.k8s_drain
  - name: medik8s
    description: The operators that use the same Leases.
    link: https://www.medik8s.io/
"""

EXAMPLES = r"""
- name: Take a node for maintenance
  virtops.kubevirt.node_maintenance:
    name: kni-worker2
    owner: kernel-update
    reason: New kernel, back at noon
    lease_duration: 7200
    wait: true
    wait_timeout: 600

- name: Give it back
  virtops.kubevirt.node_maintenance:
    name: kni-worker2
    owner: kernel-update
    state: uncordoned
"""

RETURN = r"""
schedulable:
  description: Whether pods may come to the node after the task.
  returned: success
  type: bool
  sample: false
cordon:
  description: The node's cordon after the task, V(null) if there is none.
  returned: success
  type: dict
  contains:
    by:
      description: The owner who cordoned it with this module, else the program that did.
      returned: when the node is cordoned
      type: str
      sample: kernel-update
    since:
      description: When, in UTC, as far as it is known.
      returned: when the node is cordoned
      type: str
      sample: "2026-11-21T14:03:07Z"
    reason:
      description: What for, as far as it is known.
      returned: when the node is cordoned
      type: str
      sample: New kernel, back at noon
    ours:
      description: Whether it is a cordon of the owner.
      returned: when the node is cordoned
      type: bool
      sample: true
lease:
  description: The node's Lease after the task, V(null) if nobody holds it.
  returned: success
  type: dict
  contains:
    namespace:
      description: Its namespace.
      returned: when the Lease is held
      type: str
      sample: medik8s-leases
    name:
      description: Its name.
      returned: when the Lease is held
      type: str
      sample: node-kni-worker2
    holder:
      description: Who holds it.
      returned: when the Lease is held
      type: str
      sample: kernel-update
    expires_at:
      description: Until when, in UTC.
      returned: when the Lease is held
      type: str
      sample: "2026-11-21T16:03:07Z"
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: cordon node kni-worker2
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Let the holder finish, or set wait and a wait_timeout that lasts so long.
    problems:
      description: All that is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["owner is empty"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    object:
      description: On which server it was tried.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when the cluster did not do what it was asked for
      type: int
      sample: 403
    reason:
      description:
        - One word for the cause, the server's own where it gave one. V(LeaseHeld) and V(CordonedByOther) tell that
          somebody else has the node, V(RightsMissing) that the user may not do all of it, V(RunLost) that another
          process of C(ansible-playbook) has the run, V(OtherCluster) that another cluster answers.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: CordonedByOther
    server_message:
      description: The words of the server or of the operating system, or what was found.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: it has been cordoned by kubectl-cordon since 2026-11-21T13:40:12Z, not by kernel-update
    node_owner:
      description: Who has the node, the holder of its Lease or who has cordoned it.
      returned: with V(LeaseHeld) and V(CordonedByOther)
      type: str
      sample: kubectl-cordon
    holder:
      description: Who holds the run, as RV(virtops.kubevirt.maintenance_run#module:holder).
      returned: with V(RunLost), when another invocation holds the run
      type: dict
    missing:
      description: The rights that are missing, as M(virtops.kubevirt.access_review) returns them.
      returned: when rights are missing, before anything was done
      type: list
      elements: dict
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import maintenance
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, guard, rights
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.maintenance_task import (
    request,
    result,
    stays_cordoned,
    wait_seconds,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def node_maintenance(module: Module) -> JsonObject:
    wanted = request(module.params, dry_run=module.check_mode)
    client = connect(module)
    may = guard.require(client, module.params, dry_run=module.check_mode)
    rights.require_for_node(client, module.params)
    if module.params["state"] == "cordoned":
        patience = wait_seconds(module.params, dry_run=module.check_mode)
        pause = module.params["wait_sleep"]
        transition = maintenance.begin(client, wanted, wait_seconds=patience, pause=pause, may=may)
    else:
        transition = maintenance.end(client, wanted, may=may)
        if transition.after.cordon:
            module.warn(stays_cordoned(wanted.node, transition.after.cordon))
    return result(transition, wanted.owner, diff=module._diff)


def main() -> None:
    argument_spec = {
        **arguments.connection(),
        **arguments.wait(),
        **guard.spec(),
        "name": {"type": "str", "required": True},
        "owner": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["cordoned", "uncordoned"], "default": "cordoned"},
        "reason": {"type": "str"},
        "foreign_cordon": {"type": "str", "choices": ["fail", "keep"], "default": "fail"},
        "maintained": {"type": "bool", "default": False},
        "lease_duration": {"type": "int", "default": 3600},
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
    }
    run(node_maintenance, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
