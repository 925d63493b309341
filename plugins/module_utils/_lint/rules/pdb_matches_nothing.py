# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets that protect nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Problem, Rule, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.covered import budgets


def _check(cluster: Cluster) -> Iterator[Problem]:
    templates = [(workload.subject.namespace, workload.labels) for workload in cluster.workloads]
    everything = [
        (pod["metadata"].get("namespace") or "default", pod["metadata"].get("labels") or {}) for pod in cluster.pods
    ]
    for covered in budgets(cluster):
        counted = covered.machines or covered.others
        namespace = covered.subject.namespace
        if counted or any(
            place == namespace and covered.selector.matches(labels) for place, labels in (*templates, *everything)
        ):
            continue
        yield Problem(
            covered.subject,
            "Its selector matches no pod of its namespace, so it protects nothing from a drain.",
            "Correct the selector, or remove the budget.",
            field="/spec/selector",
        )


RULE = Rule(
    id="pdb-matches-nothing",
    severity=Severity.WARNING,
    title="A PodDisruptionBudget counts no pod",
    explanation="Mostly a label is misspelt, or was changed in the template and not in the budget. Templates count as "
    "well as pods.",
    check=_check,
)
