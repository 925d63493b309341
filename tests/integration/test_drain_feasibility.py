# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan of a drain foretells is what happens, and what it calls stuck cannot be migrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Outcome

from integration.clusters import TIMEOUT, loaded, pods, scheduling_message, vmi_on, vmis
from integration.drain_plans import Tally, drain, out_of_service, read, try_the_stuck
from integration.migration.clusters import peaceful
from testbed.api import Api, Object
from testbed.handle import RunningTestbed
from testbed.scenarios import files
from testbed.scenarios.generator import GeneratorSpec, generate
from testbed.waiting import wait_for

APPLICATION = "customapp"
STOP = [{"selector": {"app": "mssql2016"}, "policy": "stop"}]
SPEC = GeneratorSpec(nodes=8, vmis=30, zones=3, fill=0.8)
MOVED = 4


@pytest.fixture(scope="class")
def api(testbed: RunningTestbed) -> Iterator[Api]:
    with loaded(testbed.api, files.read(files.FOLDER / f"{APPLICATION}.yaml")):
        yield testbed.api


@pytest.mark.gate
class TestCustomapp:
    def test_cache_and_black_box_move_together(self, api: Api) -> None:
        node = pods(api, APPLICATION, "app=cache")[0]["spec"]["nodeName"]
        box = vmi_on(api, APPLICATION, node, "blackbox")
        tally = Tally()
        with out_of_service(api, [node]):
            (move,) = plan_drain(read(api), [node]).moves
            assert (move.name, move.wave) == (box["metadata"]["name"], 2)
            plan = drain(api, [node], tally)
            assert (plan.feasible, tally.wrong) == (True, [])
            assert running_on(api, node) == []
        (move,) = plan.moves
        assert move.target_node in {pod["spec"]["nodeName"] for pod in pods(api, APPLICATION, "app=cache")}

    def test_a_database_is_stuck_with_that_message(self, api: Api) -> None:
        node = nodes_of_databases(api)[0]
        tally = Tally()
        with out_of_service(api, [node]):
            plan = drain(api, [node], tally)
            try_the_stuck(api, plan, tally)
        assert (plan.feasible, tally.wrong) == (False, [])
        assert tally.refused == 1

    def test_a_database_that_stops_comes_back_with_its_node(self, api: Api) -> None:
        node = nodes_of_databases(api)[0]
        tally = Tally()
        with out_of_service(api, [node]):
            plan = drain(api, [node], tally, STOP)
            (database,) = plan.stuck
            assert (plan.feasible, tally.wrong, database.outcome) == (True, [], Outcome.STOPS)
            (waiting,) = (vmi for vmi in vmis(api, APPLICATION, app="mssql2016") if not is_running(vmi))
            assert scheduling_message(api, waiting) == database.message
        wait_for("the database on its node", lambda: node in nodes_of_databases(api), TIMEOUT)


# What cannot be migrated restarts, but for VMs with a disk of their own.
RESTART = [{"selector": {"profile": "store"}, "policy": "stop"}, {"policy": "restart"}]


@pytest.mark.parametrize(("seed", "policies"), [(11, []), (12, RESTART)], ids=["without-policies", "with-policies"])
def test_generated_clusters(testbed: RunningTestbed, seed: int, policies: list[Object]) -> None:
    generated = generate(replace(SPEC, seed=seed))
    scenario = replace(generated, objects=tuple(map(peaceful, generated.objects)))
    tally = Tally()
    with loaded(testbed.api, scenario):
        nodes = fullest(testbed.api, 2)
        with out_of_service(testbed.api, nodes):
            plan = drain(testbed.api, nodes, tally, policies)
            left = {name for node in nodes for name in running_on(testbed.api, node)}
            try_the_stuck(testbed.api, plan, tally)
    assert tally.wrong == []
    assert left == {machine.name for machine in plan.stuck if machine.outcome is Outcome.STAYS}
    assert tally.moved >= MOVED, "so few migrations prove little"
    assert tally.shut_down > 0 or not policies


def nodes_of_databases(api: Api) -> list[str]:
    return [vmi["status"]["nodeName"] for vmi in vmis(api, APPLICATION, app="mssql2016") if is_running(vmi)]


def fullest(api: Api, count: int) -> list[str]:
    """The nodes with the most VMs; among them some with VMs that cannot be migrated."""
    machines = api.items("/apis/kubevirt.io/v1/virtualmachineinstances")
    nodes = [vmi["status"]["nodeName"] for vmi in machines]
    fixed = {vmi["status"]["nodeName"] for vmi in machines if not _migratable(vmi)}
    return sorted(set(nodes), key=lambda node: (node not in fixed, -nodes.count(node), node))[:count]


def running_on(api: Api, node: str) -> list[str]:
    """Names of the VMIs on a node, and of ordinary pods that a drain would not leave there."""
    machines = api.items("/apis/kubevirt.io/v1/virtualmachineinstances")
    found = [vmi["metadata"]["name"] for vmi in machines if vmi["status"].get("nodeName") == node]
    for pod in api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}"):
        kinds = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])}
        if pod["status"]["phase"] == "Running" and not kinds & {"DaemonSet", "VirtualMachineInstance"}:
            found.append(pod["metadata"]["name"])
    return found


def is_running(vmi: Object) -> bool:
    return bool(vmi["status"].get("phase") == "Running")


def _migratable(vmi: Object) -> bool:
    conditions = vmi["status"].get("conditions", [])
    return any(entry["type"] == "LiveMigratable" and entry["status"] == "True" for entry in conditions)
