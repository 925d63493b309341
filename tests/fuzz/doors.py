# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything pure that takes a cluster or a document from outside, as its callers call it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.filter.drain_feasibility import drain_feasibility
from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import feasible_nodes
from ansible_collections.virtops.kubevirt.plugins.filter.launcher_pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.filter.placement_lint import placement_lint
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_diff import difference
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import plan_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import plan_rebalance
from ansible_collections.virtops.kubevirt.plugins.test.drainable import drainable
from ansible_collections.virtops.kubevirt.plugins.test.live_migratable import live_migratable

from fuzz.grounds import Lists
from fuzz.spoiling import encoded

Door = Callable[[random.Random, Lists, Path], Any]


def _any(dice: random.Random, lists: Lists, *names: str) -> Any:
    found = [item for name in names if isinstance(lists.get(name), list) for item in lists[name]]
    return dice.choice(found) if found else {}


def _title(item: Any) -> str:
    """As somebody would write it who has looked it up."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        return "shop/a"
    return f"{metadata.get('namespace', 'default')}/{metadata.get('name')}"


def _node(dice: random.Random, lists: Lists) -> Any:
    return _title(_any(dice, lists, "nodes")).partition("/")[2]


def _machine(dice: random.Random, lists: Lists) -> Any:
    item = _any(dice, lists, "vmis", "vms", "vmireplicasets")
    return item if dice.random() < 0.5 else _title(item)


def _pods(dice: random.Random, lists: Lists, folder: Path) -> Any:
    return feasible_nodes(lists, _any(dice, lists, "pods"), scores=dice.random() < 0.5)


def _machines(dice: random.Random, lists: Lists, folder: Path) -> Any:
    return feasible_nodes(lists, _machine(dice, lists))


def _launcher(dice: random.Random, lists: Lists, folder: Path) -> Any:
    return launcher_pod(lists, _machine(dice, lists), migration=dice.random() < 0.5)


def _migratable(dice: random.Random, lists: Lists, folder: Path) -> Any:
    machine = _machine(dice, lists)
    return live_migratable(machine, lists if isinstance(machine, str) or dice.random() < 0.5 else None)


def _drainable(dice: random.Random, lists: Lists, folder: Path) -> Any:
    return drainable(_node(dice, lists), lists, policies=[{"selector": {"app": "cache"}, "policy": "restart"}])


def _drain(dice: random.Random, lists: Lists, folder: Path) -> Any:
    policies = [{"expression": "spec.domain.cpu.cores > `1`", "policy": "stop"}]
    return drain_feasibility(lists, [_node(dice, lists)], policies=policies, force=True)


def _lint(dice: random.Random, lists: Lists, folder: Path) -> Any:
    return placement_lint(lists, window=600)


def _moves(dice: random.Random, lists: Lists, folder: Path) -> Any:
    with explained("plan moves"):
        return plan_rebalance(snapshot_file.load(lists), max_moves=5).to_json()


def _diff(dice: random.Random, lists: Lists, folder: Path) -> Any:
    snapshot = from_plain(lists)
    return difference(None, snapshot), difference(snapshot, snapshot)


def _run(dice: random.Random, lists: Lists, folder: Path) -> Any:
    names = [_node(dice, lists) for _times in range(2)]
    order = dice.choice(("given", "free"))
    return plan_task.make_or_take(planning(lists, folder, nodes=list(dict.fromkeys(names)), order=order))


def planning(snapshot: Any, folder: Path, **given: Any) -> Any:
    """What maintenance_plan takes as its module."""
    params = {name: option.get("default") for name, option in plan_task.spec().items()}
    params |= {"snapshot": snapshot, "path": str(folder / "plan.json"), "run": "patch", **given}
    asked = frozenset({"snapshot", "path", "run", *given})
    return SimpleNamespace(params=params, given=asked, check_mode=False, _diff=True, warn=lambda text: None)


def _file(dice: random.Random, lists: Lists, folder: Path) -> Any:
    path = folder / "snapshot.json"
    path.write_bytes(encoded(lists))
    return snapshot_file.load(str(path)).lists


DOORS: dict[str, Door] = {
    "feasible_nodes of a pod": _pods,
    "feasible_nodes of a VM": _machines,
    "launcher_pod": _launcher,
    "live_migratable": _migratable,
    "drainable": _drainable,
    "drain_feasibility": _drain,
    "placement_lint": _lint,
    "rebalance_plan": _moves,
    "maintenance_plan": _run,
    "diff of snapshots": _diff,
    "snapshot file": _file,
}
