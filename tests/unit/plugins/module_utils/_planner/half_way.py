# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that has stopped somewhere: the cluster as the API shows it then, with the names and uids that it gives."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import NOT_CREATED
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import FORETOLD, ActionKind, Plan

from checker.order import Order
from checker.replay import Replay
from unit.plugins.module_utils._planner.scene import Json, Lists

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def stopped_after(lists: Lists, plan: Plan, order: Order, most: int) -> tuple[Lists, frozenset[str]]:
    """The cluster when so many actions have ended, with others in flight; and the nodes that the run is done with."""
    replay = Replay(lists, plan, order)
    replay.run(most)
    assert replay.violations == []
    cordoned, done = (
        frozenset(action.node for action in plan.actions if action.kind is kind and action.id in replay.ended)
        for kind in (ActionKind.CORDON, ActionKind.UNCORDON)
    )
    seen = _as_told(replay.cluster.lists())
    seen["pods"] += _waiting(lists["pods"], seen["pods"])
    for item in seen["nodes"]:
        if item["metadata"]["name"] in cordoned - done:
            item["metadata"]["annotations"] = {CORDON_NOTE: Mark(plan.run, "").to_text()}
    return seen, done


def _as_told(lists: Lists) -> Lists:
    """With a name and a uid for whatever only the plan had."""
    found: Lists = copy.deepcopy(lists)
    dice = random.Random(1)
    places = {vmi["metadata"]["uid"]: vmi["status"]["nodeName"] for vmi in found["vmis"]}
    for pod in found["pods"]:
        metadata = pod["metadata"]
        if FORETOLD in metadata["name"]:
            metadata["name"] = f"{_stem(pod)}-{''.join(dice.choices(_LETTERS, k=5))}"
            metadata["uid"] = f"uid-{metadata['name']}"
        if pod["spec"].get("nodeName") == places.get(metadata["labels"].get("kubevirt.io/created-by")):
            metadata["labels"].pop(MIGRATION_JOB, None)  # of an earlier migration, which had another uid
    told: Lists = json.loads(json.dumps(found).replace(NOT_CREATED, "created-"))
    return told


def _waiting(before: Iterable[Json], after: Iterable[Json]) -> list[Json]:
    """Pods that have been made in the place of others, and have found no node yet."""
    missing = _counted(before) - _counted(after)
    examples = {_stem(pod): pod for pod in before}
    found = []
    for stem, count in sorted(missing.items()):
        for number in range(count):
            pod = copy.deepcopy(examples[stem])
            pod["metadata"] |= {"name": f"{stem}-late{number}", "uid": f"uid-{stem}-late{number}"}
            del pod["spec"]["nodeName"]
            found.append(pod | {"status": {"phase": "Pending"}})
    return found


def _counted(pods: Iterable[Json]) -> Counter[str]:
    """By their stems; the place of one that is ending has been taken already."""
    return Counter(_stem(pod) for pod in pods if not (of_a_machine(pod) or is_leaving(pod)))


def _stem(pod: Json) -> str:
    """What the names of an owner's pods have in common."""
    name: str = pod["metadata"]["name"]
    return name.split(FORETOLD, maxsplit=1)[0].rpartition("-")[0]
