#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_plan
short_description: Plan the maintenance of nodes, as a file that is approved and carried out
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Finds out for each batch of nodes where its virtual machines and pods go, in which order, and what cannot leave, and
    writes that to one JSON file. The file is what people read, approve and store, and what
    M(virtops.kubevirt.node_drain) obeys.
  - With O(plan) a plan that was made before is held against the run and the cluster as it is now, and told.
  - A run that goes by a plan keeps that in the cluster, from where it is resumed, on whatever machine.
  - Nodes that the run is done with already, which the label C(virtops.kubevirt/maintained) says, are left out.
  - The cluster is only read. With O(invocation) the plan is kept in it, in ConfigMaps of O(lease_namespace).
options:
  snapshot:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, or the path of its file, on the host on which the task runs.
      - Without it the cluster is read, for which the permissions of that module are needed.
    type: raw
  run:
    description:
      - Name of the run, which is the owner of its cordons, and the label of nodes that are done.
      - Without it the plan belongs to no run, and no node is taken for done.
    type: str
    default: ""
  batches:
    description:
      - Lists of names of nodes. What is in a list is out of service together.
      - One of O(batches), O(nodes) and O(plan) is needed.
    type: list
    elements: list
  avoid:
    description: Names of nodes that VMs go to only if they fit nowhere else.
    type: list
    elements: str
    default: []
  targets:
    description: Nodes for VMs that may go nowhere else, by V(namespace/name) of the VirtualMachineInstance.
    type: dict
    default: {}
  delete_emptydir_data:
    description: Whether pods may be evicted with data in C(emptyDir) volumes, which is lost; else they cannot leave.
    type: bool
    default: false
  force:
    description: Whether pods may be evicted that no controller would create anew. Otherwise they cannot leave.
    type: bool
    default: false
  path:
    description:
      - The file to write, and beside it, with the extension C(txt), the whole plan for people. An existing one is
        replaced as a whole, or not at all if anything fails. It is readable by its owner only.
      - If it holds a plan that says the same, it stays as it is, and keeps its digest.
      - Needed unless O(plan) is given. With O(plan) and O(resume) it is needed as well, for what may be left of the
        plan or is mended of it, and has to be another file.
    type: path
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._approved_plan
  - virtops.kubevirt._batches
  - virtops.kubevirt._connection
  - virtops.kubevirt._document
  - virtops.kubevirt._kept_plan
  - virtops.kubevirt._policies
  - virtops.kubevirt._profile
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Everything is planned and returned in check mode too. Only the file is not written. In a play whose later tasks
        need it, set C(check_mode=false) for this task.
  diff_mode:
    support: full
    details:
      - The diff is of the lines that people read, RV(lines), between the earlier plan and the new one.
  idempotent:
    support: full
    details:
      - Of an unchanged cluster the same plan is made, whenever its snapshot was taken.
requirements:
  - numpy >= 1.26
  - jmespath >= 1.0.0, for policies with expressions
notes:
  - The rights to read the cluster, and for O(resume) and O(invocation) those to hold a run and to let it remember,
    stand in R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
  - The schema of the file is C(docs/schemas/maintenance-plan.json) of the collection.
  - How long migrations take is told for idle guests, and without the time that other pods need to end.
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - module: virtops.kubevirt.maintenance_run
  - module: virtops.kubevirt.node_drain
  - plugin: virtops.kubevirt.drain_feasibility
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: ~/.cache/production.json
  check_mode: false
  delegate_to: localhost
  register: cluster

- name: Plan the maintenance of four nodes, two at a time
  virtops.kubevirt.maintenance_plan:
    snapshot: "{{ cluster }}"
    run: kernel-6.12
    nodes: [worker-1, worker-2, worker-3, worker-4]
    batch: 2
    order: free
    policies:
      - selector: {app: database}
        policy: stop
    path: ~/plans/kernel-6.12.json
  delegate_to: localhost
  register: plan

- name: Show it to whoever is to approve it
  ansible.builtin.debug:
    msg: "{{ plan.lines + ['Its digest is ' ~ plan.sha256] }}"

- name: Hold a run
  virtops.kubevirt.maintenance_run:
    run: kernel-6.12
  delegate_to: localhost
  register: held

- name: Go on by its plan, or make one that the next start goes on by
  virtops.kubevirt.maintenance_plan:
    snapshot: "{{ cluster }}"
    run: kernel-6.12
    nodes: [worker-1, worker-2, worker-3, worker-4]
    path: ~/plans/kernel-6.12-run.json
    resume: true
    invocation: "{{ held.invocation_id }}"
  delegate_to: localhost

- name: See whether the plan that was approved at noon is still right in the evening
  virtops.kubevirt.maintenance_plan:
    snapshot: "{{ cluster }}"
    run: kernel-6.12
    plan: ~/plans/kernel-6.12.json
    sha256: "{{ plan.sha256 }}"
    drift: fail
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: The file.
  returned: success, without O(only_check)
  type: str
plan_path:
  description: The same, by the name under which what carries a plan out finds its file in a result.
  returned: success, without O(only_check)
  type: str
  sample: /var/lib/awx/plans/kernel-6.12.json
text_path:
  description: The file that tells the whole plan for people, action by action; in check mode where it would be. Of
    O(plan) it is the one beside that, if it says what O(plan) says, else one beside O(path), else empty.
  returned: success, without O(only_check)
  type: str
  sample: /var/lib/awx/plans/kernel-6.12.txt
sha256:
  description:
    - Digest of what the plan says, which its file has as C(sha256). Layout and the order of keys do not count.
    - With RV(plan_path) it names the plan to whoever carries it out.
  returned: success, without O(only_check)
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
origin:
  description: Digest of the plan as it was made or approved, another one than RV(sha256) if it has been mended since.
  returned: success, without O(only_check)
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
message:
  description: Whether the plan can be carried out as things are, and what to do if not, a sentence.
  returned: success, without O(only_check)
  type: str
  sample: "Run kernel-6.12 can be carried out: 4 nodes in 2 batches."
verdict:
  description:
    - With V(feasible) nothing stands against the plan, or only what goes away by itself. With V(partial) some of its
      batches can be emptied as things are, with V(infeasible) none.
  returned: success, without O(only_check)
  type: str
  sample: feasible
batches:
  description: Names of the nodes that are still to be maintained.
  returned: success, without O(only_check)
  type: list
  elements: list
  sample: [[worker-1, worker-2], [worker-3, worker-4]]
possible:
  description: Names of those of RV(batches) that could be maintained without the others, by a plan of these alone.
  returned: success, without O(only_check)
  type: list
  elements: str
  sample: [worker-1, worker-2, worker-3, worker-4]
done:
  description: Names of nodes of the task or of the plan that the run is done with already.
  returned: success, without O(only_check)
  type: list
  elements: str
  sample: []
totals:
  description:
    - Counts of the whole plan, the seconds that its migrations take, of each batch too, the bytes of memory that each
      batch leaves in reserve, as in O(reserve), and how few migrations there can be at least.
  returned: success, without O(only_check)
  type: dict
  sample:
    migrations: 33
    evictions: 12
    stops: 1
    restarts: 0
    seconds: 320
    batch_seconds: [180, 140]
    batch_reserves: [68719476736, 51539607552]
    lower_bound: 33
    proof: optimal
obstacles:
  description: What stands against the plan, each cause once, first those for which waiting does not help.
  returned: success, without O(only_check)
  type: list
  elements: dict
  contains:
    message:
      description: Whom it keeps, why, and what to do, a sentence.
      returned: success
      type: str
      sample: "1 pod cannot leave (shop/debug): nothing would replace it; set force: true if that may be."
    passing:
      description: Whether that goes away by itself, so that it only has to be waited for.
      returned: success
      type: bool
      sample: false
    count:
      description: How many cannot leave because of it.
      returned: success
      type: int
      sample: 1
blocked:
  description: What cannot leave, at most 100 of them, first those for which waiting does not help.
  returned: success, without O(only_check)
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      returned: success
      type: str
      sample: VirtualMachineInstance
    namespace:
      description: Its namespace.
      returned: success
      type: str
      sample: shop
    name:
      description: Its name.
      returned: success
      type: str
      sample: database
    node:
      description: The node it should leave.
      returned: success
      type: str
      sample: worker-2
    passing:
      description: Whether that goes away by itself, so that it only has to be waited for.
      returned: success
      type: bool
      sample: false
    message:
      description: Why, a sentence.
      returned: success
      type: str
      sample: >-
        VM shop/database on worker-2 cannot leave: no node can take it: 0/4 nodes are available: 4 Insufficient memory.
lines:
  description:
    - The plan for people, after what is said of one that was there already, see O(drift). First what stands against it,
      as in RV(obstacles), who is interrupted, and a table of its batches; then each VM and pod, if all has room in 40
      lines. Else RV(text_path) has them; where that is not there they have 40 lines of their own.
  returned: success, without O(only_check)
  type: list
  elements: str
  sample:
    - "Run kernel-6.12: 1 of 1 nodes to maintain, 1 at a time."
    - Nothing stands against it.
    - batch  migrations  time  reserve  nodes
    - "    1           1  24 s  9.5 GiB  worker-1"
resumed:
  description: Whether the run goes on by the plan that the cluster keeps of it.
  returned: success, without O(only_check)
  type: bool
  sample: false
differences:
  description:
    - What leaves or comes back otherwise than by the earlier plan, or was asked for otherwise, a line each. Nodes that
      are done do not count, and of a plan for another cluster that alone is told. With O(plan), what was mended of it.
  returned: success, without O(only_check)
  type: list
  elements: str
  sample: ["VM shop/web-1 goes to worker-3; it was: goes to worker-2"]
document:
  description: The whole plan, as the file has it, by C(docs/schemas/maintenance-plan.json) of the collection.
  returned: with O(document), without O(only_check)
  type: dict
options:
  description: What the plan was asked for, so that whoever carries it out allows as much.
  returned: success, without O(only_check)
  type: dict
  contains:
    policies:
      description: As in O(policies).
      returned: success
      type: list
      elements: dict
      sample: [{"selector": {"app": "database"}, "policy": "stop"}]
    delete_emptydir_data:
      description: As in O(delete_emptydir_data).
      returned: success
      type: bool
    force:
      description: As in O(force).
      returned: success
      type: bool
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: plan the maintenance
    object:
      description: On which server or file it was tried.
      returned: when something was tried
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when something was tried
      type: int
      sample: 403
    reason:
      description: One word for the cause, the server's own if it gave one; V(RunLost) if O(invocation) has lost O(run).
      returned: when something was tried
      type: str
      sample: Forbidden
    server_message:
      description: The words of the server or of the operating system, or what was found.
      returned: when something was tried
      type: str
      sample: connection refused
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["there is no node worker-22 (do you mean worker-2?)"]
    problems_left_out: {description: "How many problems there are beside the first, which alone stand in C(problems).",
                        returned: when there are many, type: int, sample: 50}
    missing_rules: {description: Rules of a ClusterRole that would grant what is missing.,
                    returned: when the cluster may not be read, type: list, elements: dict}
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Correct the names, or take a new snapshot.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.plan_task import make_or_take, rules, spec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import run


def main() -> None:
    together: ArgumentSpec = rules()
    run(make_or_take, argument_spec=spec(), supports_check_mode=True, **together)


if __name__ == "__main__":
    main()
