# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node selectors and required node affinity that no node meets."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import NodeCondition, node_conditions
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Requirement


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.workloads:
        conditions = [entry for entry in node_conditions(workload.spec, workload.prefix) if entry.required]
        if not conditions or cluster.eligible(workload, tainted=True):
            continue
        if not cluster.eligible(workload, selected=False, tainted=True):
            continue  # not even without its own conditions, which are thus not at fault
        unmet = _unmet(conditions, cluster)
        what = ", ".join(unmet) if unmet else "its node selector and node affinity together"
        yield Problem(
            workload.subject,
            f"No node meets {what}, so its pods stay Pending when they start, restart or migrate.",
            "Correct the condition, or label the nodes that are meant.",
            field=_place(workload),
            vmis=workload.running,
        )


def _unmet(conditions: list[NodeCondition], cluster: LintedCluster) -> list[str]:
    """The conditions that no node meets, each by itself."""
    found = []
    for entry in conditions:
        requirement = Requirement(entry.key, entry.operator, entry.values)
        by_name = entry.pointer.rpartition("/")[0].endswith("/matchFields")
        nodes = cluster.node_labels.items()
        labels = ({"metadata.name": name} if by_name else labels for name, labels in nodes)
        if not any(requirement.matches(given) for given in labels):
            found.append(f"{entry.key} {entry.operator} {', '.join(entry.values)}".strip())
    return found


def _place(workload: Workload) -> str:
    """The part at fault, if it is one of the two alone."""
    selector = bool(workload.spec.get("nodeSelector"))
    terms = bool((workload.spec.get("affinity") or {}).get("nodeAffinity"))
    if selector and terms:
        return ""
    return f"{workload.prefix}/nodeSelector" if selector else f"{workload.prefix}/affinity/nodeAffinity"


RULE = LintRule(
    id="node-selector-matches-nothing",
    severity=Severity.ERROR,
    title="A node selector or required node affinity is met by no node",
    explanation="What runs keeps running, as the scheduler looks at nodes only when a pod is new. But nothing can "
    "start, restart or migrate. KubeVirt's own conditions on nodes are taken into account.",
    check=_check,
)
