# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The affinity of a VMI's virt-launcher pods, by KubeVirt's rules.

Follows setNodeAffinityForPod in pkg/virt-controller/services/template.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CPU_FEATURE, OBSOLETE_HOST_MODEL

Object = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MODELS_OF_THE_HOST = frozenset({"", "host-model"})


def affinity(vmi: Object) -> dict[str, Any]:
    """A v1.Affinity: what the VMI asks for, without the nodes whose CPU is wrong for it; empty if nothing is asked for.

    Label keys of terms (`matchLabelKeys`) are as in the VMI. Parts of the VMI are shared, not copied.
    """
    wishes = dict(vmi["spec"].get("affinity") or {})
    refusals = [
        {"key": label, "operator": "DoesNotExist"} for label in _refused_labels(vmi["spec"].get("domain") or {})
    ]
    if refusals:
        node_affinity = wishes.get("nodeAffinity") or {}
        required = _with_refusals(node_affinity.get(_REQUIRED), refusals)
        wishes["nodeAffinity"] = {**node_affinity, _REQUIRED: required}
    return wishes


def _refused_labels(domain: Object) -> Iterator[str]:
    cpu = domain.get("cpu") or {}
    if cpu.get("model", "") in _MODELS_OF_THE_HOST:
        yield OBSOLETE_HOST_MODEL
    for feature in cpu.get("features") or ():
        if feature.get("policy") == "forbid":
            yield f"{CPU_FEATURE}{feature['name']}"


def _with_refusals(required: Object | None, refusals: list[dict[str, str]]) -> dict[str, Any]:
    """Terms are alternatives, so each of them gets the refusals."""
    terms = [{}] if required is None else required["nodeSelectorTerms"]
    return {
        "nodeSelectorTerms": [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *refusals]} for term in terms
        ]
    }
