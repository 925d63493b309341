# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that one label has on many objects, as numbers in an array.

Matching a selector against thousands of objects is then: decide for each distinct value once, and look the decision
up for all objects in one step.
"""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IdArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Requirement

ABSENT = -1


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
