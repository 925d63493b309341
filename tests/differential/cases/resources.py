# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests: of containers, sidecars, init containers, pods and their overhead, in many notations."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json

CPU = ("0", "100m", "250m", "0.5", "500m", "1", "1", "1500m", "1e0", "2", "0.0005", "1500000u", "33333333n")
MEMORY = ("0", "256Mi", "512Mi", "1Gi", "1Gi", "1073741825", "1G", "2Gi", "1.5Gi", "1e9", "0.1Gi", "1500m", "1Ki")


def containers(dice: Dice) -> Json:
    """The fields `containers`, and perhaps `initContainers`, `overhead` and `resources` of a pod's spec."""
    whole = dice.feature("pod-level")
    found: Json = {"containers": [container(dice, f"c{number}", whole) for number in range(dice.pick((1, 1, 2)))]}
    if dice.feature("init"):
        found["initContainers"] = [init_container(dice, f"i{number}", whole) for number in range(dice.number(1, 3))]
    if dice.feature("overhead"):
        found["overhead"] = {"cpu": dice.pick(("100m", "250m")), "memory": dice.pick(("128Mi", "1"))}
    if whole:
        found["resources"] = pod_level(dice)
    return found


def container(dice: Dice, name: str, part_of_whole: bool) -> Json:
    resources = {"requests": little(dice)} if part_of_whole else amounts(dice)
    return {"name": name, "image": dice.pick(words.IMAGES), "resources": resources}


def init_container(dice: Dice, name: str, part_of_whole: bool) -> Json:
    always = {"restartPolicy": "Always"} if dice.chance(0.5) else {}
    return {**container(dice, name, part_of_whole), **always}


def amounts(dice: Dice) -> Json:
    """Requests and limits. Without requests the limits stand for them, which the API server writes down."""
    requests = little(dice)
    if dice.feature("requests"):
        requests = {"cpu": dice.pick(CPU), "memory": dice.pick(MEMORY)}
        for resource in dice.some(("cpu", "memory"), 1):
            del requests[resource]
    if dice.feature("storage"):
        requests["ephemeral-storage"] = dice.pick(("1Gi", "5Gi", "10Gi", "10737418241"))
    whole: Json = {}
    if dice.feature("extended"):
        whole |= {resource: str(dice.number(0, 3)) for resource in dice.some(words.EXTENDED, 2, 1)}
    if dice.feature("hugepages") and {"cpu", "memory"} & set(requests):
        whole["hugepages-2Mi"] = dice.pick(("2Mi", "32Mi", "64Mi"))
    if whole:
        # What cannot be overcommitted is requested exactly as it is limited.
        return {"requests": {**requests, **whole}, "limits": whole}
    return {"limits" if dice.chance(0.1) else "requests": requests}


def little(dice: Dice) -> Json:
    """Requests of a case that is about other things than resources: they fill no node, yet they weigh in its score."""
    return dice.pick(({}, {}, {"cpu": "10m"}, {"cpu": "50m", "memory": "64Mi"}, {"memory": "100M"}))


def pod_level(dice: Dice) -> Json:
    """Requests for the whole pod; not less than a few containers' little requests, as the API server sees to."""
    requests: Json = {"cpu": dice.pick(("500m", "1", "2")), "memory": dice.pick(("512Mi", "1Gi", "1073741825"))}
    for resource in dice.some(("cpu", "memory"), 1):
        del requests[resource]
    if dice.feature("hugepages"):
        pages = {"hugepages-2Mi": dice.pick(("2Mi", "64Mi"))}
        return {"requests": requests | pages, "limits": pages}
    return {"requests": requests}
