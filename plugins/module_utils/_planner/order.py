# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of several plans put together: who still waits for whom, and in which order they stand."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING


def closed(actions: Mapping[str, Action], nodes: Collection[str]) -> dict[str, Action]:
    """Nobody waits for what is no longer there, and each node is maintained when all that leaves it has left."""
    batches = {action.batch for action in actions.values()}
    found = {}
    for name, action in actions.items():
        after = [other for other in action.after if other in actions or int(other.split(".")[0]) not in batches]
        if action.kind is ActionKind.MAINTAIN and action.node in nodes:
            own = [
                other.id
                for other in actions.values()
                if other.node == action.node and (other.kind in LEAVING or other.kind is ActionKind.CORDON)
            ]
            after = own if set(own) != set(after) else after
        found[name] = action if tuple(after) == action.after else replace(action, after=tuple(after))
    return found


def in_order(actions: Mapping[str, Action], order: Sequence[str]) -> Iterator[Action]:
    """As they were, the new ones behind, but nobody before what it waits for."""
    known = set(order)
    rank = {name: index for index, name in enumerate([*order, *(name for name in actions if name not in known)])}
    waits = {name: {other for other in action.after if other in actions} for name, action in actions.items()}
    behind: defaultdict[str, list[str]] = defaultdict(list)
    for name, others in waits.items():
        for other in others:
            behind[other].append(name)
    ready = [(rank[name], name) for name, others in waits.items() if not others]
    heapq.heapify(ready)
    while ready:
        _rank, name = heapq.heappop(ready)
        yield actions[name]
        for other in behind[name]:
            waits[other].discard(name)
            if not waits[other]:
                heapq.heappush(ready, (rank[other], other))
