# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes that a pod can go to, the best first; thousands of them cost little as long as nobody looks at each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import overload

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray, np


@dataclass(frozen=True, slots=True)
class Option:
    """A node for a mover. `avoided`, `uneven`: it is one to avoid, or would break the VM's own spread constraints."""

    node: str
    score: int
    avoided: bool = False
    uneven: bool = False


class Options(Sequence[Option]):
    """Nodes that are not to be avoided come first, then those that keep the constraints, then those with more points.

    Among equals the order is that of the nodes.
    """

    def __init__(
        self,
        names: Sequence[str],
        feasible: IntArray,
        scores: IntArray,
        *,
        avoided: BoolArray | None = None,
        uneven: BoolArray | None = None,
    ) -> None:
        """feasible: numbers of nodes. scores, avoided, uneven: of these nodes, in their order."""
        none = np.zeros(len(feasible), dtype=np.bool_)
        avoided, uneven = none if avoided is None else avoided, none if uneven is None else uneven
        order = np.lexsort((feasible, -scores, uneven, avoided))
        self._names = names
        self._nodes, self._scores = feasible[order], scores[order]
        self._avoided, self._uneven = avoided[order], uneven[order]

    def __len__(self) -> int:
        return len(self._nodes)

    @overload
    def __getitem__(self, index: int) -> Option: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Option]: ...

    def __getitem__(self, index: int | slice) -> Option | Sequence[Option]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return Option(
            self._names[self._nodes[index]],
            int(self._scores[index]),
            bool(self._avoided[index]),
            bool(self._uneven[index]),
        )

    @classmethod
    def none(cls) -> Options:
        nothing = np.zeros(0, dtype=np.int64)
        return cls((), nothing, nothing)

    def without(self, names: Collection[str]) -> Options:
        if not names:
            return self
        left = np.array([self._names[node] not in names for node in self._nodes], dtype=np.bool_)
        return Options(
            self._names,
            self._nodes[left],
            self._scores[left],
            avoided=self._avoided[left],
            uneven=self._uneven[left],
        )

    def points(self, nodes: int) -> IntArray:
        """Of each of so many nodes by its number, -1 where it does not fit."""
        found = np.full(nodes, -1, dtype=np.int64)
        found[self._nodes] = self._scores
        return found

    def as_good_as_the_best(self) -> tuple[str, ...]:
        """Names of the nodes with as many points as the first, of which the scheduler takes any."""
        return tuple(self._names[node] for node in self._nodes[self._scores == self._scores[:1]])
