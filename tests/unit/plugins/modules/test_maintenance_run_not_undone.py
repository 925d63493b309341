# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a run cannot be undone is named, and keeps nothing else of it from being undone."""

from __future__ import annotations

import time as time_of_day
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run, undoing
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import start_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import starting
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import Maintain, invocation
from unit.plugins.modules.test_maintenance_run_aborted import STOPPED, appears, stopped_for
from unit.plugins.support.draining_api import vm_path
from unit.plugins.support.fake_api import SILENCE, Answer, Fault, Request, refusal
from unit.plugins.support.migrating_api import migrations_path, vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.own_time import Time, own_time
from unit.plugins.support.run_api import LEASES, RunApi, running

DENIED = 'admission webhook "guard.example" denied the request: not now'
AWAY = 'Internal error occurred: failed calling webhook "guard.example": connection refused'
NODE = "/api/v1/nodes/{}"


@pytest.fixture
def api(authority: Authority, run_module: ModuleRunner) -> Iterator[RunApi]:
    """Nodes n1 and n2 are the run's, and two VMs on their way."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        connection: dict[str, Any] = {"host": fake.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}
        for node in ("n1", "n2"):
            fake.add_node(node)
            run_module(node_maintenance.main, **connection, name=node, owner="kernel", run="kernel")
            fake.add_vm(f"vm-{node}")
            fake.add_migration(f"move-{node}", f"vm-{node}", run="kernel")
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Maintain:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    settings = {"run": "kernel", "_invocation": invocation("a1"), "state": "aborted"}
    return partial(run_module, main, **{**connection, **settings})


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


def answering(answer: Answer, *methods: str) -> Fault:
    return lambda request: answer if request.method in methods else None


def stop(api: RunApi, name: str, node: str) -> None:
    """As the run does for a node."""
    api.add_vm(name)
    del api.objects[vmi_path(name)]
    vm = api.objects[vm_path(name)]
    vm["spec"]["runStrategy"] = "Halted"
    annotations = {"virtops.kubevirt/stopped-for": stopped_for(node, "kernel")}
    vm["metadata"] |= {"labels": STOPPED, "annotations": annotations}


def cordoned(api: RunApi) -> list[str]:
    return [name for name in ("n1", "n2") if api.node(name)["spec"].get("unschedulable")]


def held(api: RunApi) -> list[str]:
    """Nodes whose Leases are there."""
    return [name for name in ("n1", "n2") if f"{LEASES}/node-{name}" in api.objects]


@pytest.mark.parametrize("status", [400, 403])
def test_what_is_refused_keeps_nothing_else(maintain: Maintain, api: RunApi, status: int) -> None:
    """A migration and a Lease: neither what stands beside them, nor what appears while they are tried."""
    rest = ["late"]

    def refuse(request: Request) -> Answer | None:
        if request.method != "DELETE":
            return None
        if rest:
            appears(api, rest.pop())
        return refusal(status, "Denied", DENIED)

    api.faults |= {f"{migrations_path()}/move-n1": refuse, f"{LEASES}/node-n1": refuse}
    result = maintain()
    assert (result["error"]["reason"], result["error"]["problems"]) == (
        "NotUndone",
        [
            f"cancel migration shop/move-n1: the API server answered {status}, {DENIED}",
            f"release lease medik8s-leases/node-n1: the API server answered {status}, {DENIED}",
        ],
    )
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n2", "shop/move-late"], ["n2"])
    assert [api.node(name)["spec"].get("unschedulable") for name in ("n1", "n2")] == [None, None]


def test_of_much_that_is_left_the_first_is_told(maintain: Maintain, api: RunApi) -> None:
    for number in range(30):
        api.add_vm(f"many-{number}")
        api.add_migration(f"many-{number}", f"many-{number}", run="kernel")
        api.faults[f"{migrations_path()}/many-{number}"] = deny
    result = maintain()
    assert (len(result["error"]["problems"]), result["msg"].count("cancel migration")) == (30, 10)
    assert "; and 20 more. Remove the cause" in result["msg"]


def deny(request: Request) -> Answer | None:
    return refusal(400, "Denied", DENIED) if request.method == "DELETE" else None


def forbidden(verb: str, resource: str) -> Answer:
    words = f'User "jane" cannot {verb} resource "{resource}" in API group "kubevirt.io" in the namespace "shop"'
    return refusal(403, "Forbidden", f"{resource}.kubevirt.io is forbidden: {words}")


def test_what_may_not_be_cancelled_keeps_nothing_else(maintain: Maintain, api: RunApi) -> None:
    """A right may be missing in one namespace alone."""
    no = forbidden("delete", "virtualmachineinstancemigrations")
    api.faults[f"{migrations_path()}/move-n1"] = answering(no, "DELETE")
    result = maintain()
    (problem,) = result["error"]["problems"]
    assert problem.startswith("cancel migration shop/move-n1: the API server answered 403, ")
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n2"], ["n1", "n2"])


def test_vms_that_may_not_be_started_keep_no_others_off(maintain: Maintain, api: RunApi) -> None:
    stop(api, "off-n1", "n1")
    stop(api, "off-n2", "n2")
    no = forbidden("patch", "virtualmachines")
    api.faults[vm_path("off-n1")] = answering(no, "PATCH", "PUT")
    result = maintain()
    assert result["error"]["reason"] == "NotUndone"
    assert all("shop/off-n1" in problem for problem in result["error"]["problems"])
    assert [bool(api.objects[vm_path(name)]["metadata"].get("labels")) for name in ("off-n1", "off-n2")] == [
        True,
        False,
    ]
    assert result["given_back"] == ["n1", "n2"]


@pytest.mark.parametrize("words", [AWAY, "etcdserver: request timed out"])
def test_a_server_that_fails_one_node_keeps_nothing_else(
    maintain: Maintain, api: RunApi, time: Time, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until all the time is over that the task has for what it changes."""
    monkeypatch.setattr(undoing, "TO_START", 6.0)
    stop(api, "off-n1", "n1")
    stop(api, "off-n2", "n2")
    api.faults[NODE.format("n1")] = answering(refusal(500, "InternalError", words), "PATCH")
    result = maintain(wait_timeout=2)
    problem, *others = result["error"]["problems"]
    assert problem.startswith(f"uncordon node n1: the API server answered 500, {words}; tried ")
    assert all("shop/off-n1" in other for other in others), "nor can the node be told that it is not stopped any more"
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n1", "shop/move-n2"], ["n2"])
    assert sorted(item["name"] for item in result["started"]) == ["off-n1", "off-n2"]
    assert {api.objects[vm_path(name)]["spec"]["runStrategy"] for name in ("off-n1", "off-n2")} == {"Always"}
    assert (cordoned(api), held(api)) == (["n1"], ["n1"])
    assert sum(time.slept) >= 2 * 2 + 120


def test_what_a_webhook_that_is_away_has_to_admit_is_undone_after_the_rest(
    maintain: Maintain, api: RunApi, time: Time
) -> None:
    def away(request: Request) -> Answer | None:
        is_back = not cordoned(api)[1:]
        return refusal(500, "InternalError", AWAY) if request.method == "PATCH" and not is_back else None

    api.faults[NODE.format("n1")] = away
    result = maintain()
    assert (result.get("error"), result["given_back"]) == (None, ["n2", "n1"])
    assert (cordoned(api), held(api)) == ([], [])
    assert sum(time.slept) == pytest.approx(5.0)


def test_vms_of_a_node_that_is_set_aside_are_waited_for_when_it_is_back(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may need it. However long all that has taken, they have their time then."""
    monkeypatch.setattr(persistence, "BRIEF", 0.0)
    stop(api, "off-n1", "n1")
    allowed, over = list[float](), list[bool]()

    def noted(*given: Any) -> PlanRun:
        steps = (going := start_run(*given)).steps

        def limited(seconds: float) -> Iterator[None]:
            allowed.append(seconds)
            yield from steps(seconds)
            over.append(going.is_over)

        monkeypatch.setattr(going, "steps", limited)
        return going

    def away(request: Request) -> Answer | None:
        return refusal(500, "InternalError", AWAY) if request.method == "PATCH" and not over else None

    monkeypatch.setattr(undoing, "start_run", noted)
    api.faults[NODE.format("n1")] = away
    result = maintain(wait_timeout=5)
    assert (result.get("error"), result["given_back"]) == (None, ["n2", "n1"])
    assert (allowed, over) == ([1.0, pytest.approx(120.0, abs=5.0)], [False, True])


def test_vms_of_one_node_that_do_not_start_take_no_others_time(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As their storage is away. Those of all nodes have their time together, and are asked for at once."""
    monkeypatch.setattr(undoing, "TO_START", 6.0)
    for node in ("n1", "n2"):
        stop(api, f"off-{node}", node)
    asked, runs = list[str](), list[PlanRun]()

    def noted(*given: Any) -> PlanRun:
        runs.append(start_run(*given))
        return runs[-1]

    monkeypatch.setattr(undoing, "start_run", noted)

    def never(request: Request) -> Answer | None:
        if request.method == "PATCH":
            asked.append("n1")
            return refusal(503, "ServiceUnavailable", "not now")
        return None

    def at_last(request: Request) -> Answer | None:
        asked.append("n2")
        return None

    api.faults[vm_path("off-n1")], api.faults[vm_path("off-n2")] = never, at_last
    begun = time_of_day.monotonic()
    result = maintain(wait_timeout=5)
    assert time_of_day.monotonic() - begun < 60
    assert len({run.ends_at for run in runs[:2]}) == 1
    assert asked.index("n2") < len(asked) - 1 - asked[::-1].index("n1"), "not after all of the other node's time"
    assert {entry["name"]: entry["outcome"] for entry in result["started"]}["off-n2"] == "started"
    assert ["off-n1" in problem for problem in result["error"]["problems"]] == [True]


def test_vms_of_many_nodes_are_looked_at_as_often_as_those_of_one(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undoing, "TO_START", 6.0)
    monkeypatch.setattr(starting, "RETRY_AFTER", 0.1)
    monkeypatch.setattr(plan_run, "_PAUSE", 5.0)
    for node in ("n1", "n2"):
        stop(api, f"off-{node}", node)
    busy = [refusal(503, "ServiceUnavailable", "not now")] * 2
    api.faults[vm_path("off-n1")] = answering(busy[0], "PATCH")
    api.faults[vm_path("off-n2")] = lambda request: busy.pop() if request.method == "PATCH" and busy else None
    result = maintain(wait_timeout=5)
    assert {entry["name"]: entry["outcome"] for entry in result["started"]}["off-n2"] == "started"


@pytest.mark.parametrize("answer", [SILENCE, refusal(401, "Unauthorized", "Unauthorized")], ids=["silence", "401"])
@pytest.mark.usefixtures("time")
def test_where_nothing_can_be_undone_any_more_it_is_told_what_was(
    maintain: Maintain, api: RunApi, answer: Answer
) -> None:
    api.faults[f"{migrations_path()}/move-n1"] = deny
    api.faults[NODE.format("n2")] = answering(answer, "PATCH")
    result = maintain()
    assert result["error"]["reason"] in ("ConnectionLost", "Unauthorized")
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n2"], ["n1"])
    (problem,) = result["error"]["problems"]
    assert f"; and before that was left, {problem}. " in result["msg"]


@pytest.mark.usefixtures("time")
def test_a_cancellation_that_nobody_can_look_after_is_told(maintain: Maintain, api: RunApi) -> None:
    asked = list[Request]()

    def silent(request: Request) -> Answer | None:
        asked.extend([request] if request.method == "DELETE" else [])
        return SILENCE if asked and request.method == "GET" else None

    api.stubborn = True
    api.faults[f"{migrations_path()}/move-n1"] = silent
    result = maintain()
    assert result["error"]["reason"] == "ConnectionLost"
    assert result["error"]["problems"] == [
        f"migration shop/move-{node} is cancelled, but KubeVirt has not undone it yet" for node in ("n1", "n2")
    ]
    assert (result["cancelled"], cordoned(api)) == ([], ["n1", "n2"])


@pytest.mark.usefixtures("time")
def test_a_cancellation_that_came_about_is_not_told_as_one_that_did_not(maintain: Maintain, api: RunApi) -> None:
    def silent(request: Request) -> Answer | None:
        deleted = any(seen.method == "DELETE" and seen.path == request.path for seen in api.requests[:-1])
        return SILENCE if deleted and request.method == "GET" else None

    api.faults[f"{migrations_path()}/move-n2"] = silent
    result = maintain()
    assert result["error"]["reason"] == "ConnectionLost"
    assert result["error"]["problems"] == ["migration shop/move-n2 is cancelled, but KubeVirt has not undone it yet"]
    assert result["cancelled"] == ["shop/move-n1"]


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_node_that_is_not_given_back_keeps_its_lease(maintain: Maintain, api: RunApi, status: int) -> None:
    """Or another operator would take it, who looks at that alone."""
    api.faults[NODE.format("n1")] = answering(refusal(status, "Denied", DENIED), "PATCH")
    problems = maintain()["error"]["problems"]
    assert problems == [f"uncordon node n1: the API server answered {status}, {DENIED}"]
    assert (cordoned(api), held(api)) == (["n1"], ["n1"])
    api.faults.clear()
    assert maintain()["given_back"] == ["n1"]
    assert (cordoned(api), held(api)) == ([], [])
