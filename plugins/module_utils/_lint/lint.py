# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists in, findings out."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Finding, LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.registry import LINT_RULES
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists


class UnknownRule(ExpectedError, ValueError):
    """A rule is asked for that does not exist: one sentence that names it and those that do."""


def lint(
    lists: Lists,
    *,
    rules: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    severity: Severity = Severity.INFO,
    window: int | None = None,
    schedulers: Iterable[str] = (),
) -> list[Finding]:
    """The findings that are at least as severe as asked, the worst first, then in the order of rules and names.

    `rules`: ids of the only rules to run, None for all; `skip`: ids of rules to leave out. `window` in seconds.
    Raises `UnknownRule`, `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    cluster = LintedCluster(lists, window=window, schedulers=schedulers)
    found = [
        Finding(rule, problem)
        for rule in _chosen(rules, skip)
        for problem in rule.check(cluster)
        if (problem.severity or rule.severity).rank <= severity.rank
    ]
    order = {rule.id: number for number, rule in enumerate(LINT_RULES)}
    return sorted(found, key=lambda finding: (finding.severity.rank, order[finding.rule.id], finding.id))


def _chosen(wanted: Iterable[str] | None, skipped: Iterable[str]) -> list[LintRule]:
    known = {rule.id for rule in LINT_RULES}
    wanted, skipped = known if wanted is None else frozenset(wanted), frozenset(skipped)
    unknown = sorted((wanted | skipped) - known)
    if unknown:
        absent = "There is no rule" if len(unknown) == 1 else "There are no rules"
        raise UnknownRule(f"{absent} {', '.join(unknown)}. The rules are {', '.join(sorted(known))}.")
    return [rule for rule in LINT_RULES if rule.id in wanted - skipped]
