# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the VMs of a profile may run, in the words of a pod spec; a function gives an empty value for no rule."""

from __future__ import annotations

from typing import Any

from testbed.api import Object
from testbed.scenarios.generator.profiles import ZONE, Pool, Profile
from testbed.scenarios.generator.topology import HIGH_LABEL, TAINTS

OWN_PODS = "kubevirt.io/created-by"


def selector(profile: Profile) -> dict[str, str]:
    return {"pool": profile.pool.value} if profile.pool in TAINTS else {}


def tolerations(profile: Profile) -> list[Object]:
    if profile.pool not in TAINTS:
        return []
    taint = TAINTS[profile.pool]
    return [{"key": taint["key"], "operator": "Equal", "value": taint["value"], "effect": taint["effect"]}]


def affinity(profile: Profile, group: str) -> Object:
    rules: dict[str, Any] = {}
    if profile.pool is Pool.HIGH:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in HIGH_LABEL.items()]
        term = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        rules["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": term}
    if profile.apart:
        apart: dict[str, Any] = {
            "topologyKey": profile.apart.topology_key,
            "labelSelector": {"matchLabels": {"group": group}},
        }
        if profile.apart.ignore_own_pods:
            apart["mismatchLabelKeys"] = [OWN_PODS]
        rules["podAntiAffinity"] = (
            {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
            if profile.apart.required
            else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]}
        )
    return rules


def spread(profile: Profile, group: str) -> list[Object]:
    if not profile.even_zones:
        return []
    return [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"group": group}},
        }
    ]
