# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception of everything that is asked for and cannot be meant so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence

# In the sentence for people.
_MOST = 10


class InvalidRequest(ValueError):
    """A task asks for something impossible; nothing was written. All that is wrong is told at once.

    attempted: a verb with its object, as in "label the nodes". problems: clauses without a full stop, at least one.
    remedy: what the reader can do, a sentence.
    """

    def __init__(self, attempted: str, problems: Sequence[str], remedy: str) -> None:
        count = f", {len(problems)} mistakes" if len(problems) > 1 else ""
        more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
        super().__init__(sentence(f"Cannot {attempted}{count}: {'; '.join(problems[:_MOST])}{more}. {remedy}"))
        self.attempted = attempted
        self.problems = list(problems)
        self.remedy = remedy

    def to_json(self) -> dict[str, Any]:
        return {"attempted": self.attempted, "problems": self.problems, "remedy": self.remedy}
