# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception of everything that is asked for and cannot be meant so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence, shortened

# Of a run of many nodes each may have a problem, and whatever fails is printed as a whole, twice.
_MOST, _MOST_CHARACTERS = 10, 1000


class InvalidRequest(ValueError):
    """A task asks for something impossible; nothing was written. What is wrong is told at once.

    attempted: a verb with its object, as in "label the nodes". problems: clauses without a full stop, at least one.
    Of many the first are shown, to people and programs, and how many more there are; of a long one its two ends.
    remedy: what the reader can do, a sentence.
    """

    def __init__(self, attempted: str, problems: Sequence[str], remedy: str) -> None:
        self.attempted = attempted
        self.problems = list(problems)
        self.remedy = remedy
        self._shown = _first(problems)
        self._left_out = len(problems) - len(self._shown)
        count = f", {len(problems)} mistakes" if len(problems) > 1 else ""
        told = [*self._shown, *[f"and {self._left_out} more"] * bool(self._left_out)]
        super().__init__(sentence(f"Cannot {attempted}{count}: {'; '.join(told)}. {remedy}"))

    def to_json(self) -> JsonObject:
        counted = {"problems_left_out": self._left_out} if self._left_out else {}
        return {"attempted": self.attempted, "problems": self._shown, **counted, "remedy": self.remedy}


def _first(problems: Sequence[str]) -> list[str]:
    """As many as stand on a few lines, and at least one."""
    first = [shortened(problem, _MOST_CHARACTERS) for problem in problems[:_MOST]]
    lengths = accumulate(map(len, first))
    return first[: max(sum(length <= _MOST_CHARACTERS for length in lengths), 1)]
