# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of options that Ansible's argument spec cannot express."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.batch_rules import AUTO


def require_positive(params: Mapping[str, Any], *names: str) -> None:
    """Raise InvalidRequest unless each of the numbers is at least 1."""
    problems = [f"{name} is {params[name]}" for name in names if params[name] < 1]
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Give a number of at least 1.")


def size_of_batch(wanted: str, nodes: int, run: int) -> int | None:
    """How many of the nodes are out of service together at most; a share is rounded as Ansible's `serial` does.

    None: the planner is to say. run: how many nodes the run has, also those that are done and not named any more, so
    that a run that goes on may be asked for with the number that it began with. Raises InvalidRequest.
    """
    if wanted.strip() == AUTO:
        return None
    found = re.fullmatch(r"\s*([0-9]{1,9})(%?)\s*", wanted)
    number, is_share = (int(found[1]), bool(found[2])) if found else (0, False)
    problem = f"batch is {brief(wanted.strip())}"
    if is_share and number > 100:
        problem += ", but a run has no more than all of its nodes"
    elif number > max(run, 1) and not is_share:
        problem += f", but the run has {run} node{'' if run == 1 else 's'}"
    elif number > 0:
        return max(nodes * number // 100, 1) if is_share else number
    remedy = f"Give a number of nodes such as 2, a share of them such as 25%, or {AUTO}."
    raise InvalidRequest("read the options of the task", [problem], remedy)
