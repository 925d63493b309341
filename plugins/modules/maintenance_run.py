#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_run
short_description: Hold a maintenance run, so that nobody else carries it out at the same time
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Takes the Lease of a run for this process of C(ansible-playbook), and has it renewed for as long as that process
    lives, whatever task it is at. A second one that asks for the same run is refused, and told who holds it and where.
  - The Leases of the nodes that the run has taken are renewed with it.
  - When C(ansible-playbook) ends, however it ends, the run is released within seconds. When its machine dies, the same
    command goes on by itself within a minute.
  - What a run has to remember is kept beside its Lease, so it can be continued from another machine.
options:
  run:
    description:
      - Name of the run. At most 63 letters, digits, dots, dashes and underscores.
    type: str
    required: true
  state:
    description:
      - V(held) takes the run, or goes on to hold it.
      - V(released) lets go of it, and of nodes that were given back without that, and removes what the cluster
        remembers of it. A run that another process holds stays as it is, with a warning.
      - If virtual machines that the run has stopped do not run again yet, or it has not given back all of its nodes,
        V(released) tells so in RV(left), and does not fail. What the cluster remembers stays then, and the next start
        of the run or V(aborted) brings them back.
      - V(aborted) undoes what the run has left in the cluster. Its migrations are cancelled, its nodes are given back,
        what was stopped for them is started, and its Leases and what the cluster remembers of it are removed. Nothing
        of others is touched, nor are evacuations. What cannot be undone is named when all else is, and the task fails.
        A node that is not given back keeps its Lease until that runs out. Another V(aborted) goes on with what is left.
      - Nodes that are done are named in RV(done) and keep the label C(virtops.kubevirt/maintained), as it stays true
        that they were maintained. Another start under the same name leaves them out, one under a new name does not.
    type: str
    choices: [held, released, aborted]
    default: held
  force:
    description: >-
      Whether C(state=aborted) takes the run even from a process that lives. That one is ended when it notices, within
      seconds, and what it has begun by then may have to be undone by hand.
    type: bool
    default: false
  keep_record:
    description:
      - Whether C(state=released) leaves what the cluster remembers of the run, to continue it later, also where nothing
        is left to do. That is its plan, as drains have mended it, and what has failed; and O(report), to report on it.
        It stays until the run is released without this option or V(aborted).
    type: bool
    default: false
  report:
    description:
      - Lines that tell what this C(ansible-playbook) has done in the run. C(state=released) leaves them in the cluster
        if what that remembers of the run stays, as O(keep_record) asks for, or because something is left of the run.
      - RV(report) returns them, with those of other starts of the run, to whoever asks later, from whatever machine.
        Whoever may read the ConfigMaps in O(lease_namespace) can read them. Not being able to keep them is a warning.
    type: list
    elements: str
  wait_timeout:
    description:
      - Seconds to wait for a holder that seems to have died. It counts as dead if it does not renew the Lease for 30
        seconds while it is watched; one that renews it is alive, and the task fails at once.
      - With C(state=aborted) as well the seconds for migrations to be undone and for virtual machines, 120 at least.
      - It limits no request. One that an API server has not carried out, as it is busy or away, is sent again for two
        minutes, with C(state=aborted) for as long as the task may last if it changes something. What a webhook has to
        admit that is away is then sent for five seconds, and again when all else is undone.
    type: int
    default: 60
  lease_namespace:
    description: Namespace of the Leases, which is created if it is missing. The default is that of medik8s' operators.
    type: str
    default: medik8s-leases
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._run.invocation
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Tells who holds the run, and writes nothing. A run that somebody else holds is a warning; with C(state=aborted)
        it stands in the diff, and no rights are asked for.
  diff_mode:
    support: full
    details: The diff shows who holds the run, and with C(state=aborted) all that is undone, or would be in check mode.
  idempotent:
    support: full
    details:
      - Within one C(ansible-playbook) a second task changes nothing.
notes:
  - It works on the controller only, whose process it watches. Elsewhere delegate it to V(localhost).
  - A small process renews the Leases every 10 seconds. It gets the credentials of the task through a pipe, keeps them
    in its memory, and ends within two seconds after C(ansible-playbook), or when the run is released. It ends that
    C(ansible-playbook), and says why, when the run is another's or aborted, or is refused to be renewed for 30 seconds.
  - No clock of another machine is trusted. A Lease is taken from another process only after it was watched, unchanged,
    for as long as it lasts.
  - The rights that are needed stand in R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights);
    role P(virtops.kubevirt.access#role) grants them. With C(state=aborted) they are asked for before anything is done.
    The right to create namespaces is needed only where O(lease_namespace) is missing.
seealso:
  - module: virtops.kubevirt.node_maintenance
  - plugin: virtops.kubevirt.maintenance_report
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Hold the run until this playbook ends
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12

- name: Let go of it, and forget it if it is complete
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12
    state: released
  register: released

- name: Fail if something is left
  ansible.builtin.assert:
    that: released.left | length == 0
    fail_msg: "Run kernel-6.12 is not complete. Left: {{ released.left | join('; ') }}."

- name: Let go of it, and leave its record and its report for the next start or a later job
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12
    state: released
    keep_record: true
    report: "{{ plan_maintenance_batches | virtops.kubevirt.maintenance_report(hostvars, 'kernel-6.12') }}"

- name: Read the report of a run that is over, in a later job
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12
    state: released
    keep_record: true # without it, record and report are removed
  register: over

- name: Give a run up and undo what it has left
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12
    state: aborted
    wait_timeout: 600
"""

RETURN = r"""
run:
  description: Name of the run.
  returned: success
  type: str
  sample: kernel-6.12
invocation_id:
  description: What identifies this process of C(ansible-playbook) in the Lease.
  returned: success
  type: str
  sample: 3f9c0d17a2be
holder:
  description: Who holds the run after the task, V(null) if nobody does.
  returned: success
  type: dict
  contains: &holder
    run:
      description: Name of the run.
      returned: when it is held
      type: str
      sample: kernel-6.12
    invocation:
      description: Which process of C(ansible-playbook).
      returned: when it is held
      type: str
      sample: 3f9c0d17a2be
    user:
      description: Whose process that is.
      returned: when it is held
      type: str
      sample: jane
    host:
      description: On which machine.
      returned: when it is held
      type: str
      sample: controller-1
    pid:
      description: Its number there.
      returned: when it is held
      type: int
      sample: 4711
    since:
      description: Since when it has held the run, in UTC.
      returned: when it is held
      type: str
      sample: "2026-11-22T02:14:07.000000Z"
    renewed:
      description: When the Lease was last renewed, in UTC.
      returned: when it is held
      type: str
      sample: "2026-11-22T02:15:07.000000Z"
cluster_uid:
  description: UID of the namespace C(kube-system), which identifies a cluster for as long as it lives.
  returned: success
  type: str
  sample: 7a0e1b1c-52f0-4f0e-8f6e-2f8c1f6d3a55
resumed:
  description: Whether an earlier start of the run has left something to go on from.
  returned: success
  type: bool
  sample: false
documents:
  description: Names of what the cluster remembers of the run after the task.
  returned: success
  type: list
  elements: str
  sample: [plan, record-kni-worker2]
stopped_for:
  description: Nodes for which the run has stopped virtual machines that do not run again yet.
  returned: with C(state=held)
  type: list
  elements: str
  sample: [kni-worker2]
maintained:
  description: >-
    Those of RV(stopped_for) that the run is done with, as their label C(virtops.kubevirt/maintained) says. What was
    stopped for them can be started.
  returned: with C(state=held)
  type: list
  elements: str
  sample: [kni-worker2]
left:
  description: RV(still_stopped) and RV(still_taken) in words, a clause each. Empty if the run has left nothing.
  returned: with C(state=released)
  type: list
  elements: str
  sample: ["VirtualMachine shop/db-1, stopped for node kni-worker2", "node kni-worker2, not given back"]
still_stopped:
  description: What the run has stopped for its nodes and what does not run again yet.
  returned: with C(state=released)
  type: list
  elements: dict
  contains:
    kind:
      description: V(VirtualMachine), or V(VirtualMachineInstanceReplicaSet) for one that lacks some of its own.
      returned: success
      type: str
      sample: VirtualMachine
    namespace:
      description: Its namespace.
      returned: success
      type: str
      sample: shop
    name:
      description: Its name.
      returned: success
      type: str
      sample: db-1
    node:
      description: The node for which it was stopped.
      returned: success
      type: str
      sample: kni-worker2
still_taken:
  description: Nodes that still carry the mark of the run, as it has not given them back.
  returned: with C(state=released)
  type: list
  elements: str
  sample: [kni-worker2]
report:
  description:
    - What starts of the run have left as their O(report), the oldest first and each under a line that says whose it is,
      with what this task has kept of its own. A task that removes what the cluster remembers returns what was there.
    - Of a run that was started more than 20 times those of the first and the newest are kept, with a line between them.
  returned: with C(state=released)
  type: list
  elements: str
  sample: ["Told by jane on controller-1, 2026-11-22T04:14:07Z.", "Run kernel-6.12:", "kni-worker: done"]
done:
  description: >-
    Nodes that the run was done with. They keep their label C(virtops.kubevirt/maintained), by which another start under
    the same name leaves them out.
  returned: with C(state=aborted), also if it fails after it took the run
  type: list
  elements: str
  sample: [kni-worker]
cancelled:
  description: Migrations that were under way and were cancelled. One that had ended by then is none of them.
  returned: with C(state=aborted), also if it fails after it took the run
  type: list
  elements: str
  sample: [shop/kernel-db-n1-1]
given_back:
  description: Nodes that were given back.
  returned: with C(state=aborted), also if it fails after it took the run
  type: list
  elements: str
  sample: [kni-worker2]
started:
  description: What was stopped by the run and is started, as M(virtops.kubevirt.node_drain) returns it.
  returned: with C(state=aborted), also if it fails after it took the run
  type: list
  elements: dict
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: hold run kernel-6.12
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Let that invocation end, or end it and start this one again.
    problems:
      description: All that is wrong with the task, or with C(state=aborted) all that is left.
      returned: when there is such a thing
      type: list
      elements: str
      sample: ["lease_namespace is empty"]
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
        - One word for the cause, the server's own where it gave one. V(RunHeld) tells that another process holds the
          run, V(NotRenewed) that the process that renews the Lease did not begin, V(NotUndone) that something is left,
          V(RightsMissing) that the user may not do all that C(state=aborted) takes, V(OtherCluster) that O(cluster_uid)
          is another's.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: RunHeld
    server_message:
      description: The words of the server or of the operating system, or what was found.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: >-
        it is held by invocation 3f9c0d17a2be (jane@controller-1, process 4711) since 2026-11-22T02:14:07.000000Z, last
        renewed 2026-11-22T02:15:07.000000Z; it is renewed, so that invocation is alive
    missing:
      description: The rights that are missing, as M(virtops.kubevirt.access_review) returns them.
      returned: with C(state=aborted), when rights are missing, before anything was done
      type: list
      elements: dict
    holder:
      description: Who holds the run.
      returned: when somebody else holds it
      type: dict
      contains: *holder
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, run_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect_for
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def maintenance_run(module: Module) -> JsonObject:
    task = run_task.read(module.params, dry_run=module.check_mode)
    client = connect_for(module, run_task.own_time(module.params))
    if module.params["state"] == "held":
        return run_task.held(client, task, diff=module._diff)
    if module.params["state"] == "aborted":
        return run_task.aborted(client, task, force=module.params["force"], diff=module._diff)
    keep_record, report = module.params["keep_record"], module.params["report"]
    return run_task.released(client, task, keep_record=keep_record, report=report, diff=module._diff)


def main() -> None:
    argument_spec = {
        **arguments.connection(),
        "run": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["held", "released", "aborted"], "default": "held"},
        "force": {"type": "bool", "default": False},
        "keep_record": {"type": "bool", "default": False},
        "report": {"type": "list", "elements": "str"},
        "wait_timeout": {"type": "int", "default": 60},
        "lease_namespace": {"type": "str", "default": "medik8s-leases"},
        "cluster_uid": {"type": "str"},
        "_invocation": {"type": "dict"},
    }
    run(maintenance_run, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
