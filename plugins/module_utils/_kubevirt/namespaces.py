# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a cluster shapes the pods of each of its namespaces, indexed once for the questions about many VMs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

_RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
_FREQUENCY = "cpu-timer.node.kubevirt.io/tsc-frequency"


@dataclass(frozen=True, slots=True)
class Namespace:
    """What shapes the pods of one namespace, each empty where nothing is known.

    labels: None if the namespace itself is not known. claims: PersistentVolumeClaims by name. priority_classes,
    runtime_classes: by name. The rest is the same for all namespaces: the image of virt-launcher as pods that run
    already have it (nodes that hold it score higher), the lowest frequency of a time stamp counter, in hertz, among the
    nodes that run VMs or may, and by namespace/name of each NetworkAttachmentDefinition the device that its network
    takes, empty if it takes none.
    """

    labels: Labels | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    limit_ranges: Sequence[Object] = ()
    quotas: Sequence[Object] = ()
    claims: Mapping[str, Object] = field(default_factory=dict)
    priority_classes: Mapping[str, Object] = field(default_factory=dict)
    runtime_classes: Mapping[str, Object] = field(default_factory=dict)
    launcher_image: str = ""
    tsc_frequency: int = 0
    network_devices: Mapping[str, str] = field(default_factory=dict)


class Namespaces:
    """Some 2 microseconds for each claim and quota. Nothing is copied."""

    def __init__(self, lists: Lists) -> None:
        self.claims_known = bool(lists.get("pvcs"))
        self._common = Namespace(
            priority_classes=_by_name(lists.get("priorityclasses") or ()),
            runtime_classes=_by_name(lists.get("runtimeclasses") or ()),
            launcher_image=_launcher_image(lists.get("pods") or ()),
            tsc_frequency=min(_frequencies(lists), default=0),
            network_devices=dict(_network_devices(lists.get("networkattachmentdefinitions") or ())),
        )
        self._metadata = {item["metadata"]["name"]: item["metadata"] for item in lists.get("namespaces") or ()}
        self._limit_ranges, self._quotas, self._claims = (
            _by_namespace(lists.get(name) or ()) for name in ("limitranges", "resourcequotas", "pvcs")
        )
        self._known: dict[str, Namespace] = {}

    def of(self, item: Object) -> Namespace:
        """That of an object with a namespace."""
        return self.named(item["metadata"].get("namespace") or "default")

    def named(self, name: str) -> Namespace:
        if name not in self._known:
            metadata = self._metadata.get(name)
            self._known[name] = replace(
                self._common,
                labels=None if metadata is None else metadata.get("labels") or {},
                annotations=(metadata or {}).get("annotations") or {},
                limit_ranges=self._limit_ranges.get(name, ()),
                quotas=self._quotas.get(name, ()),
                claims=_by_name(self._claims.get(name, ())),
            )
        return self._known[name]


def _by_name(items: Iterable[Object]) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in items}


def _by_namespace(items: Iterable[Object]) -> dict[str, list[Object]]:
    found: defaultdict[str, list[Object]] = defaultdict(list)
    for item in items:
        found[item["metadata"].get("namespace") or "default"].append(item)
    return found


def _network_devices(definitions: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for item in definitions:
        metadata = item["metadata"]
        title = f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
        yield title, (metadata.get("annotations") or {}).get(_RESOURCE_NAME) or ""


def _launcher_image(pods: Iterable[Object]) -> str:
    for pod in pods:
        if (pod["metadata"].get("labels") or {}).get("kubevirt.io") == "virt-launcher":
            return next((str(item.get("image") or "") for item in pod["spec"].get("containers") or ()), "")
    return ""


def _frequencies(lists: Lists) -> Iterator[int]:
    """Of nodes on which VMIs may run, or do."""
    busy = {(vmi.get("status") or {}).get("nodeName") for vmi in lists.get("vmis") or ()}
    for node in lists.get("nodes") or ():
        labels = node["metadata"].get("labels") or {}
        text = labels.get(_FREQUENCY, "")
        if text.isdecimal() and int(text) and (labels.get(SCHEDULABLE) == "true" or node["metadata"]["name"] in busy):
            yield int(text)
