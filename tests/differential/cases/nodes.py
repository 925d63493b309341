# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: labels that may be missing, taints, cordons, sizes, images."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json

CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINT_KEYS = ("dedicated", "flaky", "maintenance")
TAINT_VALUES = ("yes", "no", "")


def nodes(dice: Dice, count: int) -> list[Json]:
    return [node(dice, f"n{number}") for number in range(count)]


def node(dice: Dice, name: str) -> Json:
    metadata = {"name": name, "uid": f"node-{name}", "labels": labels(dice, name)}
    cordoned = dice.feature("cordon")
    spec: Json = {"unschedulable": True} if cordoned else {}
    if taints_ := taints(dice, cordoned):
        spec["taints"] = taints_
    return {"metadata": metadata, "spec": spec, "status": {**capacity(dice), "images": images(dice)}}


def labels(dice: Dice, name: str) -> dict[str, str]:
    """A key that is missing on some nodes is what spread and affinity treat most differently."""
    missing = 0.12 if dice.feature("odd-labels") else 0.02
    found = {} if dice.chance(missing) else {words.HOST: name}
    number = int(name[1:])
    for key, values in ((words.ZONE, 3), (words.RACK, 4), (words.REGION, 2)):
        if not dice.chance(missing):
            found[key] = f"{key[-1]}{number % values}"
    if dice.feature("zone-labels"):
        found[words.OLD_ZONE] = dice.pick(("e0", "e1", "e2"))
        if dice.chance(0.3):
            found.pop(words.ZONE, None)
    return found | {key: dice.pick(values) for key, values in words.NODE_LABELS.items() if dice.chance(0.7)}


def taints(dice: Dice, cordoned: bool) -> list[Json]:
    """The control plane puts the taint of a cordon there a moment later, and takes it away a moment later, too."""
    found = [CORDON] if (cordoned and dice.chance(0.7)) or dice.chance(0.01) else []
    if dice.feature("taints"):
        found += [
            {"key": key, "value": dice.pick(TAINT_VALUES), "effect": dice.pick(EFFECTS)}
            for key in dice.some(TAINT_KEYS, 2, 1)
        ]
    return found


def tolerations(dice: Dice) -> list[Json]:
    wanted = dice.feature("taints") or dice.feature("cordon")
    return [toleration(dice) for index in range(dice.number(1, 3))] if wanted else []


def toleration(dice: Dice) -> Json:
    form = dice.number(0, 9)
    if form == 0:
        return {"operator": "Exists"}
    if form == 1:
        return {"key": CORDON["key"], "operator": "Exists", **({"effect": "NoSchedule"} if dice.chance(0.5) else {})}
    key = dice.pick(TAINT_KEYS)
    found: Json = {"key": key, "operator": "Exists"}
    if form > 4:
        found = {"key": key, "value": dice.pick(TAINT_VALUES)}
        if dice.chance(0.5):
            found["operator"] = "Equal"
    if dice.chance(0.6):
        found["effect"] = dice.pick(EFFECTS)
    return found


def capacity(dice: Dice) -> Json:
    """Sizes are small multiples of what pods request, so that sums meet them exactly."""
    found: Json = {
        "cpu": dice.pick(("2", "4", "3500m", "4.0", "6")),
        "memory": dice.pick(("4Gi", "8Gi", "6442450944", "5.5Gi", "4096Mi")),
        "pods": dice.pick(("12", "6", "4")) if dice.feature("requests") else "110",
        "ephemeral-storage": dice.pick(("10Gi", "20G")),
    }
    if dice.feature("extended"):
        found |= {name: str(dice.number(0, 4)) for name in dice.some(words.EXTENDED, 3, 1)}
    if dice.feature("hugepages"):
        found["hugepages-2Mi"] = dice.pick(("64Mi", "128Mi", "0"))
    if dice.feature("odd-capacity"):
        found.pop(dice.pick(tuple(found)))
    if dice.chance(0.3):
        # Part of the machine is kept for the system.
        return {"capacity": found, "allocatable": found | {"cpu": "1900m", "memory": "3900Mi"}}
    return {"capacity": found}


def images(dice: Dice) -> list[Json]:
    """One image has one size in a case: upstream takes the size of whichever node it hears of first."""
    if not dice.feature("images"):
        return []
    return [{"names": [name], "sizeBytes": dice.size_of(name)} for name in dice.some(words.IMAGES, 3, 1)]
