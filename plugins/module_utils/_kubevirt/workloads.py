# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find VMs, VMIs, their replica sets and their pods in the lists of a cluster.

Follows CurrentVMIPod and VMIActivePodsCount in pkg/controller/controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from copy import copy

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    Lists,
    Object,
    controller,
    has_ended,
)

_LISTS: Mapping[str, str] = {"vmis": VMI, "vms": VM, "vmireplicasets": VMI_REPLICA_SET}


def title(item: Object) -> str:
    """namespace/name."""
    metadata = item["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


class Workloads:
    """The lists, indexed once: a few microseconds for each object. Nothing is copied."""

    def __init__(self, lists: Lists) -> None:
        self._items = {kind: {title(item): item for item in lists.get(name) or ()} for name, kind in _LISTS.items()}
        self._nodes = {node["metadata"]["name"]: node for node in lists.get("nodes") or ()}
        self._replicas: defaultdict[str, list[Object]] | None = None
        self._pods: defaultdict[str, list[Object]] = defaultdict(list)
        for pod in lists.get("pods") or ():
            owner = _controlling_vmi(pod)
            if owner:
                self._pods[owner].append(pod)

    def copy(self) -> Workloads:
        """Another one, which changes by itself."""
        found = copy(self)
        found._items = {**self._items, VMI: {**self._items[VMI]}}
        found._pods = self._pods.copy()
        return found

    def take_vmi(self, vmi: Object) -> None:
        """Put a VMI in the place of the one of its name."""
        self._items[VMI][title(vmi)] = vmi
        self._replicas = None

    def take_pod(self, pod: Object) -> None:
        if owner := _controlling_vmi(pod):
            self._pods[owner] = [*self._pods[owner], pod]

    def forget_pod(self, pod: Object) -> None:
        if owner := _controlling_vmi(pod):
            self._pods[owner] = [other for other in self._pods[owner] if other is not pod]

    def vmi(self, name: str) -> Object | None:
        """`name` is namespace/name, here and below."""
        return self._items[VMI].get(name)

    def vm(self, name: str) -> Object | None:
        return self._items[VM].get(name)

    def replica_set(self, name: str) -> Object | None:
        return self._items[VMI_REPLICA_SET].get(name)

    def find(self, name: str) -> Object | None:
        """What KubeVirt knows by this name: a VMI, as it is what runs, else a VM, else a replica set."""
        return self.vmi(name) or self.vm(name) or self.replica_set(name)

    def vmis_of(self, name: str) -> list[Object]:
        """Those that a replica set controls."""
        if self._replicas is None:
            self._replicas = defaultdict(list)
            for vmi in self._items[VMI].values():
                owner = controller(vmi)
                if owner and owner.get("kind") == VMI_REPLICA_SET:
                    namespace = vmi["metadata"].get("namespace") or "default"
                    self._replicas[f"{namespace}/{owner.get('name')}"].append(vmi)
        return self._replicas.get(name, [])

    def node(self, name: str) -> Object | None:
        return self._nodes.get(name)

    def pods(self, vmi: Object) -> list[Object]:
        """All launcher pods of a VMI, also those that have ended."""
        return self._pods.get(_key(vmi), [])

    def active_pods(self, vmi: Object) -> list[Object]:
        """Those that have not ended: one, and a second one while the VMI migrates."""
        return [pod for pod in self.pods(vmi) if not has_ended(pod)]

    def source_pod(self, vmi: Object) -> Object | None:
        """The newest pod on the VMI's node, from which a migration would start; None if there is none."""
        node = (vmi.get("status") or {}).get("nodeName") or ""
        found = [pod for pod in self.pods(vmi) if not node or (pod["spec"].get("nodeName") or "") == node]
        # Of pods made in the same second the first one counts, as it does for KubeVirt.
        return max(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""), default=None)


def _controlling_vmi(pod: Object) -> str:
    owner = controller(pod)
    return "" if owner is None or owner.get("kind") != VMI else _index(pod, owner.get("uid"), owner["name"])


def _key(vmi: Object) -> str:
    return _index(vmi, vmi["metadata"].get("uid"), vmi["metadata"]["name"])


def _index(item: Object, uid: str | None, name: str) -> str:
    """By uid, as a VMI's successor may have its name; written by hand, objects need not have one."""
    return uid or f"{item['metadata'].get('namespace') or 'default'}/{name}"
