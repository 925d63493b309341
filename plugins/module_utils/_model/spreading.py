# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology spread constraints. Follows pkg/scheduler/framework/plugins/podtopologyspread/common.go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    Labels,
    LabelSelector,
    exact_requirements,
    label_selector,
)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """`hard`: forbids nodes; otherwise it only lowers their score.

    `honors_affinity`, `honors_taints`: only nodes that the pod's node affinity, or its tolerations, admit are counted.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: LabelSelector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


def spread_constraint(raw: Mapping[str, Any], labels: Labels) -> SpreadConstraint:
    """Parse a v1.TopologySpreadConstraint of a pod with these labels. Raises `SelectorError`."""
    keys = raw.get("matchLabelKeys") or ()
    own = exact_requirements({key: labels[key] for key in keys if key in labels})
    minimum = raw.get("minDomains")
    return SpreadConstraint(
        topology_key=raw["topologyKey"],
        max_skew=raw["maxSkew"],
        hard=raw["whenUnsatisfiable"] == "DoNotSchedule",
        selector=label_selector(raw.get("labelSelector")).narrowed(own),
        min_domains=1 if minimum is None else minimum,
        honors_affinity=(raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
        honors_taints=(raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )
