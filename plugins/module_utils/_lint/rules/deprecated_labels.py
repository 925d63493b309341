# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of nodes that Kubernetes has renamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.domains import (
    DEPRECATED_LABELS,
    has_no_domain,
    holders,
    nobody,
    says_the_same,
    without_domain,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import (
    DomainRule,
    domain_rules,
    escape,
    node_conditions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels


@dataclass(frozen=True, slots=True)
class _Use:
    """Where a deprecated key stands, and the operation that renames it. `rule`: if it is one about domains."""

    field: str
    old: str
    renaming: Operation
    rule: DomainRule | None = None

    @property
    def new(self) -> str:
        return DEPRECATED_LABELS[self.old]


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    nodes = cluster.node_labels
    for workload in cluster.workloads:
        for use in _uses(workload):
            same = bool(holders(use.new, nodes)) and says_the_same(use.old, use.new, nodes.values())
            severity, effect = Severity.WARNING, f": {_lack(use.old, nodes)}"
            if use.rule and has_no_domain(use.old, workload, cluster):
                same = same and not has_no_domain(use.new, workload, cluster)
                severity = Severity.ERROR if use.rule.required else Severity.WARNING
                effect = f" and which {nobody(use.old, cluster)} has, so {without_domain(use.rule)}"
            yield Problem(
                workload.subject,
                f"It goes by the label {use.old}, which is deprecated{effect}.",
                f"Use {use.new} instead." if same else f"Use {use.new} instead, and label the nodes with it first.",
                field=use.field,
                patch=(use.renaming,) if same and workload.editable else (),
                vmis=workload.running,
                severity=severity,
            )


def _lack(key: str, nodes: Mapping[str, Labels]) -> str:
    """What follows of the nodes that do not have the label."""
    lacking = nodes.keys() - holders(key, nodes)
    if not lacking:
        return "a node that is new may lack it, and the rule does not hold there"
    return f"{'all nodes' if len(lacking) == len(nodes) else names(lacking)} lack it, and the rule does not hold there"


def _uses(workload: Workload) -> Iterator[_Use]:
    spec, prefix = workload.spec, workload.prefix
    for condition in node_conditions(spec, prefix):
        if condition.key not in DEPRECATED_LABELS:
            continue
        if condition.pointer.startswith(f"{prefix}/nodeSelector/"):
            target = f"{prefix}/nodeSelector/{escape(DEPRECATED_LABELS[condition.key])}"
            yield _Use(condition.pointer, condition.key, {"op": "move", "from": condition.pointer, "path": target})
        else:
            field = f"{condition.pointer}/key"
            yield _Use(field, condition.key, _replacement(field, condition.key))
    for rule in domain_rules(spec, prefix):
        if rule.topology_key in DEPRECATED_LABELS:
            field = f"{rule.pointer}/topologyKey"
            yield _Use(field, rule.topology_key, _replacement(field, rule.topology_key), rule)


def _replacement(field: str, key: str) -> Operation:
    return {"op": "replace", "path": field, "value": DEPRECATED_LABELS[key]}


RULE = LintRule(
    id="deprecated-labels",
    severity=Severity.WARNING,
    title="A rule asks for a node label that is deprecated",
    explanation="Labels such as ``failure-domain.beta.kubernetes.io/zone`` or ``beta.kubernetes.io/arch`` are set on "
    "fewer and fewer nodes. A VM that selects by one of them cannot move to nodes that have today's label only, and "
    "rules between pods do not hold there. It is an error where none of the nodes that the pods may run on has the "
    "label of a required rule between pods. The patch uses today's label, where all nodes say the same by it.",
    check=_check,
    mends=True,
)
