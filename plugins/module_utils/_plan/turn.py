# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether it is a batch's turn in a run, or nodes before it are still out of service."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """`number`: the batch's, from 1; None if these are no batch of the run.

    overdue: names of those before it that are not done. is_open: whether it may begin. message: why not, a sentence;
    empty if it may.
    """

    number: int | None
    overdue: tuple[str, ...]
    is_open: bool
    message: str


def turn_of(
    batch: Sequence[str], batches: Sequence[Sequence[str]], done: Collection[str], most_failed: int = 0
) -> Turn:
    """batch: names, in their order. batches: of the run. done: names of all that are.

    most_failed: how many before it need not be done. Without batches there is no run, and always a turn.
    """
    named = ", ".join(batch)
    if not batches:
        return Turn(None, (), True, "")
    if list(batch) not in [list(names) for names in batches]:
        return Turn(None, (), False, f"{named}: these hosts are no batch of the plan, so nothing was begun.")
    number = [list(names) for names in batches].index(list(batch))
    overdue = tuple(sorted({name for names in batches[:number] for name in names}.difference(done)))
    if len(overdue) <= most_failed:
        return Turn(number + 1, overdue, True, "")
    be = "is" if len(overdue) == 1 else "are"
    why = f"{named}: not begun, because {', '.join(overdue)} of an earlier batch {be} not done."
    return Turn(number + 1, overdue, False, why)
