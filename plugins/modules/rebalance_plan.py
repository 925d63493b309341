# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rebalance_plan
short_description: Find moves by which soft placement rules hold again
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Pods and virtual machines stay where a maintenance or a failure has put them, even when a node that they would
    rather have is back. This module finds out who would gain by moving, and in which order. It moves nothing.
  - A move counts as a gain if it meets the own preferred node labels, preferred neighbours and soft spread constraints
    better, or avoids taints that are to be avoided, in the points that kube-scheduler gives for them. How full nodes
    are is no reason to move.
  - Who moves takes along whoever has to be near by a required rule. If one of them cannot follow, nobody moves.
  - Also found is who is where its own required rules no longer hold.
  - Only what can be moved without downtime moves, that is, VMs that can be live-migrated, and pods that a controller
    makes anew and has another ready one of, that keep no data in C(emptyDir) volumes, that are always restarted, as
    those of a Job are not, and whose disruption budgets allow it now. Of the ready pods of a controller one at least
    stays until the others are replaced.
  - The plan is the same kind of document that M(virtops.kubevirt.maintenance_plan) makes, but no node is maintained by
    it. M(virtops.kubevirt.vmi_migration) carries it out, move for move.
  - The search is greedy and bounded. The same cluster always gives the same plan, which need not be the best one.
options:
  snapshot:
    description:
      - A file that M(virtops.kubevirt.cluster_snapshot) has written, on the host on which the task runs.
      - Without it the cluster is read, for which the permissions of that module are needed.
    type: path
  max_moves:
    description: At most so many pods and VMs move.
    type: int
    default: 20
  run:
    description: Name of the run that the plan is for, if there is one.
    type: str
    default: ""
  path:
    description:
      - A file to write the plan to, and beside it, with the extension C(txt), RV(lines). An existing one is replaced as
        a whole, or not at all if anything fails. It is readable by its owner only.
      - If it holds a plan that says the same, it stays as it is, and keeps its digest.
    type: path
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._document
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Everything is planned and returned in check mode too. Only the file of O(path) is not written.
      - In the cluster nothing is ever changed.
  diff_mode:
    support: none
    details:
      - In the cluster nothing is ever changed.
  idempotent:
    support: full
requirements:
  - numpy >= 1.26
notes:
  - Without O(snapshot) the rights to read the cluster are needed, which stand in
    R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
seealso:
  - plugin: virtops.kubevirt.drain_feasibility
    plugin_type: filter
  - module: virtops.kubevirt.pod_eviction
  - module: virtops.kubevirt.vmi_migration
"""

EXAMPLES = r"""
- name: Find out what would rather be elsewhere
  virtops.kubevirt.rebalance_plan:
    max_moves: 10
    document: true
  register: plan

- name: Show it
  ansible.builtin.debug:
    msg: "{{ plan.lines }}"

- name: Move all of them, as planned
  virtops.kubevirt.vmi_migration:
    plan: "{{ plan.document }}"
"""

RETURN = r"""
message:
  description: The plan in a sentence.
  returned: success
  type: str
  sample: 3 VMs migrate, 3 pods are evicted.
moves:
  description:
    - The moves, in the order of their waves. What is in a wave may start together, once everything in earlier waves has
      ended.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: V(Pod) for a pod that is evicted, V(VirtualMachineInstance) for a VM that is live-migrated.
      returned: success
      type: str
      sample: Pod
    namespace:
      description: Its namespace.
      returned: success
      type: str
      sample: customapp
    name:
      description: Its name.
      returned: success
      type: str
      sample: varnish-cache-df6b77976-4b9js
    source_node:
      description: Where it is.
      returned: success
      type: str
      sample: kni-worker2
    target_node:
      description: Where a VM is to go, or where kube-scheduler will put the pod's replacement.
      returned: success
      type: str
      sample: kni-worker
    wave:
      description: Counts from 1.
      returned: success
      type: int
      sample: 1
    gain:
      description: Points by which its soft rules are met better. It may be negative for one that has to follow another.
      returned: success
      type: int
      sample: 200
    why:
      description: A sentence.
      returned: success
      type: str
      sample: Its preferred rules are met better there.
lines:
  description: The plan for people. What has the same number may move at the same time.
  returned: success
  type: list
  elements: str
  sample:
    - 1 VM migrates, 1 pod is evicted.
    - "1. pod customapp/cache-4b9js: kni-worker2 -> kni-worker. Its preferred rules are met better there."
    - "2. VM customapp/blackbox-x7k2q: kni-worker2 -> kni-worker. It has to follow customapp/cache-4b9js."
sha256:
  description: Digest of what the plan says, which its file has as C(sha256).
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
totals:
  description: Counts of the whole plan, and the seconds that its migrations take if the guests are idle.
  returned: success
  type: dict
  sample: {"migrations": 1, "evictions": 1, "stops": 0, "restarts": 0, "seconds": 12}
plan_path:
  description: The file, or empty without O(path).
  returned: success
  type: str
  sample: /var/lib/awx/plans/moves.json
document:
  description: The whole plan, as the file has it, by C(docs/schemas/maintenance-plan.json) of the collection.
  returned: with O(document)
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
      sample: list pods in all namespaces
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
      description: One word for the cause, the server's own where it gave one. V(OtherCluster) if O(cluster_uid) is
        another's.
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
      sample: ["max_moves is 0, but at least 1 is needed"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    missing_rules: {description: Rules of a ClusterRole that would grant what is missing.,
                    returned: when the cluster may not be read, type: list, elements: dict}
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Check the address and port, and that the API server runs and is reachable from this machine.
"""

from ansible_collections.virtops.kubevirt.plugins.module_utils._module import rebalancing_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import run


def main() -> None:
    run(rebalancing_task.find_moves, argument_spec=rebalancing_task.spec(), supports_check_mode=True)


if __name__ == "__main__":
    main()
