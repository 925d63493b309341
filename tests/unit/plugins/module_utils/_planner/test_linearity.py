# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Twice as many batches of a cluster twice as large are planned, and reviewed, at about twice the cost.

Calls are counted, of every function of the collection, and how often its loops come round, as times differ from machine
to machine. What numpy does for all nodes at once counts for nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeAlias

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import (
    BatchRules,
    Failing,
    PlanOptions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.review import review
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from unit.plugins.module_utils._planner.scene import HOST, Lists, Scene, apart, node

# Since Python 3.12.
MONITORING: Any = getattr(sys, "monitoring", None)
Counted: TypeAlias = Callable[[Callable[[], object]], Counter[str]]

NODES = 12
# Below twice as many and a half nothing grows with nodes times batches, and fewer calls than that cost nothing.
MOST, FEW = 2.5, 100
# In a free order the next batch is chosen among all nodes that are left, by what is free on them then, which is
# different each time; so each is looked at for each place of each batch.
CHOOSING = ("batching.Batching.", "batching.Room.estimate")
# The scheduler draws among all nodes that are equally good for a pod, so each look at a pod's nodes notes all of those.
NAMING = ("options.Options.as_good_as_the_best.", "assumptions._Landing.begin")
# Of each batch nothing may come to a node that is still to be maintained if there is another one, so it is told all of
# them, and crosses off its own.
AVOIDING = ("whole_run._Search._drained", "drain.unknown_names", "node_table.NodeTable.named", "batching.Batching.done")
# How often at most, of each node for each batch.
OFTEN_CHOOSING, OFTEN_AVOIDING = 24, 8


def cluster(nodes: int) -> Lists:
    """On each node a VM that keeps apart from another one's, one that does not, and a pod with a budget."""
    names = [f"n{number}" for number in range(nodes)]
    scene = Scene(*(node(name, f"zone-{number % 3}") for number, name in enumerate(names)))
    budgets = []
    for number, name in enumerate(names):
        app = f"pair{number // 2}"
        scene.vm(f"{app}-{number % 2}", name, rules={"affinity": apart(HOST, app)})
        scene.vm(f"single{number}", name)
        scene.pod(f"{app}web-{number % 2}", name)
        if number % 2:
            selector = {"matchLabels": {"app": f"{app}web"}}
            spec = {"selector": selector, "minAvailable": 1}
            status = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
            budgets.append({"metadata": {"namespace": "shop", "name": f"{app}web"}, "spec": spec, "status": status})
    return {**scene.lists, "pdbs": budgets}


def planned(lists: Lists, *, free: bool) -> Plan:
    names = [str(item["metadata"]["name"]) for item in lists["nodes"]]
    options = PlanOptions(batching=BatchRules(2, free=free), reserve=Failing.LARGEST_NODE)
    return plan_whole_run(from_plain(lists), "run", names, options)


def calls(work: Callable[[], object]) -> Counter[str]:
    """How often each function of the collection is called, by its file and name."""
    found = Counter[str]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path, _slash, file = frame.f_code.co_filename.rpartition("/")
        if event == "call" and "/module_utils/_" in path:
            found[f"{file.removesuffix('.py')}.{frame.f_code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def rounds(work: Callable[[], object]) -> Counter[str]:
    """How often loops come round in each function of the collection, comprehensions among them."""
    found, events = Counter[str](), MONITORING.events

    def note(code: CodeType, source: int, target: int) -> object:
        path, _slash, file = code.co_filename.rpartition("/")
        if target > source or "/module_utils/_" not in path:
            return MONITORING.DISABLE
        found[f"{file.removesuffix('.py')}.{code.co_qualname}"] += 1
        return None

    tool = next(tool for tool in range(6) if MONITORING.get_tool(tool) is None)
    MONITORING.use_tool_id(tool, "rounds")
    MONITORING.register_callback(tool, events.JUMP, note)
    MONITORING.set_events(tool, events.JUMP)
    try:
        work()
    finally:
        MONITORING.set_events(tool, events.NO_EVENTS)
        MONITORING.register_callback(tool, events.JUMP, None)
        MONITORING.free_tool_id(tool)
    return found


def steep(small: Counter[str], large: Counter[str], *but: str) -> dict[str, tuple[int, int]]:
    """What comes too often in the large case. but: beginnings of names for which that is no matter."""
    return {
        name: (small[name], count)
        for name, count in large.items()
        if count > MOST * small[name] + FEW and not name.startswith(but)
    }


def often(found: Counter[str], names: tuple[str, ...]) -> int:
    """names: beginnings of them."""
    return sum(count for name, count in found.items() if name.startswith(names))


def counted(count: Counted, nodes: int, *, free: bool) -> Counter[str]:
    """What it costs to plan a cluster of so many nodes, which is within all bounds."""
    lists, plans = cluster(nodes), list[Plan]()
    found = count(lambda: plans.append(planned(lists, free=free)))
    (plan,) = plans
    assert (plan.verdict, len(plan.batches)) == (Verdict.FEASIBLE, nodes // 2)
    assert often(found, CHOOSING if free else ()) <= OFTEN_CHOOSING * nodes * len(plan.batches)
    assert often(found, AVOIDING) <= OFTEN_AVOIDING * nodes * len(plan.batches)
    # Pods are looked at when they are placed, and again for what is taken for granted of that.
    pods = sum(len(lists[kind]) for kind in ("pods", "vmis"))
    assert often(found, NAMING) <= nodes * pods
    assert all(often(found, (name,)) for name in NAMING), "one of them is called something else now"
    return found


@pytest.mark.parametrize(("free", "but"), [(False, ()), (True, CHOOSING)])
def test_to_plan_costs_in_proportion_to_what_moves(free: bool, but: tuple[str, ...]) -> None:
    small, large = (counted(calls, nodes, free=free) for nodes in (NODES, 2 * NODES))
    assert steep(small, large, *NAMING, *but) == {}


@pytest.mark.skipif(MONITORING is None, reason="loops are counted by what Python 3.12 brings")
@pytest.mark.parametrize(("free", "but"), [(False, ()), (True, CHOOSING)])
def test_no_loop_comes_round_more_often_than_what_moves(free: bool, but: tuple[str, ...]) -> None:
    small, large = (counted(rounds, nodes, free=free) for nodes in (2 * NODES, 4 * NODES))
    assert steep(small, large, *NAMING, *AVOIDING, *but) == {}


def test_to_review_costs_in_proportion_to_what_moves() -> None:
    def reviewed(nodes: int) -> Counter[str]:
        lists = cluster(nodes)
        plan = planned(lists, free=False)
        for name, place in (("single0", "n1"), ("single1", "n0")):
            vmi = next(vmi for vmi in lists["vmis"] if vmi["metadata"]["name"] == name)
            pod = next(pod for pod in lists["pods"] if pod["metadata"]["name"] == f"virt-launcher-{name}")
            vmi["status"]["nodeName"] = pod["spec"]["nodeName"] = place
        snapshot = from_plain(lists)
        return calls(lambda: review(plan, snapshot, frozenset()))

    assert steep(reviewed(NODES), reviewed(2 * NODES)) == {}
