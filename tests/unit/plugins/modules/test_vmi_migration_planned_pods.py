# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a plan of moves: who serves while one is away, and where the one comes up that comes instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, plan_of
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, pod
from unit.plugins.modules.test_vmi_migration_planned import CACHE, DB, WEB, doings, given, places
from unit.plugins.support.draining_api import BUDGET, fill, pod_path
from unit.plugins.support.evicting_api import PODS, READY, EvictingApi
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import migrations_path, vmi_path
from unit.plugins.support.modules import ModuleRunner


@pytest.fixture
def api(authority: Authority) -> Iterator[EvictingApi]:
    """Pod cache and VMIs db and web on n1; what replaces the pod is on n2."""
    fake = EvictingApi()
    fill(fake, "n1", "n2", "n3")
    fake.add_pod("cache", status=READY)
    fake.add_vmi("db")
    fake.add_vmi("web")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def move(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, main, **connection, wait_timeout=10)


def test_a_pod_that_comes_up_elsewhere_than_planned_is_told(move: Any, api: EvictingApi) -> None:
    api.add_pod("o-1", status=READY)
    api.add_pod("o-2", status=READY)
    evicted = [action(ActionKind.EVICT, pod(name), "n1", target) for name, target in (("o-1", "n3"), ("o-2", "n2"))]
    (deviation,) = move(plan=given(*evicted))["deviations"]
    assert (deviation["name"], deviation["planned"]) == ("o-1", "comes back on n3")
    assert deviation["done"] == "came back on n2"
    assert deviation["why"] == "the scheduler has preferred that node, by what was there then"
    api.node("n3")["spec"]["unschedulable"] = True
    api.add_pod("o-3", status=READY)
    (deviation,) = move(plan=given(action(ActionKind.EVICT, pod("o-3"), "n1", "n3")))["deviations"]
    assert deviation["why"] == "n3 is cordoned"


def test_pods_of_one_controller_that_move_one_after_the_other_come_as_planned(move: Any, api: EvictingApi) -> None:
    for name in ("o-1", "o-2"):
        api.add_pod(name, status=READY)
    first = action(ActionKind.EVICT, pod("o-1"), "n1", "n2")
    result = move(plan=given(first, action(ActionKind.EVICT, pod("o-2"), "n1", "n2", first)))
    assert (doings(api), result["deviations"]) == (["o-1", "o-2"], [])


def test_who_follows_a_pod_waits_for_another_one_in_its_place(move: Any, api: EvictingApi) -> None:
    api.forgotten = True
    result = move(plan=given(CACHE, DB, replace(WEB, after=())), wait_timeout=1)
    assert (result["error"]["reason"], sorted(doings(api))) == ("DeadlineExceeded", ["cache", "web"])
    assert "after 1 s ReplicaSet shop/o has not as many pods ready again as before" in result["msg"]
    assert places(result) == [("web", "migrated", "n3")]


def late(api: EvictingApi) -> list[bool]:
    """What comes instead of cache is ready some looks after it has gone. Returns whether db was migrated after that."""
    api.forgotten, looks, there = True, list[Request](), list[bool]()

    def look(request: Request) -> None:
        if pod_path("cache") not in api.objects:
            looks.append(request)
        if len(looks) == 3:
            api.add_pod("cache-new", "n2", status=READY)

    def migrate(request: Request) -> None:
        if request.method == "POST":
            there.append(api.objects[pod_path("cache-new")]["status"] == READY)

    api.faults |= {PODS: look, migrations_path(): migrate}
    return there


@pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
@pytest.mark.parametrize("who", ["cache-new", "o-2"])
def test_who_follows_a_pod_of_a_job_waits_for_none_that_has_done_its_work(
    move: Any, api: EvictingApi, kind: str, who: str
) -> None:
    """Be it the one that has come instead, or one that was there before."""
    api.forgotten = True
    owner = {"kind": kind, "name": "o", "uid": "uid-o", "controller": True}
    for name in ("cache", "o-2"):
        api.add_pod(name, status=READY, metadata={"ownerReferences": [owner]})
    api.add_pod("o-3", status={"phase": "Succeeded"}, metadata={"ownerReferences": [owner]})

    def look(_request: Request) -> None:
        if pod_path("cache") not in api.objects:
            api.add_pod("cache-new", "n2", status=READY, metadata={"ownerReferences": [owner]})
            api.objects[pod_path(who)]["status"] = {"phase": "Succeeded"}

    api.faults[PODS] = look
    result = move(plan=given(CACHE, DB), wait_timeout=1)
    assert (doings(api), "error" in result) == (["cache", "db"] if kind == "Job" else ["cache"], kind != "Job")


def held(api: EvictingApi, then: Callable[[], object]) -> None:
    """A budget keeps cache for two tries; then: what happens meanwhile."""
    tries = list[Request]()

    def answer(request: Request) -> Answer | None:
        tries.append(request)
        if len(tries) == 1:
            then()
        return BUDGET if len(tries) < 3 else None

    api.faults[f"{pod_path('cache')}/eviction"] = answer


def test_who_has_come_to_serve_while_a_budget_held_a_pod_back_counts(move: Any, api: EvictingApi) -> None:
    """Else who follows would not wait for what comes instead."""
    api.add_pod("o-2")
    held(api, lambda: api.add_pod("o-2", status=READY))
    there = late(api)
    assert places(move(plan=given(CACHE, DB))) == [("db", "migrated", "n2")]
    assert there == [True]


def test_who_has_done_its_work_while_a_budget_held_another_one_back_has_no_say(move: Any, api: EvictingApi) -> None:
    """What comes in its place does not come in that of the other one."""
    for name in ("cache", "o-2"):
        api.add_pod(name, owner="Job", status=READY)

    def done() -> None:
        api.add_pod("o-2", owner="Job", status={"phase": "Succeeded"})
        api.add_pod("o-3", owner="Job", status=READY)

    held(api, done)
    there = late(api)
    assert places(move(plan=given(CACHE, DB))) == [("db", "migrated", "n2")]
    assert there == [True]


def test_who_has_come_and_gone_while_a_budget_held_a_pod_back_is_not_waited_for(move: Any, api: EvictingApi) -> None:
    """As an autoscaler has it."""
    api.add_pod("o-2", status=READY)
    changes = [lambda: api.add_pod("o-3", status=READY), lambda: api.objects.pop(pod_path("o-3"))]

    def answer(_request: Request) -> Answer | None:
        if not changes:
            return None
        changes.pop(0)()
        return BUDGET

    api.faults[f"{pod_path('cache')}/eviction"] = answer
    there = late(api)
    assert places(move(plan=given(CACHE, DB), wait_timeout=2)) == [("db", "migrated", "n2")]
    assert there == [True]


def test_so_is_none_that_has_gone_where_one_that_has_failed_lingers(move: Any, api: EvictingApi) -> None:
    for name, status in (("o-2", READY), ("o-3", READY), ("o-4", {"phase": "Failed"})):
        api.add_pod(name, status=status)
    held(api, lambda: api.objects.pop(pod_path("o-3")))
    there = late(api)
    assert places(move(plan=given(CACHE, DB), wait_timeout=2)) == [("db", "migrated", "n2")]
    assert there == [True]


@pytest.mark.parametrize("who", ["cache", "o-2"])
def test_who_does_not_serve_for_a_moment_is_not_taken_for_gone(move: Any, api: EvictingApi, who: str) -> None:
    """Be it the pod itself that a budget holds back, or a peer that is back when the pod is evicted."""
    api.add_pod("o-2", status=READY)
    tries = list[Request]()

    def answer(request: Request) -> Answer | None:
        tries.append(request)
        api.objects[pod_path(who)]["status"] = {"phase": "Running"} if len(tries) < 3 else READY
        return BUDGET if len(tries) < 3 else None

    api.faults[f"{pod_path('cache')}/eviction"] = answer
    there = late(api)
    assert places(move(plan=given(CACHE, DB))) == [("db", "migrated", "n2")]
    assert there == [True]


def test_who_is_deleted_before_its_turn_is_waited_for_beside_one_that_a_budget_holds_back(
    move: Any, api: EvictingApi
) -> None:
    second = "o-22222"
    for name in ("cache", second):
        api.add_pod(name, status=READY, metadata={"generateName": "o-"})
    tries = list[Request]()

    def migrate(request: Request) -> None:
        if request.method == "POST":
            api.objects.pop(pod_path(second), None)

    def answer(request: Request) -> Answer | None:
        tries.extend([request] if api.objects[vmi_path("web")]["status"]["nodeName"] == "n3" else [])
        return BUDGET if len(tries) < 8 else None

    def look(_request: Request) -> None:
        if pod_path("cache") not in api.objects:
            api.add_pod("cache-new", "n2", status=READY)

    api.faults |= {migrations_path(): migrate, f"{pod_path('cache')}/eviction": answer, PODS: look}
    api.forgotten = True
    web = replace(WEB, after=())
    later = action(ActionKind.EVICT, pod(second), "n1", "n2", web)
    last = replace(DB, after=(later.id, CACHE.id))
    result = move(plan=given(web, CACHE, later, last), wait_timeout=3)
    assert (result["error"]["reason"], places(result)) == ("DeadlineExceeded", [("web", "migrated", "n3")])
    assert pod_path("cache-new") in api.objects


def test_so_does_who_has_when_another_one_has_gone_before(move: Any, api: EvictingApi) -> None:
    for name, status in (("o-2", READY), ("o-3", {"phase": "Running"})):
        api.add_pod(name, status=status)
    held(api, lambda: api.add_pod("o-3", status=READY))
    there = late(api)
    first = action(ActionKind.EVICT, pod("o-2"), "n1", "n2")
    result = move(plan=given(first, CACHE, replace(DB, after=(first.id, CACHE.id))), wait_timeout=2)
    assert (result["error"]["reason"], there) == ("DeadlineExceeded", []), "o-2 is never replaced"


def test_who_deletes_a_pod_that_a_budget_holds_back_changes_nothing_for_those_who_follow(
    move: Any, api: EvictingApi
) -> None:
    for name in ("o-2", "o-3"):
        api.add_pod(name, status=READY)
    api.forgotten, looks = True, list[Request]()

    def look(request: Request) -> None:
        if api.attempts:
            api.add_pod("cache", status=READY, metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"})
            looks.append(request)
        if len(looks) > 2:
            api.objects.pop(pod_path("cache"), None)

    api.faults[PODS] = look
    api.evictions = [BUDGET] * 9
    result = move(plan=given(CACHE, DB), wait_timeout=2)
    assert (result["error"]["reason"], result["migrations"]) == ("DeadlineExceeded", [])


@pytest.mark.parametrize(
    ("options", "gone"),
    [({"max_moves": 20}, ["db"]), ({}, ["db", "cache"])],
    ids=["rebalancing", "a plan of one's own"],
)
def test_a_pod_that_has_come_to_be_the_only_one_stays(
    move: Any, api: EvictingApi, options: dict[str, Any], gone: list[str]
) -> None:
    """As the node of the other one died while it waited."""
    api.add_pod("o-2", status=READY)
    first = replace(DB, after=())

    def dies(request: Request) -> Answer | None:
        if request.method == "POST":
            api.objects[pod_path("o-2")]["status"] = {"phase": "Running"}
        return None

    api.faults[migrations_path()] = dies
    plan = replace(plan_of([first, replace(CACHE, after=(first.id,))]), options=options)
    result = move(plan=to_json(plan))
    assert doings(api) == gone
    if options:
        assert result["error"]["problems"] == ["pod shop/cache is the only one of ReplicaSet o that serves by now"]


def test_one_that_has_to_stay_from_the_beginning_keeps_only_what_waits_for_it(move: Any, api: EvictingApi) -> None:
    plan = replace(plan_of([CACHE, DB, replace(WEB, after=())]), options={"max_moves": 20})
    foretold = move(plan=to_json(plan), check=True)
    assert (places(foretold), foretold["evicted"]) == ([("web", "would_migrate", "n1")], [])
    result = move(plan=to_json(plan))
    assert (result["changed"], doings(api), places(result)) == (True, ["web"], [("web", "migrated", "n3")])
    assert (
        result["error"]["problems"]
        == foretold["error"]["problems"]
        == ["pod shop/cache is the only one of ReplicaSet o that serves by now"]
    )


@pytest.mark.parametrize("check", [True, False])
def test_beside_a_failure_too_who_has_to_stay_takes_another_plan(move: Any, api: EvictingApi, *, check: bool) -> None:
    """To run the task again by the same one would not do."""
    denied = refusal(400, "BadRequest", "a webhook denied it")
    api.faults[migrations_path()] = lambda request: denied if request.method == "POST" else None
    plan = replace(plan_of([CACHE, replace(WEB, after=())]), options={"max_moves": 20})
    result = move(plan=to_json(plan), check=check, retries=0)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "a webhook denied it" in result["msg"]
    assert "the only one of ReplicaSet o" in result["msg"]
    assert result["msg"].endswith("Nothing was moved: plan anew.")
