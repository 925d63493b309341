# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Without any one right a task fails before it touches anything, and names it, its reason and what grants it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import permissions, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import DISPENSABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Right
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES, ROLES, demanded, reasons
from ansible_collections.virtops.kubevirt.plugins.modules import (
    access_review,
    maintenance_run,
    node_drain,
    node_maintenance,
)

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import invocation
from unit.plugins.support.fake_api import REVIEWS, Request, asked_for, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CLUSTER, RunApi, busy_run

STOP = [{"policy": "stop"}]
BUSY = "API server busy (429), trying again since 02:14:07"
# What each task is refused without. A run's other tasks ask for nothing: role plan_maintenance has.
TASKS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "node_drain": (node_drain.main, {"name": "n1", "owner": "me", "cordon": True, "policies": STOP}, "drain"),
    "node_drain, restored": (node_drain.main, {"name": "n1", "owner": "me", "state": "restored"}, "uncordon"),
    "maintenance_run, aborted": (
        maintenance_run.main,
        {"run": "kernel", "state": "aborted", "_invocation": invocation("b2")},
        "rolling_maintenance",
    ),
}


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    fake = busy_run()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def title(right: Right) -> str:
    return " ".join(filter(None, (right.verb, right.title, "in medik8s-leases" if right.of_leases else "")))


def asked(api: RunApi) -> list[Request]:
    return [request for request in api.requests if request.path == REVIEWS]


def each(table: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(name, right, id=f"{name}: {title(right)}") for name in table for right in demanded(table[name])
    ]


def check(result: Any, right: Right, needs: Any, role: str, api: RunApi) -> None:
    why = reasons(needs)[right]
    assert result["error"]["reason"] == "RightsMissing"
    (missing,) = result["error"]["missing"]
    assert (missing["verb"], missing["resource"], missing["why"]) == (right.verb, right.resource, why)
    assert f"{right.verb} {right.title}" in result["msg"]
    assert f"(to {why[0]})" in result["msg"]
    assert f"virtops.kubevirt.access -e access_roles={role}" in result["msg"]
    assert api.writes() == []


@pytest.mark.campaign
@pytest.mark.parametrize(("role", "right"), each({name: ROLES[name] for name in ("planning", "rolling_maintenance")}))
def test_the_one_that_is_missing_is_named(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, role: str, right: Right
) -> None:
    api.withheld = {title(right)}
    check(run_module(access_review.main, **connection, roles=[role]), right, ROLES[role], role, api)


def test_what_the_collection_can_do_without_is_not_demanded(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.withheld = {title(right) for right in DISPENSABLE}
    assert api.withheld
    assert run_module(access_review.main, **connection, roles=["rolling_maintenance"])["changed"] is False


@pytest.mark.parametrize("role", ROLES)
def test_a_role_asks_for_its_rights_and_no_others(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, role: str
) -> None:
    needed = demanded(ROLES[role])
    assert run_module(access_review.main, **connection, roles=[role]) == {
        **run_module(access_review.main, check=True, **connection, roles=[role]),
        "changed": False,
        "reviewed": len(needed),
    }
    reviewed = {asked_for(request.body["spec"]["resourceAttributes"]) for request in asked(api)}
    assert reviewed == {title(right) for right in needed}


@pytest.mark.campaign
@pytest.mark.parametrize(("task", "right"), each({name: MODULES[name] for name in TASKS}))
def test_nothing_is_touched_without_it(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, task: str, right: Right
) -> None:
    main, arguments, role = TASKS[task]
    api.withheld = {title(right)}
    check(run_module(main, **connection, **arguments), right, MODULES[task], role, api)


def test_check_mode_asks_as_well(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> None:
    api.withheld = {"create pods/eviction"}
    main, arguments, role = TASKS["node_drain"]
    right = Right("", "pods/eviction", "create")
    check(run_module(main, check=True, **connection, **arguments), right, MODULES["node_drain"], role, api)


def test_a_node_is_not_taken_by_who_could_not_give_it_back(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.withheld = {"delete leases.coordination.k8s.io in medik8s-leases"}
    maintain = partial(run_module, node_maintenance.main, **connection, name="n1", owner="me")
    for state in ("cordoned", "uncordoned"):
        assert (
            "to delete leases.coordination.k8s.io in namespace medik8s-leases (to release"
            in maintain(state=state)["msg"]
        )
    assert api.writes() == []


@pytest.mark.parametrize("verb", ["stop", "start"])
def test_who_interrupts_nothing_needs_no_right_to(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, verb: str
) -> None:
    api.withheld = {f"update virtualmachines/{verb}.subresources.kubevirt.io"}
    drain = partial(run_module, node_drain.main, check=True, **connection, name="n1", owner="me", cordon=True)
    assert "error" not in drain()
    assert "missing" in drain(policies=STOP)["error"]


def test_who_only_restarts_needs_no_right_to_start_what_was_stopped(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    """A VM that is restarted comes by its owner, and none is marked."""
    api.withheld = {"update virtualmachines/start.subresources.kubevirt.io"}
    drain = partial(run_module, node_drain.main, check=True, **connection, name="n1", owner="me", cordon=True)
    restart = {"selector": {"app": "web"}, "policy": "restart"}
    assert "error" not in drain(policies=[restart])
    assert "missing" in drain(policies=[restart, *STOP])["error"]


def test_a_run_has_asked_before_it_began(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> None:
    run_module(node_maintenance.main, **connection, name="n1", owner="kernel", run="kernel", invocation="a1")
    assert not asked(api)


def test_the_advice_is_for_the_namespace_in_which_the_leases_are(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.withheld = {"patch nodes"}
    result = run_module(access_review.main, **connection, roles=["uncordon"], lease_namespace="ours")
    assert "access -e access_roles=uncordon -e access_lease_namespace=ours -e access_path=" in result["msg"]


def test_all_that_are_missing_are_named_at_once(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.withheld = {"patch nodes", "create pods/eviction", "list pods"}
    result = run_module(access_review.main, **connection, roles=["rebalance", "uncordon"])
    assert {f"{item['verb']} {item['resource']}" for item in result["error"]["missing"]} == api.withheld
    advice = (
        "virtops.kubevirt.access -e access_roles=rebalance,uncordon -e access_path=maintenance.kubeconfig`, with all "
    )
    assert advice in result["msg"]
    assert "\n" not in result["msg"]


def test_it_tells_which_cluster_it_has_asked(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> None:
    for check in (False, True):
        result = run_module(access_review.main, check=check, **connection, roles=["live_migrate"])
        assert result["cluster_uid"] == CLUSTER


def test_who_may_not_even_ask_is_told_so_or_goes_on(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.faults[REVIEWS] = lambda request: refusal(403, "Forbidden", "no reviews")
    assert "no reviews" in run_module(access_review.main, **connection, roles=["drain"])["msg"]
    assert run_module(node_maintenance.main, **connection, name="n1", owner="me")["changed"]


@pytest.fixture
def slept(api: RunApi, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The only time that passes while the server is busy."""
    slept: list[float] = []
    monkeypatch.setattr(persistence, "READING", 120.0)
    monkeypatch.setattr(persistence, "clock", SimpleNamespace(now=lambda: sum(slept)))
    monkeypatch.setattr(persistence, "time", SimpleNamespace(sleep=slept.append, strftime=lambda _format: "02:14:07"))
    monkeypatch.setattr(permissions, "_THREADS", 1)
    api.faults[REVIEWS] = lambda _request: refusal(429, "TooManyRequests", "later")
    return slept


@pytest.mark.parametrize(("own", "lasts"), [(None, 120.0), (10, 10.0), (600, 600.0)])
def test_a_server_that_is_busy_is_waited_for_as_long_as_the_task_has(
    run_module: ModuleRunner, connection: dict[str, Any], slept: list[float], own: int | None, lasts: float
) -> None:
    result = run_module(access_review.main, **connection, roles=["uncordon"], wait_timeout=own)
    assert result["error"]["status"] == 429
    assert sum(slept) == pytest.approx(lasts)


def test_one_that_is_busy_for_long_is_told_of_meanwhile(
    run_module: ModuleRunner, connection: dict[str, Any], slept: list[float]
) -> None:
    with listener() as heard:
        result = run_module(access_review.main, **connection, roles=["uncordon"], _progress=heard.path)
    assert heard.told == [BUSY]
    assert "warnings" not in result


@pytest.mark.parametrize("path", [None, "/of/another/host"])
def test_where_nobody_can_listen_it_is_told_of_in_the_end(
    run_module: ModuleRunner, connection: dict[str, Any], slept: list[float], path: str | None
) -> None:
    result = run_module(access_review.main, **connection, roles=["uncordon"], _progress=path)
    assert str(result["warnings"]).count(BUSY) == 1


def test_all_rights_there_are_is_a_success(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> None:
    result = run_module(access_review.main, **connection, roles=list(ROLES))
    assert (result["changed"], result["reviewed"]) == (False, len(demanded(ROLES["rolling_maintenance"])))
