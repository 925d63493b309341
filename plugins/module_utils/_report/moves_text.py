# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan by which things only move, as lines of text: one after the other what moves, to where, and why."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import named
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import stages


def moves_text(plan: Plan, message: str) -> list[str]:
    """The lines, after the plan in a sentence. What has the same number may move at the same time."""
    return [printable(line) for line in (message, *_lines(plan))]


def _lines(plan: Plan) -> Iterator[str]:
    for number, actions in enumerate(stages(plan), start=1):
        for action in actions:
            where = f"{action.source} -> {action.target or 'another node'}"
            yield f"{number}. {named(action.object)}: {where}. {action.why}"
