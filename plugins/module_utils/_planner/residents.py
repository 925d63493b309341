# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on the nodes that are drained: VMs, pods that have to leave, and pods that a drain leaves alone.

The same pods stay as with `kubectl drain`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    Workloads,
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import stays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
    controller,
    has_ended,
)

_HOTPLUG = "hotplug-disk"


@dataclass(frozen=True, slots=True)
class Machine:
    """A VMI with a pod on a drained node, or one that makes room elsewhere.

    `source_pod`: that pod. `attachments`: the pods that hold its hotplugged volumes there. `arriving`: it runs
    elsewhere, or nowhere yet, and the pod is the one it is to get. `unknown`: the lists do not have the VMI, of which
    only the name is there. `helps`: the drained node for whose sake it leaves another one; empty if it is on one.
    """

    vmi: Object
    node: str
    source_pod: Object
    attachments: tuple[Object, ...]
    arriving: bool
    unknown: bool
    helps: str = ""

    @property
    def emptied(self) -> str:
        """The drained node that it leaves, or helps."""
        return self.helps or self.node

    @property
    def key(self) -> str:
        """namespace/name of the VMI."""
        return title(self.vmi)

    @property
    def id(self) -> str:
        """The same of the pod, as of its mover."""
        return title(self.source_pod)

    @property
    def migrating_in(self) -> bool:
        """Whether it runs elsewhere, and the pod is where a migration brings it."""
        return self.arriving and bool((self.vmi.get("status") or {}).get("nodeName"))


@dataclass(frozen=True, slots=True)
class Resident:
    """An ordinary pod. `stays`: why a drain leaves it alone, empty if it does not."""

    pod: Object
    node: str
    stays: str

    @property
    def key(self) -> str:
        """namespace/name of the pod."""
        return title(self.pod)

    @property
    def id(self) -> str:
        """As of its mover."""
        return self.key


@dataclass(frozen=True, slots=True)
class Residents:
    """In the order of names."""

    machines: tuple[Machine, ...]
    pods: tuple[Resident, ...]


def residents(bound: Sequence[Object], workloads: Workloads) -> Residents:
    """Of the nodes that all of these pods are on."""
    attachments = _attachments(bound)
    machines, pods = [], []
    for pod in sorted(bound, key=title):
        owner, node = controller(pod) or {}, pod["spec"]["nodeName"]
        vmi = _vmi_of(pod, owner, workloads)
        if has_ended(pod) or owner.get("kind") != VMI or (vmi is None and pod["metadata"].get("deletionTimestamp")):
            pods.append(Resident(pod, node, _reason_to_stay(pod)))
            continue
        unknown = {"metadata": {"namespace": pod["metadata"].get("namespace") or "default", "name": owner["name"]}}
        arriving = vmi is not None and (
            (vmi.get("status") or {}).get("nodeName") != node or workloads.source_pod(vmi) is not pod
        )
        held = tuple(attachments.get(pod["metadata"].get("uid"), ()))
        machines.append(Machine(vmi or unknown, node, pod, held, arriving, vmi is None))
    return Residents(tuple(machines), tuple(pods))


def helpers(
    wanted: Mapping[str, str], on: Callable[[Collection[str]], Sequence[Object]], workloads: Workloads
) -> list[Machine]:
    """VMs that are to make room where they are, as far as they run.

    wanted: the nodes that they help, by namespace/name. on: the pods of nodes.
    """
    found = []
    for key, node in wanted.items():
        vmi = workloads.vmi(key)
        place = ((vmi or {}).get("status") or {}).get("nodeName")
        there = residents(on([place]), workloads).machines if place else ()
        found += [replace(machine, helps=node) for machine in there if machine.key == key and not machine.arriving]
    return found


def _vmi_of(pod: Object, owner: Object, workloads: Workloads) -> Object | None:
    if owner.get("kind") != VMI:
        return None
    vmi = workloads.vmi(f"{pod['metadata'].get('namespace') or 'default'}/{owner['name']}")
    # A VMI's successor may have its name.
    return vmi if vmi is not None and vmi["metadata"].get("uid") == owner.get("uid") else None


def _is_attachment(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("kubevirt.io") == _HOTPLUG


def _attachments(pods: Iterable[Object]) -> dict[str | None, list[Object]]:
    """By the uid of the launcher pod that they belong to."""
    found: dict[str | None, list[Object]] = {}
    for pod in pods:
        if _is_attachment(pod) and not has_ended(pod) and (owner := controller(pod)):
            found.setdefault(owner.get("uid"), []).append(pod)
    return found


def _reason_to_stay(pod: Object) -> str:
    """A sentence; empty if it has to leave."""
    if _is_attachment(pod):
        return "It holds a hotplugged volume of a VM and goes with it."
    if not stays(pod):
        return ""
    owner = controller(pod) or {}
    if has_ended(pod):
        return "It has ended."
    if owner.get("kind") == "DaemonSet":
        return f"DaemonSet {owner['name']} wants it on every node."
    return "The kubelet itself runs it (a mirror pod)."
