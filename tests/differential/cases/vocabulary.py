# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few words that all objects of a case share, so that what one asks for is often what another has."""

from __future__ import annotations

from differential.cases.dice import Dice, Json

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "example.com/rack"
# `HOST` as it is often misspelt: no node has it.
NO_KEY = "topology.kubernetes.io/hostname"
TOPOLOGY_KEYS = (HOST, ZONE, ZONE, RACK, REGION, NO_KEY)

NAMESPACES = ("blue", "green", "red")
# Labels of namespaces; `red` has none.
TEAM = {"blue": {"team": "sea"}, "green": {"team": "land"}, "red": {}}

POD_LABELS = {"app": ("a", "b", "c"), "tier": ("x", "y"), "rev": ("1", "2")}
# Valid label values of which upstream reads only some as numbers.
RANKS = ("1", "2", "007", "10", "0", "1_0", "x1", "9223372036854775807", "99999999999999999999")
NODE_LABELS = {"disk": ("ssd", "hdd", ""), "rank": RANKS}
# As pods write them and as nodes report them; a name without tag means `latest`.
IMAGES = ("registry.example/app:1", "registry.example:5000/app:2", "db", "db:latest")
EXTENDED = ("example.com/gpu", "example.com/nic", "devices.kubevirt.io/kvm")


def pod_labels(dice: Dice) -> dict[str, str]:
    return {key: dice.pick(values) for key, values in POD_LABELS.items() if dice.chance(0.7)}


def label_selector(dice: Dice) -> Json | None:
    """A selector over pods: mostly of one label, now and then of everything, of nothing, or with operators."""
    form = dice.number(0, 9)
    if form == 0:
        return {}
    if form == 1:
        return None
    if form <= 3:
        return {"matchExpressions": [requirement(dice) for index in range(dice.number(1, 2))]}
    key = dice.pick(("app", "app", "tier", "rev"))
    selector: Json = {"matchLabels": {key: dice.pick(POD_LABELS[key])}}
    if form == 4:
        selector["matchExpressions"] = [requirement(dice)]
    return selector


def requirement(dice: Dice) -> Json:
    key = dice.pick((*POD_LABELS, "unknown"))
    operator = dice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("In", "NotIn"):
        return {"key": key, "operator": operator, "values": dice.some(POD_LABELS.get(key, ("v",)), 2, 1)}
    return {"key": key, "operator": operator}
