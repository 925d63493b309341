# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Affinity and anti-affinity between pods, across namespaces and with label keys."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_affinity(dice: Dice) -> Json:
    found: Json = {}
    for name, feature in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        terms: Json = {}
        if dice.feature(feature):
            terms[REQUIRED] = [term(dice) for index in range(dice.pick((1, 1, 2)))]
        if dice.feature("pod-preference"):
            terms[PREFERRED] = [
                {"weight": dice.pick((1, 10, 100)), "podAffinityTerm": term(dice)}
                for index in range(dice.pick((1, 1, 2)))
            ]
        if terms:
            found[name] = terms
    return found


def term(dice: Dice) -> Json:
    found: Json = {"topologyKey": dice.pick(words.TOPOLOGY_KEYS)}
    selector = words.label_selector(dice)
    if selector is not None:
        found["labelSelector"] = selector
    if dice.chance(0.25):
        found["namespaces"] = dice.some(words.NAMESPACES, 2, 1)
    if dice.chance(0.25):
        found["namespaceSelector"] = dice.pick(
            (
                {},
                {"matchLabels": {"team": "sea"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["land"]}]},
            )
        )
    if selector is not None and dice.chance(0.2):
        # A key may be named only where the selector does not speak of it.
        spoken = {*selector.get("matchLabels", {}), *(e["key"] for e in selector.get("matchExpressions", []))}
        if "rev" not in spoken:
            found[dice.pick(("matchLabelKeys", "mismatchLabelKeys"))] = ["rev"]
    return found
