# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selectors of pod affinity, anti-affinity and spreading that match no pod."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import (
    DomainRule,
    PodTerm,
    Spread,
    domain_rules,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import NOTHING, label_selector


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.workloads:
        required = (term for term in domain_rules(workload.spec, workload.prefix) if term.required)
        for term in required:
            if not cluster.population.has_any(_parsed(term, workload)):
                needed = isinstance(term, PodTerm) and not term.apart
                yield Problem(
                    workload.subject,
                    f"The selector matches no pod of the cluster, so {_effect(term)}.",
                    "Correct the selector or its namespaces, or remove the term.",
                    field=f"{term.pointer}/labelSelector",
                    vmis=workload.running,
                    severity=Severity.ERROR if needed else Severity.WARNING,
                )


def _effect(term: DomainRule) -> str:
    if isinstance(term, Spread):
        return "the constraint spreads nothing"
    if term.apart:
        return "the required anti-affinity keeps away from nothing"
    return "the required affinity can be met nowhere: a pod that starts or migrates stays Pending"


def _parsed(term: DomainRule, workload: Workload) -> AffinityTerm:
    selector, own = label_selector(term.raw.get("labelSelector")), frozenset({workload.subject.namespace})
    if isinstance(term, Spread):
        return AffinityTerm(term.topology_key, selector, own, NOTHING)
    named, by_labels = term.raw.get("namespaces") or (), term.raw.get("namespaceSelector")
    namespaces = frozenset(named) if named or by_labels is not None else own
    return AffinityTerm(term.topology_key, selector, namespaces, label_selector(by_labels))


RULE = LintRule(
    id="pod-selector-matches-nothing",
    severity=Severity.WARNING,
    title="A rule about neighbours selects no pod",
    explanation="Required affinity to pods that do not exist is an error, as it can be met nowhere. Anti-affinity and "
    "spread constraints without any pod do nothing, mostly for a label that is misspelt or was renamed. Templates "
    "count as well as pods, so that a workload that is scaled down is not missed.",
    check=_check,
)
