# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Topology spread: of the pod's own constraints, and of owners that the default constraints follow."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json


def constraints(dice: Dice) -> list[Json]:
    if not dice.feature("spread"):
        return []
    found = [constraint(dice) for index in range(dice.pick((1, 1, 2, 2, 3)))]
    # The API allows each pair of key and action once.
    return list({(c["topologyKey"], c["whenUnsatisfiable"]): c for c in found}.values())


def constraint(dice: Dice) -> Json:
    found: Json = {
        "topologyKey": dice.pick((words.HOST, words.ZONE, words.ZONE, words.RACK, words.REGION)),
        "maxSkew": dice.pick((1, 1, 1, 2, 3)),
        "whenUnsatisfiable": dice.pick(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
    }
    selector = words.label_selector(dice)
    if selector is not None:
        found["labelSelector"] = selector
        spoken = {*selector.get("matchLabels", {}), *(e["key"] for e in selector.get("matchExpressions", []))}
        if "rev" not in spoken and dice.chance(0.2):
            found["matchLabelKeys"] = ["rev"]
    if found["whenUnsatisfiable"] == "DoNotSchedule" and dice.chance(0.3):
        found["minDomains"] = dice.number(1, 5)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if dice.chance(0.35):
            found[policy] = dice.pick(("Honor", "Ignore"))
    return found


def owners(dice: Dice) -> Json:
    """Lists of what selects pods; the default constraints spread a pod by all the selectors that match it."""
    if not dice.feature("owners"):
        return {}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"matchLabels": {"app": dice.pick(("a", "b"))}}
    namespace = dice.pick(words.NAMESPACES)
    found: Json = {
        "services": [
            {"metadata": {"name": "s", "namespace": namespace}, "spec": {"selector": {"tier": dice.pick(("x", "y"))}}},
            {"metadata": {"name": "headless", "namespace": namespace}, "spec": {}},
        ]
    }
    body = {"selector": selector, "template": template}
    meta = {"name": "owner", "namespace": namespace}
    which = dice.pick(("replicasets", "statefulsets", "replicationcontrollers"))
    if which == "replicationcontrollers":
        body["selector"] = selector["matchLabels"]
    if which == "statefulsets":
        body["serviceName"] = "s"
    return {**found, which: [{"metadata": meta, "spec": body}]}


def owner_reference(dice: Dice) -> list[Json]:
    """A reference to the owner of the list, if it is of this kind."""
    if not dice.feature("owners"):
        return []
    api, kind = dice.pick((("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")))
    return [{"apiVersion": api, "kind": kind, "name": "owner", "uid": "o", "controller": True}]
