# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of nodes that Kubernetes has renamed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Operation, Problem, Rule, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.node_keys import DEPRECATED, holders, says_the_same
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import (
    domain_rules,
    escape,
    node_conditions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload


def _check(cluster: Cluster) -> Iterator[Problem]:
    nodes = cluster.node_labels
    for workload in cluster.workloads:
        for field, old, renaming in _uses(workload):
            new, lacking = DEPRECATED[old], nodes.keys() - holders(old, nodes)
            same = bool(holders(new, nodes)) and says_the_same(old, new, nodes.values())
            yield Problem(
                workload.subject,
                f"It goes by the label {old}, which is deprecated: {_effect(lacking, len(nodes))}.",
                f"Use {new} instead." if same else f"Use {new} instead, and label the nodes with it first.",
                field=field,
                patch=(renaming,) if same and workload.editable else (),
                vmis=workload.running,
            )


def _effect(lacking: Collection[str], nodes: int) -> str:
    if not lacking:
        return "a node that is new may lack it, and the rule does not hold there"
    return f"{'all nodes' if len(lacking) == nodes else names(lacking)} lack it, and the rule does not hold there"


def _uses(workload: Workload) -> Iterator[tuple[str, str, Operation]]:
    """Where a deprecated key stands, the key, and the operation that renames it."""
    spec, prefix = workload.spec, workload.prefix
    for condition in node_conditions(spec, prefix):
        if condition.key not in DEPRECATED:
            continue
        if condition.pointer.startswith(f"{prefix}/nodeSelector/"):
            target = f"{prefix}/nodeSelector/{escape(DEPRECATED[condition.key])}"
            yield condition.pointer, condition.key, {"op": "move", "from": condition.pointer, "path": target}
        else:
            field = f"{condition.pointer}/key"
            yield field, condition.key, _replacement(field, condition.key, DEPRECATED)
    for term in domain_rules(spec, prefix):
        if term.topology_key in DEPRECATED:
            field = f"{term.pointer}/topologyKey"
            yield field, term.topology_key, _replacement(field, term.topology_key, DEPRECATED)


def _replacement(field: str, key: str, renamed: Mapping[str, str]) -> Operation:
    return {"op": "replace", "path": field, "value": renamed[key]}


RULE = Rule(
    id="deprecated-labels",
    severity=Severity.WARNING,
    title="A rule asks for a node label that is deprecated",
    explanation="Labels such as ``failure-domain.beta.kubernetes.io/zone`` or ``beta.kubernetes.io/arch`` are set on "
    "fewer and fewer nodes. A VM that selects by one of them cannot move to nodes that have today's label only, and "
    "rules between pods do not hold there. The patch uses today's label, where all nodes say the same by it.",
    check=_check,
    mends=True,
)
