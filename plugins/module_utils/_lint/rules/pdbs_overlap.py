# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that several disruption budgets count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.covered import Covered
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.pdb_never_allows import evicted_machines
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import count


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    found: defaultdict[tuple[str, str], list[Covered]] = defaultdict(list)
    for covered in cluster.budgets:
        reached = (*covered.others, *(covered.machines if evicted_machines(covered, cluster) else ()))
        for pod in reached:
            found[pod["metadata"].get("namespace") or "default", pod["metadata"]["name"]].append(covered)
    # Each overlap is told of its first budget, once with all others that it shares pods with.
    pods: defaultdict[LintedObject, int] = defaultdict(int)
    partners: defaultdict[LintedObject, set[str]] = defaultdict(set)
    for several in found.values():
        if len(several) > 1:
            first, *others = sorted((covered.subject for covered in several), key=lambda subject: subject.name)
            pods[first] += 1
            partners[first].update(subject.name for subject in others)
    for subject, shared in pods.items():
        yield Problem(
            subject,
            f"{count(shared, 'pod')} that it counts {'is' if shared == 1 else 'are'} counted by "
            f"{', '.join(sorted(partners[subject]))} too, and the API server evicts no pod of two budgets, so a drain "
            "never ends.",
            "Let one budget count each pod: narrow the selectors, or remove a budget.",
            field="/spec/selector",
        )


RULE = LintRule(
    id="pdbs-overlap",
    severity=Severity.ERROR,
    title="Two PodDisruptionBudgets count the same pod",
    explanation="The eviction API does not support it and answers with an error each time, whatever the budgets allow.",
    check=_check,
)
