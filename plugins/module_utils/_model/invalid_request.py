# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception of everything that is asked for and cannot be meant so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence

# Of a run of many nodes each may have a problem, and whatever fails is printed as a whole, twice.
_MOST, _MOST_CHARACTERS = 10, 1000


class InvalidRequest(ValueError):
    """A task asks for something impossible; nothing was written. What is wrong is told at once.

    attempted: a verb with its object, as in "label the nodes". problems: clauses without a full stop, at least one.
    Of many the first are shown, to people and programs.
    remedy: what the reader can do, a sentence.
    """

    def __init__(self, attempted: str, problems: Sequence[str], remedy: str) -> None:
        count = f", {len(problems)} mistakes" if len(problems) > 1 else ""
        super().__init__(sentence(f"Cannot {attempted}{count}: {'; '.join(_first(problems))}. {remedy}"))
        self.attempted = attempted
        self.problems = list(problems)
        self.remedy = remedy

    def to_json(self) -> dict[str, Any]:
        return {"attempted": self.attempted, "problems": _first(self.problems), "remedy": self.remedy}


def _first(problems: Sequence[str]) -> list[str]:
    """As many as stand on a few lines, and how many more there are."""
    lengths = accumulate(map(len, problems[:_MOST]))
    shown = max(sum(length <= _MOST_CHARACTERS for length in lengths), 1)
    left_out = len(problems) - shown
    return [*problems[:shown], *([f"and {left_out} more"] if left_out > 0 else [])]
