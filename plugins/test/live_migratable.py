# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: live_migratable
short_description: Test whether a VM can be live-migrated
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Asks whether KubeVirt would migrate the VM, whichever the node. Which nodes could take it, filter
    P(virtops.kubevirt.feasible_nodes#filter) says.
  - It is true if KubeVirt itself says so by the condition C(LiveMigratable), and nothing else stands against a
    migration that does not go away by itself. With a snapshot, resource quotas, limit ranges, the node it runs on and
    its pods are looked at, too. A backup or a migration under way only delays, and does not count.
  - A VM that does not run cannot be migrated.
options:
  _input:
    description:
      - A C(VirtualMachineInstance) or C(VirtualMachine), as the API gives it.
      - With O(snapshot) also C(namespace/name).
    type: raw
    required: true
  snapshot:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - Prefer the path. Ansible is slow with variables of thousands of objects.
      - Lists that matter are C(vmis), C(vms), C(pods), C(nodes), C(kubevirts), C(migrations), C(pvcs),
        C(resourcequotas) and C(limitranges).
    type: raw
positional: _input, snapshot
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - module: virtops.kubevirt.vmi_migration
  - plugin: virtops.kubevirt.feasible_nodes
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read a VM
  kubernetes.core.k8s_info:
    api_version: kubevirt.io/v1
    kind: VirtualMachineInstance
    namespace: shop
    name: database
  register: found

- name: Check that it can be migrated
  ansible.builtin.assert:
    that: found.resources | select('virtops.kubevirt.live_migratable') | length == 1

- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Name the VMs that would have to be restarted
  ansible.builtin.debug:
    msg: "{{ machines | reject('virtops.kubevirt.live_migratable', cluster) | join(', ') }}"
  vars:
    machines:
      - shop/database
      - shop/cache

- name: Migrate the database if that is possible
  virtops.kubevirt.vmi_migration:
    namespace: shop
    name: database
    target_node: worker-2
  when: "'shop/database' is virtops.kubevirt.live_migratable(cluster)"
"""

RETURN = r"""
_value:
  description: Whether it can be migrated.
  type: bool
"""

from collections.abc import Callable, Mapping

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Candidate
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import (
    Surroundings,
    blockers,
    surroundings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import require_shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_KIND
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._once import once

_GIVE = "Give a VirtualMachineInstance or a VirtualMachine, or with a snapshot its namespace/name."


def live_migratable(machine: object, snapshot: object = None) -> bool:
    """See RETURN. Raises AnsibleFilterError."""
    if isinstance(machine, Mapping):
        _check(machine)
    elif not isinstance(machine, str) or snapshot is None:
        raise AnsibleFilterError(f"Whether it can be migrated cannot be told of {machine!r}. {_GIVE}")
    try:
        if isinstance(machine, Mapping):
            require_shape(BY_KIND[machine.get("kind", VMI)], machine)
            if snapshot is None:
                return _by_itself(machine)
        return _among_others(machine, once(surroundings, snapshot))
    except (ExpectedError, Failure) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None


def _check(machine: Object) -> None:
    kind = machine.get("kind", VMI)
    if kind not in (VM, VMI):
        raise AnsibleFilterError(f"An object of kind {kind} cannot be migrated. {_GIVE}")
    whole = all(isinstance(machine.get(part), Mapping) for part in ("metadata", "spec"))
    if not whole or not machine["metadata"].get("name"):
        raise AnsibleFilterError(f"A {kind} without metadata.name and spec cannot be migrated. {_GIVE}")


def _by_itself(machine: Object) -> bool:
    # KubeVirt copies the condition from the VMI to its VM, which tells no more of it.
    return is_live_migratable(machine) and (machine.get("kind") == VM or not _is_stuck(Candidate(machine)))


def _among_others(machine: Object | str, around: Surroundings) -> bool:
    name = machine if isinstance(machine, str) else title(machine)
    vmi = machine if isinstance(machine, Mapping) and machine.get("kind", VMI) == VMI else around.workloads.vmi(name)
    if vmi is None:
        if isinstance(machine, str) and around.workloads.vm(name) is None:
            raise AnsibleFilterError(f"The snapshot has no VM {name!r}. Check namespace/name, and when it was taken.")
        return False
    return is_live_migratable(vmi) and not _is_stuck(around.candidate(vmi))


def _is_stuck(candidate: Candidate) -> bool:
    return any(blocker.forbids and not blocker.passing for blocker in blockers(candidate))


class TestModule:
    def tests(self) -> dict[str, Callable[..., bool]]:
        return {"live_migratable": live_migratable}
