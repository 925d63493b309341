# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets that protect nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for covered in cluster.budgets:
        counted = covered.machines or covered.others
        if counted or any(cluster.population.matching(covered.subject.namespace, covered.selector)):
            continue
        yield Problem(
            covered.subject,
            "Its selector matches no pod of its namespace, so it protects nothing from a drain.",
            "Correct the selector, or remove the budget.",
            field="/spec/selector",
        )


RULE = LintRule(
    id="pdb-matches-nothing",
    severity=Severity.WARNING,
    title="A PodDisruptionBudget counts no pod",
    explanation="Mostly a label is misspelt, or was changed in the template and not in the budget. Templates count as "
    "well as pods.",
    check=_check,
)
