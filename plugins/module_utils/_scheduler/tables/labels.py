# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and selectors, with many of either: those that match are found without trying each with each.

The values that one label has on many objects are numbers in an array. Matching a selector against thousands of objects
is then: decide for each distinct value once, and look the decision up for all objects in one step. Of many selectors
only those are tried on an object that are filed under a label it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IdArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    LabelSelector,
    Requirement,
)

ABSENT = -1

_Filed = TypeVar("_Filed")
Label = tuple[str, str]


class LabelColumn:
    """`ids[i]` is the number of object i's value, `ABSENT` where it has none; `values` numbers the values."""

    __slots__ = ("ids", "values")

    def __init__(self, values: Iterable[str | None]) -> None:
        self.values: dict[str, int] = {}
        self.ids: IdArray = np.fromiter((self.number(value) for value in values), dtype=np.int32)

    def number(self, value: str | None) -> int:
        """The number of a value, given to it when it is first seen."""
        return ABSENT if value is None else self.values.setdefault(value, len(self.values))

    def set(self, index: int, value: str | None) -> None:
        self.ids[index] = self.number(value)

    def grow(self, size: int) -> None:
        """Make room for `size` objects; the new ones have no value."""
        grown = np.full(size, ABSENT, dtype=np.int32)
        grown[: len(self.ids)] = self.ids
        self.ids = grown

    def matches(self, requirement: Requirement) -> BoolArray:
        """For each object, whether its value, or the lack of one, is what the requirement asks."""
        # The last place is the answer for objects without the label, which ABSENT = -1 looks up.
        accepted = np.empty(len(self.values) + 1, dtype=np.bool_)
        accepted[-1] = requirement.matches_absence()
        if requirement.operator in ("In", "NotIn"):
            accepted[:-1] = requirement.operator == "NotIn"
            known = [self.values[value] for value in requirement.values if value in self.values]
            accepted[known] = requirement.operator == "In"
        else:
            accepted[:-1] = [requirement.matches_value(value) for value in self.values]
        result: BoolArray = accepted[self.ids]
        return result


class LabelIndex(Generic[_Filed]):
    """Entries with a selector each. What `candidates` yields may match; what it leaves out cannot."""

    __slots__ = ("_by_label", "_unfiled")

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[_Filed, None]] = {}
        self._unfiled: dict[_Filed, None] = {}

    def add(self, selector: LabelSelector, entry: _Filed) -> tuple[Label, ...]:
        """File an entry; returns the labels it is filed under, by which `remove` finds it."""
        if selector.nothing:
            return ()
        required = [
            tuple((requirement.key, value) for value in requirement.values)
            for requirement in selector.requirements
            if requirement.operator == "In"
        ]
        if not required:
            self._unfiled[entry] = None
            return ()
        # Under the label that the fewest others share: many selectors require app=x, few a group of machines.
        labels = min(required, key=lambda choices: sum(len(self._by_label.get(label, ())) for label in choices))
        for label in labels:
            self._by_label.setdefault(label, {})[entry] = None
        return labels

    def remove(self, labels: tuple[Label, ...], entry: _Filed) -> None:
        self._unfiled.pop(entry, None)
        for label in labels:
            filed = self._by_label[label]
            filed.pop(entry, None)
            if not filed:
                del self._by_label[label]

    def candidates(self, labels: Labels) -> Iterator[_Filed]:
        yield from self._unfiled
        for label in labels.items():
            yield from self._by_label.get(label, ())
