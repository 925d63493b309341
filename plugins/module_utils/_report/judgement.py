# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan comes to in one sentence, and which of its nodes can be maintained."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import counted

_MOST_NAMED = 20


def possible(plan: Plan, done: Collection[str] = ()) -> list[str]:
    """Nodes that nothing keeps from being emptied that does not pass by itself. done: those that are maintained."""
    closed = {entry.node for entry in plan.blocked if not entry.passing}
    return [name for name in _left(plan, done) if name not in closed]


def judgement(plan: Plan, done: Collection[str] = ()) -> str:
    """Whether the plan can be carried out, and what to do if not."""
    title = f"Run {plan.run}" if plan.run else "The plan"
    left, free = _left(plan, done), possible(plan, done)
    closed = [name for name in left if name not in frozenset(free)]
    if not left:
        told = f"{title} is done with all of its nodes"
    elif closed:
        others = f", or leave them out and maintain {_listed(free)}" if free else ""
        told = (
            f"{title} cannot be carried out as things are, as {_listed(closed)} cannot be emptied: clear what stands "
            f"against it{others}"
        )
    else:
        batches = sum(not frozenset(done).issuperset(nodes) for nodes in plan.batches)
        told = f"{title} can be carried out: {_number(len(left), 'node')} in {_number(batches, 'batch', 'batches')}"
        if waiting := [entry.object.kind for entry in plan.blocked if entry.node not in done]:
            told += f"; {counted(waiting)} {'has' if len(waiting) == 1 else 'have'} to be waited for"
    return printable(f"{told}.")


def _left(plan: Plan, done: Collection[str]) -> list[str]:
    return [name for nodes in plan.batches for name in nodes if name not in done]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, single: str, several: str = "") -> str:
    return f"{count} {single if count == 1 else several or f'{single}s'}"
