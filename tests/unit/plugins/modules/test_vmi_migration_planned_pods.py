# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a plan of moves: who serves while one is away, and where the one comes up that comes instead."""

from __future__ import annotations

from collections.abc import Iterator
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
from unit.plugins.support.draining_api import BUDGET, QUICK, fill, pod_path
from unit.plugins.support.evicting_api import READY, EvictingApi
from unit.plugins.support.fake_api import Answer, Request, serving
from unit.plugins.support.migrating_api import migrations_path
from unit.plugins.support.modules import ModuleRunner


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[EvictingApi]:
    """Pod cache and VMIs db and web on n1; what replaces the pod is on n2."""
    for module, name, seconds in QUICK:
        monkeypatch.setattr(module, name, seconds)
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


def test_who_has_come_to_serve_while_a_budget_held_a_pod_back_counts(move: Any, api: EvictingApi) -> None:
    """Else who follows would not wait for what comes instead."""
    api.forgotten, tries = True, list[Request]()

    def held(request: Request) -> Answer | None:
        tries.append(request)
        if len(tries) == 1:
            api.add_pod("o-2", status=READY)
        return BUDGET if len(tries) < 3 else None

    api.add_pod("o-2")
    api.faults[f"{pod_path('cache')}/eviction"] = held
    result = move(plan=given(CACHE, DB), wait_timeout=1)
    assert (result["error"]["reason"], doings(api)[-1], result["migrations"]) == ("DeadlineExceeded", "cache", [])


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
    result = move(plan=to_json(plan))
    assert (result["changed"], doings(api), places(result)) == (True, ["web"], [("web", "migrated", "n3")])
    assert result["error"]["problems"] == ["pod shop/cache is the only one of ReplicaSet o that serves by now"]
