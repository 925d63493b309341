# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selectors of pod affinity, anti-affinity and spreading that match no pod."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Problem, Rule, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import (
    DomainRule,
    PodTerm,
    Spread,
    domain_rules,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    NOTHING,
    Labels,
    label_selector,
)

_KUBEVIRT = {"kubevirt.io": "virt-launcher"}


def _check(cluster: Cluster) -> Iterator[Problem]:
    population = _Population(cluster)
    for workload in cluster.workloads:
        required = (term for term in domain_rules(workload.spec, workload.prefix) if term.required)
        for term in required:
            if not population.has_any(_parsed(term, workload)):
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


class _Population:
    """Pods that there are, and those that templates would make."""

    def __init__(self, cluster: Cluster) -> None:
        self._namespaces = cluster.namespace_labels
        # Templates first: a term mostly means pods of its own kind.
        self._pods: list[tuple[str, Labels]] = [
            (workload.subject.namespace, {**_KUBEVIRT, **workload.labels} if workload.has_vms else workload.labels)
            for workload in cluster.workloads
        ]
        for pod in cluster.pods:
            metadata = pod["metadata"]
            self._pods.append((metadata.get("namespace") or "default", metadata.get("labels") or {}))
        self._known: dict[AffinityTerm, bool] = {}

    def has_any(self, term: AffinityTerm) -> bool:
        if term not in self._known:
            self._known[term] = any(
                term.matches(namespace, self._namespaces.get(namespace, {}), labels) for namespace, labels in self._pods
            )
        return self._known[term]


RULE = Rule(
    id="pod-selector-matches-nothing",
    severity=Severity.WARNING,
    title="A rule about neighbours selects no pod",
    explanation="Required affinity to pods that do not exist is an error, as it can be met nowhere. Anti-affinity and "
    "spread constraints without any pod do nothing, mostly for a label that is misspelt or was renamed. Templates "
    "count as well as pods, so that a workload that is scaled down is not missed.",
    check=_check,
)
