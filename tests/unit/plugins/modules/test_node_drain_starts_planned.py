# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who starts again elsewhere than the run's plan had it is told, and starts whether that can be read or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.landings import landings_of_starts
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import starts_of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import STARTED, Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, plan, vm
from unit.plugins.support.draining_api import VMIS_IN_SHOP
from unit.plugins.support.fake_api import refusal
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CONFIG_MAPS, RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, memory

START = action(ActionKind.START, vm("pets"), "n1", "n1")


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        fake.add_vm("pets")
        yield fake


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> Any:
    """Of a node from which `pets` is stopped."""
    found = drain_of_the_run(run_module, connection, cordon=True, wait_timeout=20)
    assert found(policies=[{"policy": "stop"}])["interrupted"][0]["outcome"] == "stopped"
    api.node("n1")["spec"].pop("unschedulable")
    return found


def keep(connection: dict[str, Any], *actions: Action) -> None:
    """As the plan that the run goes by."""
    memory(connection).put("plan", PlanInForce.new(plan(*actions)).encoded())


def otherwise(result: dict[str, Any]) -> list[tuple[str, ...]]:
    assert [entry["outcome"] for entry in result["started"]] == ["started"], result
    return [tuple(entry[key] for key in ("kind", "name", "planned", "done", "why")) for entry in result["deviations"]]


def test_who_starts_where_that_was_planned_came_true(drain: Any, connection: dict[str, Any]) -> None:
    keep(connection, START)
    assert otherwise(drain(state="restored")) == []


@pytest.mark.parametrize(
    ("assumed", "closed", "why"),
    [
        ((), False, "the scheduler has preferred that node, by what was there then"),
        (("others come later",), False, "it was only assumed that others come later"),
        (("others come later",), True, "n1 is cordoned"),
    ],
)
def test_who_starts_elsewhere_is_told_with_the_reason(
    drain: Any, connection: dict[str, Any], api: RunApi, assumed: tuple[str, ...], closed: bool, why: str
) -> None:
    keep(connection, replace(START, assumed=assumed))
    api.home = "n2"
    if closed:
        api.node("n1")["spec"]["unschedulable"] = True
    result = drain(state="restored")
    assert otherwise(result) == [("vm", "pets", "comes back on n1", "came back on n2", why)]
    assert result["deviations"][0]["assumed"] is bool(assumed)


def test_who_starts_after_another_by_the_plan_is_asked_for_later(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    """Else it might take the place of that. Who waits for a VM of another node, which may stay away, starts."""
    for name in ("birds", "cats"):
        api.add_vm(name)
    drain = drain_of_the_run(run_module, connection, cordon=True, wait_timeout=20)
    assert len(drain(policies=[{"policy": "stop"}])["interrupted"]) == 3
    api.node("n1")["spec"].pop("unschedulable")
    cats, dogs = (action(ActionKind.START, vm(name), node, node) for name, node in (("cats", "n1"), ("dogs", "n2")))
    after = {"pets": cats, "birds": dogs}
    waiting = (action(ActionKind.START, vm(name), "n1", "n1", earlier) for name, earlier in after.items())
    keep(connection, cats, dogs, *waiting)
    before = len(api.requests)
    result = drain(state="restored")
    assert [entry["outcome"] for entry in result["started"]] == ["started"] * 3
    asked = [request.path.rpartition("/")[2] for request in api.requests[before:] if request.method in ("PUT", "PATCH")]
    assert asked.index("cats") < asked.index("pets")


def test_what_the_plan_tells_no_node_of_is_not_asked_for(drain: Any, connection: dict[str, Any], api: RunApi) -> None:
    keep(connection, replace(START, target=None), action(ActionKind.START, vm("other"), "n1", "n1"))
    api.home = "n2"
    assert otherwise(drain(state="restored")) == []


def test_a_run_that_keeps_no_plan_starts_as_well(drain: Any, api: RunApi) -> None:
    api.home = "n2"
    result = drain(state="restored")
    assert (otherwise(result), result.get("warnings", [])) == ([], [])


def test_a_plan_that_cannot_be_read_is_warned_of(drain: Any, connection: dict[str, Any], api: RunApi) -> None:
    keep(connection, START)
    for item in api.config_maps():
        path = f"{CONFIG_MAPS}/{item['metadata']['name']}"
        api.faults[path] = lambda _request: refusal(403, "Forbidden", "configmaps is forbidden")
    result = drain(state="restored")
    assert otherwise(result) == []
    assert "configmaps is forbidden" in str(result["warnings"])


def test_the_youngest_of_a_replica_set_came_back(connection: dict[str, Any], api: RunApi) -> None:
    """As many as are expected for the nodes of the batch, by the names of those that were stopped."""
    api.add_set("n1", "n3", "n2", ready=3)
    for number in range(3):
        api.objects[vmi_path(f"set-{number}")]["metadata"]["creationTimestamp"] = f"2026-01-0{number + 1}T00:00:00Z"
    starts = [action(ActionKind.START, vm(f"setbbbb{node[1]}"), node, node) for node in ("n2", "n4")]
    started = [Starting("start", VMI_REPLICA_SET, "shop", "set", "uid-set", "n2", outcome=STARTED)]
    wanted = starts_of_batch(plan(*starts), "n2", started)
    assert wanted == [(each, "uid-set") for each in starts]
    found = landings_of_starts(connect_by(connection, 5), started, {"uid-set": ["n2", "n4"]})
    assert found.came == {"uid-set": ["n3", "n2"]}
    assert [entry.done for _action, entry in found.astray(wanted)] == ["came back on n3"]
    api.faults[VMIS_IN_SHOP] = lambda _request: refusal(403, "Forbidden", "no rights")
    unseen = landings_of_starts(connect_by(connection, 5), started, {"uid-set": ["n2", "n4"]})
    assert all("no rights" in entry.why for _action, entry in unseen.astray(wanted))
