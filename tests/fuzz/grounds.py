# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that are right, to be spoilt: small clusters which together have all that is read of objects."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from differential.cases.cluster import case
from fuzz.spoiling import HOSTILE
from integration.lint.cases import CASES, shared
from unit.plugins.module_utils._lint.world import world

Lists = dict[str, list[Any]]

_UNIT = Path(__file__).parents[1] / "unit/plugins/module_utils"


def cluster(dice: random.Random) -> Lists:
    """One of them, to be changed at will."""
    return copy.deepcopy(dice.choices(*zip(*_KINDS, strict=True))[0](dice))


def circular(dice: random.Random, lists: Lists) -> str:
    """Make objects own each other."""
    items = [item for name in ("pods", "vmis", "vms", "replicasets") for item in lists.get(name, ())]
    if not items:
        return "no circle"
    first, second = dice.choice(items), dice.choice(items)
    for item, owner in ((first, second), (second, first)):
        metadata = owner["metadata"]
        reference = {"apiVersion": "v1", "kind": "VirtualMachine", "controller": True}
        item["metadata"]["ownerReferences"] = [{**reference, "name": metadata["name"], "uid": metadata.get("uid")}]
    return "a circle of owners"


def plant(dice: random.Random, lists: Lists) -> str:
    """Something that anybody who has an object may have written on it, where it is read."""
    key, texts = dice.choice(list(_PLANTED.items()))
    text = dice.choice((*texts, *HOSTILE))
    items = lists.get(dice.choice(("nodes", "pods", "vmis", "vms", "vmireplicasets", "namespaces"))) or [{}]
    metadata = dice.choice(items).get("metadata") or {}
    for part in ("labels", "annotations"):
        metadata[part] = {**(metadata.get(part) or {}), key: text}
    return f"{key} is {text[:30]!r}"


_DEEP = "[" * 100_000
_PLANTED: dict[str, tuple[str, ...]] = {
    "hooks.kubevirt.io/hookSidecars": (
        _DEEP,
        "5",
        '{"a": 1}',
        '[{"pvc": "name"}]',
        '[{"image": {}}]',
        "[[]]",
        "[null]",
    ),
    "virtops.kubevirt/maintenance": (_DEEP, "[]", '{"owner": [], "since": {}}', '{"owner": "a"}'),
    "virtops.kubevirt/stopped": (_DEEP, "[]", '{"n1": 5}', '{"n1": {"owner": [], "run_strategy": 1, "since": {}}}'),
    "alpha.kubevirt.io/auto-memory-limits-ratio": ("inf", "nan", "-1", "1e300", "1e999"),
    "cpu-timer.node.kubevirt.io/tsc-frequency": ("0", "99999999999999999999"),
    "kubevirt.io/memory-overhead-bytes": ("-5", "1e400", "inf"),
    "kubevirt.io/migrationUnschedulablePodTimeoutSeconds": ("inf", "-1"),
    "openshift.io/node-selector": ("=", "a", "a=b=c", ",,,"),
    "scheduler.alpha.kubernetes.io/node-selector": ("=", "a in (", ",,,"),
    "scheduler.alpha.kubernetes.io/defaultTolerations": (_DEEP, "5", "[5]", '[{"key": 5}]'),
    "storage.alpha.kubernetes.io/migrated-plugins": (",,,",),
    "virtops.kubevirt/maintained": ("patch",),
    "kubevirt.io/created-by": ("",),
    "vm.kubevirt.io/name": ("",),
    "topology.kubernetes.io/zone": ("",),
    "kubernetes.io/hostname": ("",),
    "kubevirt.io/schedulable": ("",),
}


@cache
def recorded() -> Lists:
    found: Lists = json.loads((_UNIT / "_planner/customapp.json").read_text())
    return found


@cache
def _gallery() -> Lists:
    """The recorded cluster, with an object of each kind that has every field that is kept of it."""
    lists = copy.deepcopy(recorded())
    tables = [path.read_text() for path in sorted((_UNIT / "_model").glob("projections*.yaml"))]
    for entry in (entry for table in tables for entry in yaml.safe_load(table)):
        lists.setdefault(entry["list"], []).append(entry["kept"])
    return lists


@cache
def _planted(number: int) -> Lists:
    return world([*shared(), *CASES[number].objects()])


@cache
def _scheduling(number: int) -> Lists:
    found = case(11, number)
    lists: Lists = found["lists"]
    lists["pods"] = [*lists["pods"], *found["asked"][:2]]
    return lists


_KINDS: tuple[tuple[Callable[[random.Random], Lists], float], ...] = (
    (lambda dice: recorded(), 2),
    (lambda dice: _gallery(), 3),
    (lambda dice: _planted(dice.randrange(len(CASES))), 3),
    (lambda dice: _scheduling(dice.randrange(40)), 2),
)
