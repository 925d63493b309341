# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node selectors and node affinity, with every operator, numbers that are none, and terms on the node's name."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json

NAME = "metadata.name"


def node_selector(dice: Dice) -> dict[str, str]:
    if not dice.feature("node-affinity") or dice.chance(0.5):
        return {}
    key = dice.pick(("disk", "disk", words.ZONE, "rank", "unknown"))
    return {key: dice.pick((*words.NODE_LABELS.get(key, ("e0", "e1", "v")), ""))}


def node_affinity(dice: Dice, nodes: list[str]) -> Json:
    found: Json = {}
    if dice.feature("node-affinity"):
        terms = [term(dice, nodes) for index in range(dice.number(1, 3))]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.feature("node-preference"):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.pick((1, 7, 50, 100)), "preference": term(dice, nodes)}
            for index in range(dice.number(1, 3))
        ]
    return found


def term(dice: Dice, nodes: list[str]) -> Json:
    found: Json = {}
    if dice.chance(0.04):
        return found
    if dice.chance(0.75):
        found["matchExpressions"] = [expression(dice) for index in range(dice.number(1, 2))]
    if "matchExpressions" not in found or dice.chance(0.15):
        # Two names at once contradict each other.
        found["matchFields"] = [field(dice, nodes) for index in range(dice.pick((1, 1, 1, 1, 2)))]
    return found


def field(dice: Dice, nodes: list[str]) -> Json:
    return {
        "key": NAME,
        "operator": "In" if dice.chance(0.8) else "NotIn",
        "values": [dice.pick([*nodes, "vanished"])],
    }


def expression(dice: Dice) -> Json:
    operator = dice.pick(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": dice.pick(("rank", "rank", "disk")), "operator": operator, "values": [dice.pick(words.RANKS)]}
    key = dice.pick(("disk", "rank", words.ZONE, "unknown"))
    found: Json = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = dice.some(words.NODE_LABELS.get(key, ("e0", "e1", "e2")), 2, 1)
    return found
