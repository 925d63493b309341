# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves or stays for a run does so only while that is held by the same invocation, in the same cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import carrying_out, run_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, plan_of
from ansible_collections.virtops.kubevirt.plugins.modules import pod_eviction, rebalance_plan, vmi_migration

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, pod, vm
from unit.plugins.support.draining_api import BUDGET, pod_path
from unit.plugins.support.fake_api import Answer, Request
from unit.plugins.support.migrating_api import SUCCESS, migrations_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CLUSTER, LEASES, RunApi
from unit.plugins.support.run_drains import busy_cluster

RUN = {"run": "kernel", "invocation": "a1", "cluster_uid": CLUSTER}
API = action(ActionKind.EVICT, pod("api"), "n1")
MOVES = to_json(plan_of([API, action(ActionKind.MIGRATE, vm("db"), "n1", "n2", API)]))
VMIS = {"vmis": [{"name": name, "namespace": "shop"} for name in ("db", "web")]}
# What each module is to do for the run.
TASKS: dict[str, tuple[Callable[[], None], dict[str, Any]]] = {
    "evict": (pod_eviction.main, {"pods": [{"namespace": "shop", "name": name} for name in ("api", "web-1")]}),
    "migrate": (vmi_migration.main, {**VMIS, "target_node": "n2"}),
    "move": (vmi_migration.main, {"plan": MOVES}),
    "cancel": (vmi_migration.main, {**VMIS, "state": "absent"}),
}


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    """On n1 VMIs db and web, and pods api and web-1, which are replaced by nobody."""
    with busy_cluster(authority) as fake:
        fake.add_vmi("web")
        for name in ("api", "web-1"):
            fake.add_pod(name, owner="")
        yield fake


@pytest.fixture
def do(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi) -> Any:
    """A task by its name, for the run that invocation a1 holds."""

    def run_task(name: str, **settings: Any) -> Any:
        main, arguments = TASKS[name]
        if name == "cancel" and not api.migrations():
            for vmi in ("db", "web"):
                api.add_migration(f"of-{vmi}", vmi, course=())
        return partial(run_module, main, **{**connection, **arguments, **RUN, "wait_timeout": 10, **settings})()

    return run_task


def changes(api: RunApi) -> list[Request]:
    return [request for request in api.writes() if "/leases" not in request.path]


def is_taken(api: RunApi) -> None:
    api.hold_run("b2", seconds=10**9)


def is_released(api: RunApi) -> None:
    del api.objects[f"{LEASES}/virtops-run-kernel"]


@pytest.mark.parametrize("task", TASKS)
def test_the_holder_of_the_run_does_it(do: Any, api: RunApi, task: str) -> None:
    result = do(task)
    assert result["changed"]
    assert len(changes(api)) == 2


def test_migrations_for_a_run_carry_its_name(do: Any, api: RunApi) -> None:
    """By that whoever gives the run up finds what is in flight."""
    do("migrate")
    assert [item["metadata"]["labels"][RUN_LABEL] for item in api.created()] == ["kernel", "kernel"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("happens", [is_taken, is_released])
def test_who_has_lost_the_run_begins_nothing(
    do: Any, api: RunApi, task: str, happens: Callable[[RunApi], None]
) -> None:
    happens(api)
    result = do(task)
    assert (result["error"]["reason"], changes(api)) == ("RunLost", [])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("check", [False, True])
def test_another_cluster_is_left_alone(do: Any, api: RunApi, task: str, check: bool) -> None:
    result = do(task, cluster_uid="uid-of-before", check=check)
    assert (result["error"]["reason"], changes(api)) == ("OtherCluster", [])


@pytest.mark.parametrize("task", TASKS)
def test_check_mode_needs_no_run(do: Any, api: RunApi, task: str) -> None:
    is_taken(api)
    assert do(task, check=True)["changed"]


@pytest.mark.parametrize("task", TASKS)
def test_without_a_run_nobody_is_asked(do: Any, api: RunApi, task: str) -> None:
    is_taken(api)
    assert do(task, run=None, invocation=None, cluster_uid=None)["changed"]
    assert not [request for request in api.requests if "/leases" in request.path or "kube-system" in request.path]


@pytest.mark.parametrize("task", TASKS)
def test_a_controller_that_slept_between_two_requests_looks_before_the_second(
    do: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    """And tells what was done before."""
    monkeypatch.setattr(carrying_out, "_THREADS", 1)
    awake, slept = clock.now, [0.0]
    monkeypatch.setattr(clock, "now", lambda: awake() + slept[0])

    def sleep(request: Request) -> None:
        if request.method in ("POST", "DELETE"):
            slept[0] += 7200.0
            is_taken(api)

    evictions = [f"{pod_path(name)}/eviction" for name in ("api", "web-1")]
    for path in (
        *evictions,
        migrations_path("shop"),
        *(f"{migrations_path('shop')}/of-{vmi}" for vmi in ("db", "web")),
    ):
        api.faults[path] = sleep
    result = do(task)
    assert (result["error"]["reason"], len(changes(api))) == ("RunLost", 1)
    assert result["changed"]
    assert "held by invocation b2" in result["msg"]
    assert "start the same command again" in result["msg"]
    assert " s pod" not in result["msg"]


def test_a_pod_that_a_budget_holds_back_is_not_asked_for_again_for_a_run_that_is_lost(
    do: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)

    def hold_back(_request: Request) -> Answer:
        is_taken(api)
        return BUDGET

    api.faults[f"{pod_path('api')}/eviction"] = hold_back
    result = do("evict", pods=[{"namespace": "shop", "name": "api"}])
    assert (result["error"]["reason"], result.get("changed"), len(changes(api))) == ("RunLost", None, 1)


def test_a_migration_that_has_failed_is_not_tried_again_for_a_run_that_is_lost(
    do: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)
    api.courses = [("Pending", "Failed"), SUCCESS]
    api.faults[migrations_path("shop")] = lambda request: is_taken(api) if request.method == "POST" else None
    result = do("migrate", vmis=[{"name": "db", "namespace": "shop"}])
    assert (result["error"]["reason"], len(changes(api))) == ("RunLost", 1)
    assert result["migrations"][0]["attempts"] == 1


@pytest.mark.parametrize(("main", "arguments"), TASKS.values(), ids=TASKS)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"run": "a/b"}, "run is 'a/b'"),
        ({"run": None, "invocation": "a1"}, "invocation is given, but no run"),
        ({"lease_namespace": "a/b"}, "lease_namespace is 'a/b'"),
    ],
)
def test_a_run_that_cannot_be_meant(
    run_module: ModuleRunner,
    connection: dict[str, Any],
    api: RunApi,
    main: Callable[[], None],
    arguments: dict[str, Any],
    wrong: dict[str, Any],
    words: str,
) -> None:
    assert words in run_module(main, **{**connection, **arguments, **wrong})["msg"]
    assert api.requests == []


def test_moves_in_another_cluster_are_not_planned(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    result = run_module(rebalance_plan.main, **connection, cluster_uid="uid-of-before")
    assert result["error"]["reason"] == "OtherCluster"
    assert run_module(rebalance_plan.main, **connection, cluster_uid=CLUSTER)["moves"] == []
