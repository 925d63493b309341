# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The affinity of a VMI's virt-launcher pods, by KubeVirt's rules, and when it counts the VM's own pod.

That pod stays on the source until a migration ends, so that anti-affinity that counts it keeps the VM from migrating.

Follows setNodeAffinityForPod in pkg/virt-controller/services/template.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import (
    CPU_FEATURE,
    CREATED_BY,
    OBSOLETE_HOST_MODEL,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    HOSTNAME,
    REQUIRED,
    JsonObject,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, label_selector

MISMATCH = "mismatchLabelKeys"
_MODELS_OF_THE_HOST = frozenset({"", "host-model"})
# What every launcher pod carries beside the labels of its VMI.
_LAUNCHER: Labels = {"kubevirt.io": "virt-launcher"}


def affinity(vmi: Object) -> JsonObject:
    """A v1.Affinity: what the VMI asks for, without the nodes whose CPU is wrong for it; empty if nothing is asked for.

    Label keys of terms (`matchLabelKeys`) are as in the VMI. Parts of the VMI are shared, not copied.
    """
    wishes = dict(vmi["spec"].get("affinity") or {})
    refusals = [
        {"key": label, "operator": "DoesNotExist"} for label in _refused_labels(vmi["spec"].get("domain") or {})
    ]
    if refusals:
        node_affinity = wishes.get("nodeAffinity") or {}
        required = _with_refusals(node_affinity.get(REQUIRED), refusals)
        wishes["nodeAffinity"] = {**node_affinity, REQUIRED: required}
    return wishes


def _refused_labels(domain: Object) -> Iterator[str]:
    cpu = domain.get("cpu") or {}
    if cpu.get("model", "") in _MODELS_OF_THE_HOST:
        yield OBSOLETE_HOST_MODEL
    for feature in cpu.get("features") or ():
        if feature.get("policy") == "forbid":
            yield f"{CPU_FEATURE}{feature['name']}"


def _with_refusals(required: Object | None, refusals: list[dict[str, str]]) -> JsonObject:
    """Terms are alternatives, so each of them gets the refusals."""
    terms = [{}] if required is None else required["nodeSelectorTerms"]
    return {
        "nodeSelectorTerms": [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *refusals]} for term in terms
        ]
    }


def counts_own_kind(term: Object, labels: Labels, namespace: str) -> bool:
    """Whether a term selects launcher pods of VMIs with these labels in this namespace.

    `mismatchLabelKeys`, by which it may look past some of them, are not considered. Raises `SelectorError`.
    """
    # Which labels a namespace carries is not known here: a selector of namespaces is taken to reach the VM's own.
    if term.get("namespaceSelector") is None and namespace not in (term.get("namespaces") or (namespace,)):
        return False
    return label_selector(term.get("labelSelector")).matches({**labels, **_LAUNCHER})


def blocks_migration(term: Object, labels: Labels, namespace: str) -> bool:
    """Whether a required anti-affinity term keeps a VM with these labels from moving within its own domain.

    The node of the source is out of question anyway, so a rule by host takes nothing away. Raises `SelectorError`.
    """
    carried = {*labels, *_LAUNCHER, CREATED_BY}
    if term.get("topologyKey") == HOSTNAME or carried.intersection(term.get(MISMATCH) or ()):
        return False
    return counts_own_kind(term, labels, namespace)


def ignoring_own_pod(term: Object) -> JsonObject:
    """The term for all other VMs: the API server adds that pods of the same VMI do not count."""
    return {**term, MISMATCH: [CREATED_BY]}


def blocked_migrations(template: Object, namespace: str) -> Iterator[str]:
    """A sentence on each term in the template of a VMI that blocks its migration. Raises `SelectorError`."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    apart = (template["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    for term in apart.get(REQUIRED) or ():
        if blocks_migration(term, labels, namespace):
            key = term["topologyKey"]
            yield (
                f"the required anti-affinity by {key} counts a VM's own pod too, so no VM can be live-migrated within "
                f"its own {key}. Add {MISMATCH}: [{CREATED_BY}] to the term."
            )
