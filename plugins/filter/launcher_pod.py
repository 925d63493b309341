# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: launcher_pod
short_description: Foretell the pod that KubeVirt makes for a VM
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Renders the C(virt-launcher) pod of a VM as virt-controller 1.8 would create it and the API server would store it,
    without asking the cluster. It has what kube-scheduler, quotas and drains look at.
  - By default it is the pod that the VM would be started with, whether it runs or not. With O(migration) it is the
    target pod of a live migration of the running VM.
  - Instance types and preferences are applied, from the revisions that KubeVirt has stored with the VM, else as the
    cluster has them. Where KubeVirt would not start the VM, because they are missing or in conflict with it, the filter
    fails and says so in KubeVirt's words.
  - What cannot be foreseen is told in warnings, such as instance types and networks that the lists do not have. So is
    what a limit range or a quota refuses. Changes by admission webhooks of third parties are
    never foreseen.
  - It runs on the controller.
options:
  _input:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - Lists that matter are C(kubevirts), C(resourcequotas), C(namespaces), C(limitranges), C(priorityclasses),
        C(runtimeclasses), C(networkattachmentdefinitions), C(pvcs), C(nodes), C(vmis) and C(pods). For VMs by name also
        C(vms) and C(vmireplicasets), for those with an instance type or a preference C(instancetypes),
        C(clusterinstancetypes), C(preferences), C(clusterpreferences) and C(controllerrevisions).
      - Without a KubeVirt object its defaults count.
      - Prefer the path. Ansible is slow with variables of thousands of objects.
    type: raw
    required: true
  vm:
    description:
      - A C(VirtualMachine), C(VirtualMachineInstance) or C(VirtualMachineInstanceReplicaSet), as the API gives it or as
        it would be created, or the V(namespace/name) of one in the snapshot.
      - A C(VirtualMachineInstance) that runs is started anew from the C(VirtualMachine) or replica set that owns it, so
        the pod is made of that one's template. With O(migration) what runs counts.
      - Of a replica set it is the pod of its next replica, with O(migration) that of the first of its
        C(VirtualMachineInstances) that runs.
    type: raw
    required: true
  migration:
    description: Whether to give the target pod of the VM's live migration.
    type: bool
    default: false
  added_node_selector:
    description:
      - Node labels that the migration adds to the VM's own node selector, as C(addedNodeSelector) of a
        C(VirtualMachineInstanceMigration) does. Where the VM asks for another value itself, that one counts.
      - Needs O(migration).
    type: dict
    default: {}
positional: _input, vm
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - plugin: virtops.kubevirt.feasible_nodes
    plugin_type: filter
notes:
  - The name of the pod, and the uid of a VM that does not exist, are made up.
  - Of volumes, those that tie the pod to nodes are there, and images.
  - VirtualMachineInstancePresets, which KubeVirt has deprecated, are not applied.
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Say what the VM requests of a node
  ansible.builtin.debug:
    msg: "{{ pod.spec.containers[0].resources.requests }}"
  vars:
    pod: "{{ cluster | virtops.kubevirt.launcher_pod('shop/database') }}"

- name: Say where another VM like this would fit
  ansible.builtin.debug:
    msg: "{{ cluster | virtops.kubevirt.feasible_nodes(pod) }}"
  vars:
    pod: "{{ cluster | virtops.kubevirt.launcher_pod(lookup('ansible.builtin.file', 'vm.yml') | from_yaml) }}"

- name: Say which labels a node needs to take the VM over
  ansible.builtin.debug:
    msg: "{{ pod.spec.nodeSelector }}"
  vars:
    pod: "{{ cluster | virtops.kubevirt.launcher_pod('shop/database', migration=true, added_node_selector=rack) }}"
    rack:
      topology.example.com/rack: b
"""

RETURN = r"""
_value:
  description: The v1.Pod.
  type: dict
  contains:
    apiVersion:
      description: Always V(v1).
      type: str
      returned: always
    kind:
      description: Always V(Pod).
      type: str
      returned: always
    metadata:
      description: Its namespace, labels and owner.
      type: dict
      returned: always
    spec:
      description:
        - Node selector, affinity, tolerations, spread constraints, scheduler, priority, runtime class with its
          overhead, resource claims, volumes, and all containers with their resources.
        - Requests are those after the API server's defaults. C(matchLabelKeys) are merged into the selectors.
      type: dict
      returned: always
"""

from collections.abc import Callable, Mapping

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import next_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._once import once

display = Display()


def launcher_pod(
    source: object, vm: object, *, migration: bool = False, added_node_selector: object = None
) -> JsonObject:
    """The pod; see RETURN. Raises AnsibleFilterError."""
    added = {} if added_node_selector is None else added_node_selector
    if not isinstance(vm, (str, Mapping)):
        raise AnsibleFilterError(f"A VM, VMI or replica set is expected, or its namespace/name, got {vm!r}.")
    if not isinstance(added, Mapping):
        raise AnsibleFilterError(f"added_node_selector is a mapping of labels to values, got {added!r}.")
    if added and not migration:
        raise AnsibleFilterError("Only a migration adds to the node selector. Set migration=true as well.")
    try:
        around = once(surroundings, source)
        found = next_pod.pod_of_migration(vm, around, added) if migration else next_pod.pod_of_start(vm, around)
    except (ExpectedError, Failure) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None
    for phrase in found.open:
        display.warning(f"Not foreseen in the pod of {found.title}: {phrase}.")
    for clause in found.refusals:
        display.warning(f"The cluster does not take the pod of {found.title}: {clause}.")
    return dict(found.pod)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., JsonObject]]:
        return {"launcher_pod": launcher_pod}
