# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule of the linter is.

    lint.py           lists in, findings out: which rules run, and in which order findings come
    rules/            one file a rule, and registry.py with their order
    cluster.py        what rules look at: the lists, and what several rules need computed from them, once
    workloads.py      pods and VMs by the object that one would edit to change them
    placement.py      the parts of a pod's specification that decide where it may run, each with its place in it
    eligible.py       nodes that a specification admits by labels and taints
    trials.py         migrations tried in the scheduler's model, with what stands against them; stuck.py groups them
    emptying.py       a node's VMs leaving it one by one under spread constraints
    no_domain.py      rules between pods over a label that none of the nodes in question has
    population.py     pods and what templates would make, by their labels
    covered.py        disruption budgets with the pods they count
    words.py          words that several rules share; node_keys.py: labels of nodes, outdated or mistaken

A rule is asked once for a whole cluster and names each object that is at fault, what follows from it, and how to mend
it. It says nothing about objects that are well, and nothing that is not certain from what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster

Operation = dict[str, Any]


class Severity(str, Enum):
    """How much a finding matters, the worst first.

    ERROR: maintenance will stop at it, or a VM will go down. WARNING: a rule does not do what it says, or leaves no
    room to move. INFO: nothing happens yet.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object at fault, which is the one that a patch changes. `namespace` is empty for objects without one."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One object at fault.

    `consequence`, `remedy`: one sentence each. `field`: JSON pointer of what is wrong, where it is a single field.
    `aspect`: what tells it from other problems of the same rule and object where no field does.
    `patch`: operations of a JSON patch (RFC 6902) that mends it, if that can be said without asking anyone.
    `vmis`: namespace/name of the running VMIs that it concerns. `severity`: where it is not the rule's.
    """

    subject: Subject
    consequence: str
    remedy: str
    field: str = ""
    aspect: str = ""
    patch: tuple[Operation, ...] = ()
    vmis: tuple[str, ...] = ()
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` never changes once released. `title`: what is wrong. `explanation`: why it matters, for the guide (RST).

    `mends`: whether the rule's findings can have a patch.
    """

    id: str
    severity: Severity
    title: str
    explanation: str
    check: Callable[[Cluster], Iterator[Problem]]
    mends: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem together with the rule that found it."""

    rule: Rule
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

    def to_json(self) -> dict[str, Any]:
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
