# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets as the eviction API applies them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets

Object = dict[str, Any]


def pod(*, phase: str = "Running", ready: bool = True, **metadata: Any) -> Object:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    labels = {"namespace": "a", "name": "p", "labels": {"app": "db"}}
    return {"metadata": {**labels, **metadata}, "status": {"phase": phase, "conditions": [condition]}}


def budget(name: str = "b", allowed: int = 0, healthy: int = 2, desired: int = 2, **spec: Any) -> Object:
    status = {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired}
    selector = {"matchLabels": {"app": "db"}}
    return {"metadata": {"namespace": "a", "name": name}, "spec": {"selector": selector, **spec}, "status": status}


NONE_LEFT = "PodDisruptionBudget b allows no disruption, with 2 healthy pods where it wants 2"


@pytest.mark.parametrize(
    ("asked", "budgets", "reason"),
    [
        (pod(), [], ""),
        (pod(), [budget(allowed=1)], ""),
        (pod(), [budget()], NONE_LEFT),
        (pod(), [budget(selector={})], NONE_LEFT),
        (pod(), [budget(selector=None)], ""),
        (pod(namespace="z"), [budget()], ""),
        (pod(labels={}), [budget()], ""),
        (pod(phase="Pending"), [budget()], ""),
        (pod(phase="Failed"), [budget()], ""),
        (pod(deletionTimestamp="2026-01-01T00:00:00Z"), [budget()], ""),
        (pod(ready=False), [budget()], ""),
        (
            pod(ready=False),
            [budget(healthy=1)],
            "PodDisruptionBudget b allows no disruption, with 1 healthy pods where",
        ),
        (
            pod(ready=False),
            [budget(healthy=0, desired=0)],
            "PodDisruptionBudget b allows no disruption, with 0 healthy",
        ),
        (pod(ready=False), [budget(healthy=1, unhealthyPodEvictionPolicy="AlwaysAllow")], ""),
        (pod(), [budget(unhealthyPodEvictionPolicy="AlwaysAllow")], NONE_LEFT),
        (
            pod(),
            [budget(allowed=1), budget("c", allowed=1)],
            "PodDisruptionBudgets b, c all count it, and the API evicts",
        ),
    ],
)
def test_refusals(asked: Object, budgets: list[Object], reason: str) -> None:
    refusal = Budgets(budgets).refusal(asked)
    assert (refusal is not None) is bool(reason)
    assert refusal is None or refusal.reason.startswith(reason)


def test_budgets_are_found_by_whatever_they_ask_for_in_their_order() -> None:
    named = [{"key": "app", "operator": "Exists"}]
    several = [{"key": "app", "operator": "In", "values": ["db", "web"]}]
    asking = [
        ("of-it", {"matchLabels": {"tier": "back", "app": "db"}}),
        ("of-another-tier", {"matchLabels": {"app": "db", "tier": "front"}}),
        ("of-any", {"matchExpressions": named}),
        ("of-the-other", {"matchLabels": {"app": "web"}}),
        ("of-two", {"matchExpressions": several, "matchLabels": {"tier": "back"}}),
        ("of-all", {}),
    ]
    asked = pod(labels={"app": "db", "tier": "back"})
    found = Budgets(budget(name, selector=selector) for name, selector in asking)
    for budgets in (found, found.without([])):
        refusal = budgets.refusal(asked)
        assert refusal is not None
        assert refusal.budgets == ("of-it", "of-any", "of-two", "of-all")


def test_whether_waiting_helps() -> None:
    idle, strict, broken = budget(), budget(), budget()
    idle["status"]["expectedPods"] = 3
    strict["status"]["expectedPods"] = 2
    broken["status"]["conditions"] = [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}]
    cases = (([budget()], True), ([idle], True), ([strict], False), ([broken], False), ([budget(), budget("c")], False))
    for budgets, passing in cases:
        refusal = Budgets(budgets).refusal(pod())
        assert refusal is not None
        assert refusal.passing is passing
        assert list(refusal.budgets) == [item["metadata"]["name"] for item in budgets]
