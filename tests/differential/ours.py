# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own answers to stored cases, in the oracle's shape."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

Json = dict[str, Any]


def answers(case: Json) -> list[Json]:
    """One answer for each pod asked about. A failure of any kind is an answer too: `{"failure": text}`."""
    try:
        state = changed_state(case["lists"]) if case.get("changed") else cluster_state(case["lists"])
    except Exception as failure:  # noqa: BLE001 -- whatever it is, it is to be shown with its case
        return [{"failure": f"{type(failure).__name__}: {failure}"} for asked in case["asked"]]
    return [answer(raw, state, case) for raw in case["asked"]]


def answer(raw: Json, state: ClusterState, case: Json) -> Json:
    try:
        profile = Profile(case.get("profile") or Profile.LOW_NODE_UTILIZATION)
        return explain(pod(raw), state, scores=case.get("scores", False), profile=profile)
    except Exception as failure:  # noqa: BLE001 -- whatever it is, it is to be shown with its case
        return {"failure": f"{type(failure).__name__}: {failure}"}


def changed_state(lists: Json) -> ClusterState:
    """The state of the same cluster, come to by changes: every second pod comes later, and some go and come back."""
    pods = lists.get("pods", [])
    late = [raw for raw in pods[1::2] if _lives_on(raw, lists)]
    state = cluster_state({**lists, "pods": [raw for raw in pods if raw not in late]})
    names = list(state.nodes.index)
    for number, raw in enumerate(late):
        entry = occupant(raw)
        if number % 3 == 0:
            state.undo(state.add(entry, names[number % len(names)]))
        state.add(entry, raw["spec"]["nodeName"])
        if number % 3 == 1:
            state.undo(state.move(entry.key, names[number % len(names)]))
        if number % 3 == 2:
            state.undo(state.remove(entry.key))
    return state


def _lives_on(raw: Json, lists: Json) -> bool:
    names = [node["metadata"]["name"] for node in lists["nodes"]]
    return raw["spec"].get("nodeName") in names and not has_ended(raw)
