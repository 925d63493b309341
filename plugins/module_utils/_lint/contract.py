# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule of the linter is.

A rule is asked once for a whole cluster and names each object that is at fault, what follows from it, and how to mend
it. It says nothing about objects that are well, and nothing that is not certain from what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


@dataclass(frozen=True, slots=True)
class LintRule:
    """`id` never changes once released. `title`: what is wrong. `explanation`: why it matters, for the guide (RST).

    `mends`: whether the rule's findings can have a patch.
    """

    id: str
    severity: Severity
    title: str
    explanation: str
    check: Callable[[LintedCluster], Iterator[Problem]]
    mends: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem together with the rule that found it."""

    rule: LintRule
    problem: Problem

    @property
    def severity(self) -> Severity:
        return self.problem.severity or self.rule.severity

    @property
    def id(self) -> str:
        """The same for the same fault of the same object, however often one looks."""
        subject = self.problem.subject
        path = "/".join(filter(None, (subject.kind, subject.namespace, subject.name)))
        aspect, field = self.problem.aspect, self.problem.field
        return f"{self.rule.id}:{path}{f':{aspect}' if aspect else ''}{f'#{field}' if field else ''}"

    def to_json(self) -> JsonObject:
        problem, subject = self.problem, self.problem.subject
        return {
            "id": self.id,
            "rule": self.rule.id,
            "severity": self.severity.value,
            "api_version": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "field": problem.field,
            "consequence": problem.consequence,
            "remedy": problem.remedy,
            "patch": [dict(operation) for operation in problem.patch],
            "vmis": list(problem.vmis),
        }
