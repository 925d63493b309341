# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Twice as many batches of a cluster twice as large are planned, and reviewed, by about twice as many calls.

Calls are counted, of every function of the collection, as times differ from machine to machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

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

NODES = 12
# Below twice as many and a half nothing grows with nodes times batches, and fewer calls than that cost nothing.
MOST, FEW = 2.5, 100
# What goes through all nodes for each batch, and does next to nothing with each: it cordons, and of those that are left
# in a free order it chooses who is next.
CORDONING, CHOOSING = "node_table.NodeTable._changed.", "batching.Batching."
# The plan names all nodes that are equally good for a pod, of which the scheduler takes any.
NAMING = "options.Options.as_good_as_the_best."


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


def steep(small: Counter[str], large: Counter[str], *but: str) -> dict[str, tuple[int, int]]:
    """What is called too often in the large case. but: beginnings of names for which that is no matter."""
    return {
        name: (small[name], count)
        for name, count in large.items()
        if count > MOST * small[name] + FEW and not name.startswith(but)
    }


@pytest.mark.parametrize(("free", "but"), [(False, ()), (True, (CHOOSING,))])
def test_to_plan_costs_in_proportion_to_what_moves(free: bool, but: tuple[str, ...]) -> None:
    plans: list[Plan] = []

    def counted(nodes: int) -> Counter[str]:
        lists = cluster(nodes)
        return calls(lambda: plans.append(planned(lists, free=free)))

    small, large = counted(NODES), counted(2 * NODES)
    assert [(plan.verdict, len(plan.batches)) for plan in plans] == [(Verdict.FEASIBLE, 6), (Verdict.FEASIBLE, 12)]
    assert steep(small, large, CORDONING, NAMING, *but) == {}


def test_to_review_costs_in_proportion_to_what_moves() -> None:
    def counted(nodes: int) -> Counter[str]:
        lists = cluster(nodes)
        plan = planned(lists, free=False)
        for name, place in (("single0", "n1"), ("single1", "n0")):
            vmi = next(vmi for vmi in lists["vmis"] if vmi["metadata"]["name"] == name)
            pod = next(pod for pod in lists["pods"] if pod["metadata"]["name"] == f"virt-launcher-{name}")
            vmi["status"]["nodeName"] = pod["spec"]["nodeName"] = place
        snapshot = from_plain(lists)
        return calls(lambda: review(plan, snapshot, frozenset()))

    assert steep(counted(NODES), counted(2 * NODES), CORDONING) == {}
