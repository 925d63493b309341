# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets beside each other: what several of them count, in several namespaces."""

from __future__ import annotations

import copy

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint

from integration.lint.objects import budget, deployment
from testbed.api import Object
from unit.plugins.module_utils._lint.small import cluster
from unit.plugins.module_utils._lint.world import Lists

PDBS_OVERLAP = "pdbs-overlap"


def moved(lists: Lists, namespace: str) -> Lists:
    """The cluster's pods and budgets once more, in another namespace."""
    found: Lists = {}
    for name in ("pods", "pdbs"):
        found[name] = copy.deepcopy(lists[name])
        for item in found[name]:
            item["metadata"]["namespace"] = namespace
    return found


def overlaps(lists: Lists) -> dict[str, str]:
    """Consequences by the id of the finding, which no two of them share."""
    findings = lint(lists, rules=[PDBS_OVERLAP])
    told = {finding.id: finding.problem.consequence for finding in findings}
    assert len(told) == len(findings)
    return told


def both(first: str, second: str) -> Object:
    """A budget over the pods of two applications."""
    named = budget("", f"{first}-{second}", minAvailable=1)
    named["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": [first, second]}]}
    return named


def test_budgets_of_one_name_in_two_namespaces_are_not_taken_for_each_other() -> None:
    lists = cluster(deployment(), budget("pods", "one", minAvailable=1), budget("pods", "two", minAvailable=1))
    for name, items in moved(lists, "other").items():
        lists[name] += items
    told = overlaps(lists)
    assert list(told) == [
        f"pdbs-overlap:PodDisruptionBudget/{namespace}/one#/spec/selector" for namespace in ("lint-detail", "other")
    ]
    for consequence in told.values():
        assert consequence.startswith("2 pods that it counts are counted by two too")


def test_a_budget_that_overlaps_with_others_by_other_pods_is_told_once_with_all_of_them() -> None:
    lists = cluster(
        deployment("app", replicas=1),
        deployment("bar", replicas=2),
        both("app", "bar"),
        budget("app", "for-app", minAvailable=1),
        budget("bar", "for-bar", minAvailable=1),
    )
    told = overlaps(lists)
    assert list(told) == ["pdbs-overlap:PodDisruptionBudget/lint-detail/app-bar#/spec/selector"]
    assert "3 pods that it counts are counted by for-app, for-bar too" in str(told)


def test_three_budgets_over_one_pod_are_one_finding() -> None:
    lists = cluster(deployment(), *(budget("pods", name, minAvailable=1) for name in ("c", "a", "b")))
    told = overlaps(lists)
    assert list(told) == ["pdbs-overlap:PodDisruptionBudget/lint-detail/a#/spec/selector"]
    assert "2 pods that it counts are counted by b, c too" in str(told)
