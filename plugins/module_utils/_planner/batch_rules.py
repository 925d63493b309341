# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people want of the batches of a run, where they do not say themselves which nodes are in which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class BatchRules:
    """size: nodes that are out of service together at most; None for as many as do not cost more migrations.

    free: whether the planner chooses the order; otherwise it is that of the nodes. apart: label keys; of the nodes with
    one value of such a label, one at a time is out of service. together: a label key; the nodes with one value are
    all done before those with the next, empty for none. first, last: names of nodes.
    """

    size: int | None = 1
    free: bool = True
    apart: tuple[str, ...] = ()
    together: str = ""
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "size": AUTO if self.size is None else self.size,
            "order": "free" if self.free else "given",
            "apart": list(self.apart),
            "together": self.together,
            "first": list(self.first),
            "last": list(self.last),
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> BatchRules:
        """From what `to_json` returned, which `is_of_batches` has looked at."""
        return cls(
            size=None if given["size"] == AUTO else given["size"],
            free=given["order"] == "free",
            apart=tuple(given["apart"]),
            together=given["together"],
            first=tuple(given["first"]),
            last=tuple(given["last"]),
        )


def is_of_batches(given: object) -> bool:
    """Whether something is what `BatchRules.to_json` returns."""
    if not isinstance(given, Mapping) or set(given) != set(BatchRules().to_json()):
        return False
    size = given["size"]
    return (
        (size == AUTO or (isinstance(size, int) and not isinstance(size, bool) and size > 0))
        and given["order"] in ("free", "given")
        and isinstance(given["together"], str)
        and all(_is_texts(given[name]) for name in ("apart", "first", "last"))
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(text, str) for text in value)
