# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints and tolerations. Follows k8s.io/api/core/v1/toleration.go, without the comparing operators (alpha)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

# The effects that keep a pod from being placed; PreferNoSchedule only lowers a node's score.
KEEPING_OUT = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key, or effect, tolerates all of them."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (self.operator == "Equal" and self.value == taint.value)


CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# By key, those that a maintenance brings and takes away again: of node and cloud controllers while the node restarts
# (k8s.io/api/core/v1/well_known_taints.go, k8s.io/cloud-provider/api/well_known_taints.go), and of medik8s' operator.
OF_MAINTENANCE = frozenset(
    {
        CORDON.key,
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/shutdown",
        "medik8s.io/drain",
    }
)


def taint(raw: Object) -> Taint:
    return Taint(raw.get("key") or "", raw.get("value") or "", raw.get("effect") or "")


def toleration(raw: Object) -> Toleration:
    operator = raw.get("operator") or "Equal"
    return Toleration(raw.get("key") or "", operator, raw.get("value") or "", raw.get("effect") or "")


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)
