# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_eviction
short_description: Evict pods with respect for their disruption budgets
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Evicts pods by the eviction API, all at once, and again and again where a PodDisruptionBudget forbids it for now.
    Then waits until their controllers have as many pods ready again as before.
  - Pods of virtual machines are refused. For these there is M(virtops.kubevirt.vmi_migration).
options:
  pods:
    description: The pods. One that is not there counts as evicted.
    type: list
    elements: dict
    required: true
    suboptions:
      namespace:
        description: Namespace of the pod.
        type: str
        required: true
      name:
        description: Its name.
        type: str
        required: true
  terminate_grace_period:
    description: Seconds that the pods get to end, in place of their own.
    type: int
  wait_timeout:
    description:
      - Seconds the whole task may take. After it the task fails and tells what is left and why.
    type: int
    default: 600
  lease_namespace:
    description: Namespace of the Leases, in which that of O(run) is.
    type: str
    default: medik8s-leases
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
      - Each eviction is put to the server, disruption budgets included, without being done.
  diff_mode:
    support: full
    details:
      - Lists the pods that are evicted.
  idempotent:
    support: full
    details:
      - A pod's name is its own, so a second run finds it gone. Pods of a StatefulSet keep their names, and a second run
        evicts the new ones.
notes:
  - The permissions to list pods in their namespaces and to create C(pods/eviction) are needed, and nothing else outside
    of a run. With O(invocation) the Lease of the run is read, and renewed where nobody does so any more, and with
    O(cluster_uid) namespace C(kube-system) is read.
  - Where the module runs on the controller, as with C(delegate_to=localhost), progress is shown on stderr meanwhile,
    and each phase with C(-v). On other hosts, or as another user, it works in silence.
  - The task cannot be run with C(async).
seealso:
  - module: virtops.kubevirt.node_drain
  - module: virtops.kubevirt.rebalance_plan
"""

EXAMPLES = r"""
- name: Let a cache come up where it would rather be
  virtops.kubevirt.pod_eviction:
    pods:
      - namespace: customapp
        name: varnish-cache-df6b77976-4b9js
  register: moved

- name: Show where it is now
  ansible.builtin.debug:
    msg: "{{ moved.replacements[0].pods[0].node }}"
"""

RETURN = r"""
evicted:
  description: The pods that were there.
  returned: success, and failure once something was tried
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the pod.
      returned: success
      type: str
      sample: customapp
    name:
      description: Its name.
      returned: success
      type: str
      sample: varnish-cache-df6b77976-4b9js
    outcome:
      description:
        - V(evicted), V(gone) by itself or by others, V(would_evict) in check mode, V(failed), or in the end V(waiting)
          or V(evicting). In check mode the latter is one that is ending already.
      returned: success
      type: str
      sample: evicted
    seconds:
      description: From the first attempt to the end of the pod.
      returned: success
      type: int
      sample: 2
    expected_node:
      description: Where a plan expects what comes in its place; empty, as there is none.
      returned: success
      type: str
      sample: ""
    refusal:
      description: Why the server refused the last attempt, or would for now in check mode; else empty.
      returned: success
      type: str
      sample: Cannot evict pod as it would violate the pod's disruption budget.
gone:
  description: The pods that were not there, C(namespace/name).
  returned: success, and failure once something was tried
  type: list
  elements: str
  sample: []
replacements:
  description: What came in their place, by controller.
  returned: success, and failure once something was tried
  type: list
  elements: dict
  contains:
    controller:
      description: The controller, C(namespace/name).
      returned: success
      type: str
      sample: customapp/varnish-cache-df6b77976
    kind:
      description: Its kind.
      returned: success
      type: str
      sample: ReplicaSet
    pods:
      description: Names and nodes of the pods that it has made since.
      returned: success
      type: list
      elements: dict
      sample: [{"name": "varnish-cache-df6b77976-lbmxl", "node": "kni-worker"}]
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: evict 3 pods
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
        - One word for the cause, the server's own where it gave one. V(EvictionFailed) if a pod cannot be evicted,
          V(DeadlineExceeded) if O(wait_timeout) was over before.
        - V(RunLost) if O(invocation) does not hold O(run) any more, V(OtherCluster) if O(cluster_uid) is another's.
      returned: when something was tried
      type: str
      sample: DeadlineExceeded
    server_message:
      description: What is wrong with which pod, or the words of the server.
      returned: when something was tried
      type: str
      sample: "after 600 s pod shop/web-1: held back, Cannot evict pod as it would violate the pod's disruption budget."
    problems:
      description: What is wrong with the task, or with which pod.
      returned: when there is such a thing
      type: list
      elements: str
      sample: ["pod shop/web-1: held back, Cannot evict pod as it would violate the pod's disruption budget."]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Remove the cause and run the task again; pods that are gone stay gone.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, eviction_task, guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def pod_eviction(module: Module) -> JsonObject:
    deadline = Deadline(module.params["wait_timeout"])
    pods = eviction_task.wanted(module.params)
    client = connect(module)
    may = guard.require(client, module.params, dry_run=module.check_mode)
    return eviction_task.evict(module, client, deadline, pods, may)


def main() -> None:
    argument_spec = {**arguments.connection(), **eviction_task.spec()}
    run(pod_eviction, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
