# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selectors are not tried on each pod of a large namespace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, LabelSelector

from integration.lint.objects import budget
from testbed.api import Object
from unit.plugins.module_utils._lint.world import Lists
from unit.plugins.module_utils._scheduler.builders import apart, node, pod, term

APPS = [f"app-{number}" for number in range(100)]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often labels were held against a selector since the last time."""
    calls = 0
    matches = LabelSelector.matches

    def counting(self: LabelSelector, labels: Labels) -> bool:
        nonlocal calls
        calls += 1
        return matches(self, labels)

    def count() -> int:
        nonlocal calls
        found, calls = calls, 0
        return found

    monkeypatch.setattr(LabelSelector, "matches", counting)
    return count


def applications(**spec: Callable[[str], Object]) -> Lists:
    """A pod of each application on one node; `spec` makes a field of its specification out of its name."""
    pods = [
        pod(app, on="a", labels={"app": app, "tier": "all"}, **{name: make(app) for name, make in spec.items()})
        for app in APPS
    ]
    return {"nodes": [node("a")], "pods": pods}


def of_another(app: str) -> Object:
    """Anti-affinity to the application after the next."""
    other = APPS[(APPS.index(app) + 2) % len(APPS)]
    return apart(term("kubernetes.io/hostname", {"matchLabels": {"tier": "all", "app": other}}))


def test_budgets_are_matched_once_and_by_a_label(tried: Callable[[], int]) -> None:
    lists = applications()
    lists["pdbs"] = [budget(app, app, maxUnavailable=1) for app in APPS]
    for item in lists["pdbs"]:
        item["metadata"]["namespace"] = "default"
    pdbs = ["pdb-never-allows", "pdb-blind-to-vms", "pdbs-overlap", "pdb-matches-nothing"]
    assert lint(lists, rules=pdbs) == []
    assert tried() <= 2 * len(APPS)


def test_terms_between_pods_are_matched_by_a_label(tried: Callable[[], int]) -> None:
    assert lint(applications(affinity=of_another), rules=["pod-selector-matches-nothing"]) == []
    assert tried() <= 2 * len(APPS)


def test_a_term_that_selects_nobody_is_not_tried_at_all(tried: Callable[[], int]) -> None:
    lists = applications(affinity=lambda app: apart(term("zone", {"matchLabels": {"tier": "all", "app": f"no-{app}"}})))
    assert len(lint(lists, rules=["pod-selector-matches-nothing"])) == len(APPS)
    # Of namespaces, whose labels no term asks for.
    assert tried() <= 2 * len(APPS)
