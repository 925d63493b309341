# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster that pods are placed in: nodes and storage that stay, and pods that come and go.

A change costs what the pod touches: its resources, ports and volumes, its own affinity terms, and the counts of pods
that it belongs to. It does not depend on how many pods or nodes there are. Verdicts never look at pods one by one
unless a rule asks for a kind of pods for the first time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import require_numpy
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node import Node
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node import node as parsed_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant as parsed_occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.owner_selectors import (
    OwnerSelectors,
    owner_selectors,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.pod_table import PodCounts, PodTable
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.storage_table import (
    StorageTable,
    storage_table,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.term_owners import TermOwners
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.usage import (
    AttachedVolumes,
    PortUsage,
    ResourceUsage,
    VolumeUsage,
)


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod on a node."""

    occupant: Occupant
    node: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """What happened to one pod: where it was and where it is; None: on no node."""

    before: Placement | None
    after: Placement | None


class StateError(Exception):
    """A change that does not fit the state: a pod that is there already, or is not there, or an unknown node."""


class ClusterState:
    """`namespaces`: labels by name. `nominated`: pods that preemption has promised a node, by that node.

    `promised`: those of them that are on their node for the moment; see `keeping_promises`.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        placements: Iterable[Placement] = (),
        *,
        namespaces: Mapping[str, Labels] | None = None,
        storage: StorageTable,
        owner_selectors: OwnerSelectors,
        nominated: Mapping[str, tuple[Pod, ...]] | None = None,
    ) -> None:
        self.nodes = self._nodes_as_given = NodeTable(nodes)
        self.namespaces = namespaces or {}
        self.storage = storage
        self.owner_selectors = owner_selectors
        self.nominated = nominated or {}
        self.promised: tuple[Placement, ...] = ()
        self.resources = ResourceUsage(len(self.nodes))
        self.ports = PortUsage()
        self.volumes = VolumeUsage()
        self.attached = AttachedVolumes(self.nodes, storage)
        self.terms = TermOwners()
        self._pods = PodTable()
        self.counts = PodCounts(self._pods, len(self.nodes))
        self._followers = (self.resources, self.ports, self.volumes, self.attached, self.terms, self.counts)
        self._placed: dict[str, tuple[Placement, int]] = {}
        for placement in placements:
            self._enter(placement)
        self._make_columns()

    def __contains__(self, key: str) -> bool:
        return key in self._placed

    def placement(self, key: str) -> Placement:
        """Where the pod `namespace/name` is. Raises `StateError`."""
        if key not in self._placed:
            raise StateError(f"The pod {key} is on no node.")
        return self._placed[key][0]

    def placements(self) -> list[Placement]:
        return [placement for placement, _slot in self._placed.values()]

    def cordon(self, names: Collection[str]) -> None:
        """From now on these nodes are cordoned, and no others but those that were so at first."""
        self.nodes = self._nodes_as_given.cordoned(names)

    def uncordon(self, names: Collection[str]) -> None:
        """From now on these nodes are not cordoned, though they were at first; others are as they were at first."""
        self.nodes = self._nodes_as_given = self._nodes_as_given.uncordoned(names)

    @contextmanager
    def maintained(self, names: Collection[str], labels: Labels, devices: Amounts) -> Iterator[None]:
        """As if the maintenance of these nodes were over, in a `with` statement. labels, devices: that come back."""
        before = self.nodes
        self.nodes = before.maintained(names, labels, devices)
        try:
            yield
        finally:
            self.nodes = before

    def add(self, occupant: Occupant, node: str) -> StateChange:
        """Put a pod on a node; whether it fits is not asked. Raises `StateError`."""
        if occupant.key in self._placed:
            raise StateError(f"The pod {occupant.key} is on {self._placed[occupant.key][0].node} already.")
        if node not in self.nodes.index:
            raise StateError(f"The pod {occupant.key} cannot be put on {node}: there is no such node.")
        after = Placement(occupant, node)
        self._enter(after)
        return StateChange(None, after)

    def remove(self, key: str) -> StateChange:
        """Take a pod off its node. Raises `StateError`."""
        before = self.placement(key)
        self._leave(before)
        return StateChange(before, None)

    def move(self, key: str, node: str) -> StateChange:
        """Take a pod off its node and put it on another. Raises `StateError`."""
        before = self.placement(key)
        if node not in self.nodes.index:
            raise StateError(f"The pod {key} cannot be put on {node}: there is no such node.")
        after = Placement(before.occupant, node)
        self._leave(before)
        self._enter(after)
        return StateChange(before, after)

    def undo(self, change: StateChange) -> None:
        """Make a change unhappen; several are undone in the reverse order of making them."""
        if change.after is not None:
            self._leave(change.after)
        if change.before is not None:
            self._enter(change.before)

    @contextmanager
    def keeping_promises(self, pods: Iterable[Pod], node: str) -> Iterator[None]:
        """As if the pods that the node is promised to were on it, within a `with` statement."""
        changes = [self.add(pod.occupant, node) for pod in pods if pod.occupant.key not in self]
        self.promised = tuple(change.after for change in changes if change.after is not None)
        try:
            yield
        finally:
            self.promised = ()
            for change in reversed(changes):
                self.undo(change)

    def _make_columns(self) -> None:
        """Make the columns that the next pods are likely to need, as they ask for what those on the nodes ask for."""
        for key in self.terms.label_keys():
            self._pods.column(key)
        for key in self.terms.topology_keys():
            self.nodes.column(key)

    def _enter(self, placement: Placement) -> None:
        node = self.nodes.index[placement.node]
        self._placed[placement.occupant.key] = placement, self._pods.add(placement.occupant, node)
        for follower in self._followers:
            follower.update(placement.occupant, node, 1)

    def _leave(self, placement: Placement) -> None:
        node = self.nodes.index[placement.node]
        self._pods.remove(self._placed.pop(placement.occupant.key)[1])
        for follower in self._followers:
            follower.update(placement.occupant, node, -1)


@dataclass(frozen=True, slots=True)
class ParsedCluster:
    """What states are made of. They share its nodes and pods, which nobody changes."""

    nodes: tuple[Node, ...]
    placements: tuple[Placement, ...]
    namespaces: Mapping[str, Labels]
    storage: StorageTable
    owner_selectors: OwnerSelectors
    nominated: Mapping[str, tuple[Pod, ...]]

    def state(self) -> ClusterState:
        """A new one. Raises `MissingLibrary`."""
        require_numpy()
        return ClusterState(
            self.nodes,
            self.placements,
            namespaces=self.namespaces,
            storage=self.storage,
            owner_selectors=self.owner_selectors,
            nominated=self.nominated,
        )


def cluster_state(lists: Lists) -> ClusterState:
    """The state of the cluster that the lists describe; a missing list is an empty one.

    Finished pods, and pods on nodes that are not in the list, do not count. Raises `SelectorError`, `QuantityError`,
    `MissingLibrary`.
    """
    return parsed_cluster(lists).state()


def parsed_cluster(lists: Lists) -> ParsedCluster:
    """For as many states as are wanted; the rest is as in `cluster_state`."""
    require_numpy()
    nodes = [parsed_node(raw) for raw in lists.get("nodes") or ()]
    names = {entry.name for entry in nodes}
    namespaces = {raw["metadata"]["name"]: raw["metadata"].get("labels") or {} for raw in lists.get("namespaces") or ()}
    living = [raw for raw in lists.get("pods") or () if not has_ended(raw)]
    return ParsedCluster(
        nodes=tuple(nodes),
        namespaces=namespaces,
        storage=storage_table(lists),
        owner_selectors=owner_selectors(lists),
        nominated=_nominated(living),
        placements=tuple(_placements(living, names)),
    )


def _placements(pods: Sequence[Object], names: set[str]) -> Iterator[Placement]:
    for raw in pods:
        name = raw["spec"].get("nodeName")
        if name in names:
            yield Placement(parsed_occupant(raw), name)


def _nominated(pods: Sequence[Object]) -> dict[str, tuple[Pod, ...]]:
    """Pods without a node that preemption has promised one, by that node."""
    found: defaultdict[str, list[Pod]] = defaultdict(list)
    for raw in pods:
        promised = (raw.get("status") or {}).get("nominatedNodeName")
        if promised and not raw["spec"].get("nodeName"):
            found[promised].append(parsed_pod(raw))
    return {name: tuple(promised) for name, promised in found.items()}
