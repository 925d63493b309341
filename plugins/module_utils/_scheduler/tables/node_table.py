# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All nodes side by side: one array for each label, each resource, and each question asked of them before.

The nodes with the same value of a label are a domain; counts on nodes are added up over topology domains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import (
    BoolArray,
    IdArray,
    IntArray,
    np,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node import Node
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import NodeAffinityTerms
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import Amounts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    NodeSelectorTerm,
    Requirement,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import (
    KEEPING_OUT,
    Taint,
    Toleration,
    tolerated,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.labels import LabelColumn

# One answer is an array of a byte for each node: a thousand of them for 5,000 nodes are 5 MB.
_REMEMBERED = 4096

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """A cache for what is derived from things that do not change; what was used longest ago is dropped."""

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[Hashable, Value] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made if it is not known."""
        known = self._known
        if key in known:
            value = known.pop(key)
        else:
            if len(known) >= self._limit:
                known.pop(next(iter(known)))
            value = make()
        known[key] = value
        return value


class NodeTable:
    """Immutable but for its caches. Nodes are numbered in the order given; every array has one entry for each."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.names: tuple[str, ...] = tuple(node.name for node in self.nodes)
        self.index: dict[str, int] = {name: number for number, name in enumerate(self.names)}
        self.unschedulable: BoolArray = np.fromiter((node.unschedulable for node in self.nodes), dtype=np.bool_)
        self._columns: dict[str, LabelColumn] = {}
        self._allocatable: dict[str, IntArray] = {}
        self._images: dict[str, tuple[IntArray, int]] = {}
        self._answers: Memo[BoolArray] = Memo(_REMEMBERED)
        # The distinct sets of taints, of which a cluster has few, by their numbers; and the number of each node's.
        self._taints: dict[tuple[Taint, ...], int] = {}
        numbers = (self._taints.setdefault(node.taints, len(self._taints)) for node in self.nodes)
        self._taint_ids: IdArray = np.fromiter(numbers, dtype=np.int32)

    def cordoned(self, names: Iterable[str]) -> NodeTable:
        """The same nodes, these cordoned and tainted for it. What does not depend on that is shared."""
        return self._changed(names, Node.cordoned)

    def uncordoned(self, names: Iterable[str]) -> NodeTable:
        """The same nodes, these with their cordons lifted."""
        return self._changed(names, Node.uncordoned)

    def maintained(self, names: Iterable[str], labels: Labels, devices: Amounts) -> NodeTable:
        """The same nodes, the maintenance of these over, with labels and devices that come back by it."""
        found = self._changed(names, lambda node: node.maintained(labels, devices))
        found._columns = {key: column for key, column in self._columns.items() if key not in labels}
        found._allocatable = {name: amounts for name, amounts in self._allocatable.items() if name not in devices}
        return found

    def _changed(self, names: Iterable[str], change: Callable[[Node], Node]) -> NodeTable:
        """With other cordons and taints of some nodes, at a cost that grows with these, but for copies of arrays."""
        found, nodes = copy(self), list(self.nodes)
        found.unschedulable, found._taint_ids = self.unschedulable.copy(), self._taint_ids.copy()
        found._taints, found._answers = dict(self._taints), Memo(_REMEMBERED)
        for number in (self.index[name] for name in names if name in self.index):
            node = nodes[number] = change(nodes[number])
            found.unschedulable[number] = node.unschedulable
            found._taint_ids[number] = found._taints.setdefault(node.taints, len(found._taints))
        found.nodes = tuple(nodes)
        return found

    def __len__(self) -> int:
        return len(self.nodes)

    def none(self) -> BoolArray:
        return np.zeros(len(self), dtype=np.bool_)

    def all(self) -> BoolArray:
        return np.ones(len(self), dtype=np.bool_)

    def named(self, names: Iterable[str]) -> BoolArray:
        result = self.none()
        result[[self.index[name] for name in names if name in self.index]] = True
        return result

    def numbered(self, numbers: Iterable[int]) -> BoolArray:
        result = self.none()
        result[list(numbers)] = True
        return result

    def column(self, key: str) -> LabelColumn:
        """The label `key` of all nodes."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(node.labels.get(key) for node in self.nodes)
        return column

    def domains(self, topology_key: str) -> IdArray:
        """The number of each node's domain; -1 where the node has no such label."""
        return self.column(topology_key).ids

    def allocatable(self, resource: str) -> IntArray:
        """What each node offers; 0 where it does not know the resource."""
        amounts = self._allocatable.get(resource)
        if amounts is None:
            values = (node.allocatable.get(resource, 0) for node in self.nodes)
            amounts = self._allocatable[resource] = np.fromiter(values, dtype=np.int64)
        return amounts

    def image(self, name: str) -> tuple[IntArray, int]:
        """The nodes that have an image, and its size in bytes: what the first of them says, as upstream takes it."""
        found = self._images.get(name)
        if found is None:
            holders = [number for number, node in enumerate(self.nodes) if name in node.images]
            size = self.nodes[holders[0]].images[name] if holders else 0
            found = self._images[name] = np.array(holders, dtype=np.int64), size
        return found

    def matching(self, requirements: Sequence[Requirement]) -> BoolArray:
        """Nodes whose labels meet all requirements."""
        result = self.all()
        for requirement in requirements:
            result &= self._remember(requirement, partial(self.column(requirement.key).matches, requirement))
        return result

    def admitted_by_terms(self, terms: tuple[NodeSelectorTerm, ...], *, by_name: bool = True) -> BoolArray:
        """Nodes that meet at least one term. `by_name`: conditions on the node's name are looked at."""
        return self._remember((terms, by_name), lambda: self._meet_any(terms, by_name=by_name))

    def admitted_by_affinity(self, affinity: NodeAffinityTerms) -> BoolArray:
        """Nodes that the pod's node selector and required node affinity admit."""
        result = self.matching(affinity.selector)
        return result if affinity.required is None else result & self.admitted_by_terms(affinity.required)

    def meeting(self, term: NodeSelectorTerm, *, by_name: bool = True) -> BoolArray:
        """Nodes that meet one term; an empty or invalid one is met by none."""
        if term.empty or term.invalid:
            return self.none()
        result = self.matching(term.labels)
        for field in term.fields if by_name else ():
            result = result & self._with_name(field)
        return result

    def tolerable(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        """Nodes without a taint that keeps a pod with these tolerations out."""
        return self._remember(("taints", tolerations), lambda: self._tolerable(tolerations))

    def count_taints(self, tolerations: tuple[Toleration, ...], effect: str) -> IntArray:
        """How many taints of one effect are not tolerated."""
        counts = [
            sum(taint.effect == effect and not tolerated(taint, tolerations) for taint in taints)
            for taints in self._taints
        ]
        result: IntArray = np.array(counts, dtype=np.int64)[self._taint_ids]
        return result

    def _remember(self, question: Hashable, answer: Callable[[], BoolArray]) -> BoolArray:
        """The answer to a question that may have been asked before. It is read-only, as others get the same array."""
        result = self._answers.get(question, answer)
        result.flags.writeable = False
        return result

    def _meet_any(self, terms: Sequence[NodeSelectorTerm], *, by_name: bool) -> BoolArray:
        result = self.none()
        for term in terms:
            result |= self.meeting(term, by_name=by_name)
        return result

    def _with_name(self, field: Requirement) -> BoolArray:
        """metadata.name is the one field there is; every other one is empty."""
        if field.key != "metadata.name":
            return np.full(len(self), field.matches_value(""), dtype=np.bool_)
        named = self.named(field.values)
        return named if field.operator == "In" else ~named

    def _tolerable(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        verdicts = [
            all(taint.effect not in KEEPING_OUT or tolerated(taint, tolerations) for taint in taints)
            for taints in self._taints
        ]
        result: BoolArray = np.array(verdicts, dtype=np.bool_)[self._taint_ids]
        return result


@dataclass(frozen=True, slots=True)
class Domains:
    """`ids`: the domain of each node, -1 for none.

    Arrays by domain have one place more than there are domains; the last, which -1 looks up, is for nodes without one.
    """

    ids: IdArray
    size: int

    def exists(self) -> BoolArray:
        """Nodes that belong to a domain."""
        result: BoolArray = self.ids >= 0
        return result

    def add_up(self, counts: IntArray, nodes: BoolArray | None = None) -> IntArray:
        """Sums by domain, of the given nodes or of all; 0 for nodes without a domain."""
        within = self.exists() if nodes is None else self.exists() & nodes
        # Float64 adds integers exactly up to 2^53, far more than there are pods.
        sums = np.bincount(self.ids[within], weights=counts[within], minlength=self.size + 1)
        result: IntArray = sums.astype(np.int64)
        return result

    def present(self, nodes: BoolArray) -> BoolArray:
        """Domains with at least one of the nodes."""
        result: BoolArray = np.bincount(self.ids[self.exists() & nodes], minlength=self.size + 1) > 0
        return result


def domains_of(nodes: NodeTable, topology_key: str) -> Domains:
    column = nodes.column(topology_key)
    return Domains(column.ids, len(column.values))


def domains_with_blank(nodes: NodeTable, topology_key: str) -> Domains:
    """The same, but nodes without the label are together in one more domain, with those whose label is empty."""
    column = nodes.column(topology_key)
    blank = column.values.get("", len(column.values))
    ids: IdArray = np.where(column.ids < 0, blank, column.ids)
    return Domains(ids, max(len(column.values), blank + 1))
