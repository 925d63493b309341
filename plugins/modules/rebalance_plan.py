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
    makes anew, that keep no data in C(emptyDir) volumes, and whose disruption budgets allow it now.
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
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Nothing is ever changed.
  diff_mode:
    support: none
    details:
      - Nothing is ever changed.
  idempotent:
    support: full
requirements:
  - numpy >= 1.26
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
  register: plan

- name: Show it
  ansible.builtin.debug:
    msg: "{{ item.namespace }}/{{ item.name }}: {{ item.source_node }} -> {{ item.target_node }}. {{ item.why }}"
  loop: "{{ plan.moves }}"
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
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["max_moves is 0, but at least 1 is needed"]
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Check the address and port, and that the API server runs and is reachable from this machine.
"""

from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import require_same
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.limits import require_positive
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, explained, run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import plan_rebalance

_PAGE_SIZE = 500


def rebalance_plan(module: Module) -> dict[str, Any]:
    require_positive(module.params, "max_moves", "request_timeout")
    if module.params["snapshot"]:
        snapshot, where = snapshot_file.load(Path(module.params["snapshot"])), module.params["snapshot"]
    else:
        client = connect(module)
        document = take(client, _PAGE_SIZE)
        snapshot, where = document.decoded(*document.lists), client.server
    if module.params["cluster_uid"]:
        found = snapshot.header.cluster.uid if snapshot.header else "unknown"
        require_same(found, module.params["cluster_uid"], where)
    with explained("plan moves"):
        plan = plan_rebalance(snapshot, max_moves=module.params["max_moves"])
    return {"changed": False, **plan.to_json()}


def main() -> None:
    argument_spec = {
        **arguments.connection(),
        "snapshot": {"type": "path"},
        "max_moves": {"type": "int", "default": 20},
        "cluster_uid": {"type": "str"},
    }
    run(rebalance_plan, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
