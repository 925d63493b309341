# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that are bound to nodes by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import NodeCondition, node_conditions
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME

_NAMING = (HOSTNAME, "metadata.name")


def bound_to(workload: Workload) -> frozenset[str]:
    """The only nodes that a workload names; empty if it may run on others as well."""
    return _bound(_required(workload))


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.vms:
        conditions = _required(workload)
        nodes, naming = _bound(conditions), [entry for entry in conditions if _names(entry)]
        if not nodes:
            continue
        alone = len(nodes) == 1
        effect = (
            f"it can run on {names(nodes)} alone: it cannot migrate, and maintenance of that node stops at it or stops "
            "it"
            if alone
            else f"it can run on {names(nodes)} alone, and is never moved to a node that is new"
        )
        yield Problem(
            workload.subject,
            f"Its nodes are chosen by name, so {effect}.",
            "Choose nodes by what they have, such as a zone or a label for their kind, not by their names.",
            field=naming[0].pointer,
            patch=tuple(_removals(naming, workload)),
            vmis=workload.running,
            severity=Severity.ERROR if alone else Severity.WARNING,
        )


def _required(workload: Workload) -> list[NodeCondition]:
    return [entry for entry in node_conditions(workload.spec, workload.prefix) if entry.required]


def _names(condition: NodeCondition) -> bool:
    return condition.key in _NAMING and condition.operator == "In"


def _bound(conditions: Sequence[NodeCondition]) -> frozenset[str]:
    """The names that are left when selector and terms must both hold; empty if nothing binds."""
    naming = [entry for entry in conditions if _names(entry)]
    bounds = [frozenset(entry.values) for entry in naming if entry.term is None]
    terms = {entry.term for entry in conditions if entry.term is not None}
    # Terms are alternatives: one without a name leaves the others open.
    if terms and terms == {entry.term for entry in naming if entry.term is not None}:
        bounds.append(frozenset(name for entry in naming if entry.term is not None for name in entry.values))
    return frozenset.intersection(*bounds) if bounds else frozenset()


def _removals(naming: Sequence[NodeCondition], workload: Workload) -> Iterator[Operation]:
    """Of the node selector only: what is to be left of a term of affinity is for a person to say."""
    if workload.editable and all(entry.term is None for entry in naming):
        for entry in naming:
            yield {"op": "remove", "path": entry.pointer}


RULE = LintRule(
    id="host-name-in-selector",
    severity=Severity.ERROR,
    title="A VM is bound to nodes by their names",
    explanation="With one name there is nowhere to migrate to. The migration that a drain asks for stays Pending, and "
    "``addedNodeSelector`` of a migration cannot change it, as a VM's own node selector wins over it. Several names "
    "are a warning. The patch removes a name from the node selector, terms of node affinity have to be edited by "
    "hand.",
    check=_check,
    mends=True,
)
