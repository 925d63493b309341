# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: feasible_nodes
short_description: Tell where a pod or a VM could run, and why not elsewhere
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Answers what kube-scheduler 1.36 would answer if the pod were to be placed in the cluster of a snapshot, in its own
    words and without asking the cluster.
  - All nodes are looked at. Running pods are not preempted for it.
  - A VM is asked about as its next pod. If it runs, that is the target pod of a live migration, with the VM's own pod
    still where it is, else the pod that it would be started with.
  - It runs on the controller.
requirements:
  - numpy >= 1.26
options:
  _input:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - Lists that matter are C(nodes), C(pods), C(namespaces), C(pvcs), C(pvs), C(storageclasses), C(csinodes),
        C(csidrivers), C(csistoragecapacities) and C(volumeattachments). For scores also C(services),
        C(replicationcontrollers), C(replicasets) and C(statefulsets).
      - For VMs also those that P(virtops.kubevirt.launcher_pod#filter) names.
      - Prefer the path. Ansible is slow with variables of thousands of objects.
    type: raw
    required: true
  pod:
    description:
      - The V(v1.Pod) to place, as an API server stores it, with defaults filled in, and
        C(matchLabelKeys) of pod affinity merged into the selectors.
      - A pod that runs already is asked about as if it came anew. Remove C(spec.nodeName) first, as with it the pod
        fits no other node.
      - Or a C(VirtualMachine), C(VirtualMachineInstance) or C(VirtualMachineInstanceReplicaSet), or the
        V(namespace/name) of one in the snapshot. Of a replica set its next replica is asked about.
    type: raw
    required: true
  added_node_selector:
    description:
      - Node labels that the VM's migration adds to its own node selector, as C(addedNodeSelector) of a
        C(VirtualMachineInstanceMigration) does. The VM then has to run.
      - A migration that is pinned to a node is another question than whether that node is among those that fit, as
        topology spread counts only the nodes that are selected.
    type: dict
    default: {}
  scores:
    description: Whether to add the score of each node that fits.
    type: bool
    default: false
extends_documentation_fragment:
  - virtops.kubevirt._profile
positional: _input, pod
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - plugin: virtops.kubevirt.launcher_pod
    plugin_type: filter
  - plugin: virtops.kubevirt.drain_feasibility
    plugin_type: filter
notes:
  - Claims on devices (C(spec.resourceClaims)) are not evaluated. The answer then names them in RV(_value.unevaluated).
  - Whether KubeVirt would migrate the VM at all is another question. See P(virtops.kubevirt.live_migratable#test).
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Say where the pod could run
  ansible.builtin.debug:
    msg: "{{ answer.fit | join(', ') or answer.message }}"
  vars:
    answer: "{{ cluster | virtops.kubevirt.feasible_nodes(pod) }}"
    pod: "{{ lookup('ansible.builtin.file', 'pod.yml') | from_yaml }}"

- name: Say where the VM could be migrated to
  ansible.builtin.debug:
    msg: "{{ answer.fit | join(', ') or answer.error | default(answer.message) }}"
  vars:
    answer: "{{ cluster | virtops.kubevirt.feasible_nodes('shop/database') }}"

- name: Say which of the nodes kube-scheduler would take
  ansible.builtin.debug:
    msg: "{{ (answer.scores | dict2items | sort(attribute='value') | last).key }}"
  vars:
    answer: "{{ cluster | virtops.kubevirt.feasible_nodes(pod, scores=true) }}"
    pod: "{{ lookup('ansible.builtin.file', 'pod.yml') | from_yaml }}"
"""

RETURN = r"""
_value:
  description: The verdict.
  type: dict
  contains:
    fit:
      description: Names of the nodes that fit.
      type: list
      elements: str
      returned: always
    unfit:
      description: For each other node, kube-scheduler's reasons.
      type: dict
      returned: always
      sample:
        worker-1:
          - node(s) were unschedulable
    message:
      description: What kube-scheduler would say, without its words on preemption. Empty when a node fits.
      type: str
      returned: always
      sample: "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient memory."
    gated:
      description: Scheduling gates that hold the pod back. The rest is answered as if they were gone.
      type: list
      elements: str
      returned: when the pod has scheduling gates
    source_node:
      description: The node that the VM runs on and would be migrated from.
      type: str
      returned: when a VM that runs is asked about
    unevaluated:
      description:
        - What the pod asks for and kube-scheduler looks at, but this answer leaves out.
        - Also what of a VM's next pod cannot be foreseen.
      type: list
      elements: str
      returned: when there is something
    scores:
      description: The total score of each node that fits. Nodes with the same score are equally good.
      type: dict
      returned: when O(scores) is true and there is no RV(_value.error)
      sample:
        worker-2: 312
        worker-3: 308
    error:
      description:
        - What kube-scheduler itself stumbles over. It then places the pod nowhere, whichever nodes fit.
        - Or why KubeVirt would make no pod for the VM, or which limit range or quota refuses the pod of its start.
          Then neither fit nor unfit nodes are named.
      type: str
      returned: when the pod cannot be judged or scored, or is not made
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeGuard

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import (
    NoMigrationError,
    next_pod,
    pod_of_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import pod as model
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import require_shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_KIND
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._once import once

# Of a spec: what a VMI has, and what VMs and replica sets have; pods have neither.
_VM_PARTS = frozenset({"domain", "template"})


def feasible_nodes(
    source: object,
    pod: object,
    *,
    added_node_selector: object = None,
    scores: bool = False,
    profile: str = Profile.LOW_NODE_UTILIZATION.value,
) -> JsonObject:
    """The verdict; see RETURN. Raises AnsibleFilterError."""
    if not isinstance(pod, str) and not _is_object(pod):
        raise AnsibleFilterError(
            "A v1.Pod with metadata and spec is expected, a VM, or the namespace/name of one. Give the whole object."
        )
    added = added_node_selector or {}
    if not isinstance(added, Mapping):
        raise AnsibleFilterError(f"`added_node_selector` is a mapping of labels to values, got {added!r}.")
    if added and _is_pod(pod):
        raise AnsibleFilterError("Only a VM's migration adds to a node selector. Give the VM instead of the pod.")
    if profile not in {known.value for known in Profile}:
        known = ", ".join(known.value for known in Profile)
        raise AnsibleFilterError(f"There is no profile {profile!r}. Give one of {known}.")
    try:
        if _is_pod(pod):
            require_shape(BY_KIND["Pod"], pod)
        ask = partial(explain, state=once(cluster_state, source), scores=scores, profile=Profile(profile))
        return ask(model.pod(pod)) if _is_pod(pod) else _of_vm(once(surroundings, source), pod, added, ask)
    except MissingLibrary as error:
        raise AnsibleFilterError(how_to_install(error)) from None
    except (ExpectedError, Failure) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None


def _of_vm(around: Surroundings, asked: Any, added: Object, ask: Callable[[model.Pod], JsonObject]) -> JsonObject:
    try:
        foretold = pod_of_migration(asked, around, added) if added else next_pod(asked, around)
    except (LauncherError, NoMigrationError) as error:
        return {"fit": [], "unfit": {}, "message": "", "error": str(error)}
    if foretold.refusals:
        return {"fit": [], "unfit": {}, "message": "", "error": f"{foretold.refusals[0]}."}
    answer = ask(model.pod(foretold.pod))
    if foretold.source_node:
        answer["source_node"] = foretold.source_node
    if foretold.open:
        answer["unevaluated"] = [*answer.get("unevaluated", ()), *foretold.open]
    return answer


def _is_pod(given: object) -> TypeGuard[Object]:
    return isinstance(given, Mapping) and not _VM_PARTS.intersection(given["spec"])


def _is_object(given: object) -> bool:
    return isinstance(given, Mapping) and all(isinstance(given.get(part), Mapping) for part in ("metadata", "spec"))


class FilterModule:
    def filters(self) -> dict[str, Callable[..., JsonObject]]:
        return {"feasible_nodes": feasible_nodes}
