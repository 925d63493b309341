# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of what a task asks for: each VMI goes where it is wanted, all at once; KubeVirt queues what is too much."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    Plan,
    action_id,
    plan_of,
)


def plan_requests(prospects: Iterable[Prospect]) -> Plan:
    """Who is where it is wanted, and stays there, is not in it. All VMIs are there."""
    moving = [prospect for prospect in prospects if prospect.is_moving]
    return replace(plan_of(map(action_of, moving)), run=_run(moving))


def action_of(prospect: Prospect) -> Action:
    """By which the request comes true."""
    request, source = prospect.request, prospect.source_node
    reference = ObjectReference(VMI, request.namespace, request.name, prospect.uid)
    return Action(
        id=action_id(1, ActionKind.MIGRATE, reference),
        kind=ActionKind.MIGRATE,
        batch=1,
        node=source,
        object=reference,
        source=source,
        target=request.target_node,
        selector=dict(prospect.node_selector),
        why="It is wanted there.",
    )


def _run(prospects: Iterable[Prospect]) -> str:
    """A name of its own for each run, but the same for one that repeats what it cannot know to have happened.

    A repeated task gives its migrations the same names, so that none is created twice. When one has ended, the next run
    has another name: it does not take that one for its own attempt.
    """
    meaning = sorted(
        [prospect.uid, sorted(prospect.node_selector.items()), sorted(prospect.past)] for prospect in prospects
    )
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()[:8]
