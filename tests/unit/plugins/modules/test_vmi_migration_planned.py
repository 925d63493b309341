# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of moves comes true in its order, can be given again, and is refused before it harms anybody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import encode, sha256, to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    Plan,
    PlannedCluster,
    plan_of,
)
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.module_utils._plan import plans
from unit.plugins.module_utils._plan.plans import action, pod, vm
from unit.plugins.support.draining_api import BUDGET, fill, pod_path
from unit.plugins.support.evicting_api import READY, EvictingApi
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import FAILURE, vmi_path
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.plan_schema import plan_in

CACHE = action(ActionKind.EVICT, pod("cache"), "n1", "n2")
DB = action(ActionKind.MIGRATE, vm("db"), "n1", "n2", CACHE)
WEB = action(ActionKind.MIGRATE, vm("web"), "n1", "n3", DB)


@pytest.fixture
def api(authority: Authority) -> Iterator[EvictingApi]:
    """Pod cache and VMIs db and web on n1; what replaces the pod is on n2."""
    fake = EvictingApi()
    fill(fake, "n1", "n2", "n3")
    fake.objects["/api/v1/namespaces/kube-system"] = {"metadata": {"name": "kube-system", "uid": "uid-of-cluster"}}
    fake.add_pod("cache", status=READY)
    fake.add_vmi("db")
    fake.add_vmi("web")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def move(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, main, **connection, wait_timeout=10)


def given(*actions: Action) -> dict[str, Any]:
    return to_json(plan_of(actions))


def doings(api: EvictingApi) -> list[str]:
    """What was evicted and migrated, in the order in which it was asked for."""
    found: list[str] = []
    for request in api.writes():
        if request.path.endswith("/eviction") and "dryRun" not in request.body.get("deleteOptions", {}):
            found.append(request.path.split("/")[-2])
        elif "dryRun" not in request.query and request.body.get("kind") == "VirtualMachineInstanceMigration":
            found.append(request.body["spec"]["vmiName"])
    return found


def places(result: Result) -> list[tuple[str, str, str]]:
    return [(entry["name"], entry["outcome"], entry["node"]) for entry in result["migrations"]]


def test_everything_moves_in_the_order_of_the_plan(move: Any, api: EvictingApi) -> None:
    result = move(plan=given(CACHE, DB, WEB), diff=True)
    assert doings(api) == ["cache", "db", "web"]
    assert (result["changed"], places(result)) == (True, [("db", "migrated", "n2"), ("web", "migrated", "n3")])
    assert [entry["outcome"] for entry in result["evicted"]] == ["evicted"]
    assert [entry["pods"] for entry in result["replacements"]] == [[{"name": "cache-new", "node": "n2"}]]
    assert result["deviations"] == []
    assert result["diff"]["after"] == "shop/db: n2\nshop/web: n3\n"


def test_a_plan_that_has_come_true_changes_nothing(move: Any, api: EvictingApi) -> None:
    move(plan=given(CACHE, DB, WEB))
    again = move(plan=given(CACHE, DB, WEB))
    assert (again["changed"], again["gone"], len(doings(api))) == (False, ["shop/cache"], 3)
    assert [outcome for _name, outcome, _node in places(again)] == ["already_there"] * 2


def test_check_mode_puts_all_of_it_to_the_server(move: Any, api: EvictingApi) -> None:
    result = move(plan=given(CACHE, DB, WEB), check=True)
    assert (result["changed"], doings(api)) == (True, [])
    assert [outcome for _name, outcome, _node in places(result)] == ["would_migrate"] * 2
    assert result["evicted"][0]["outcome"] == "would_evict"
    assert pod_path("cache") in api.objects


def test_a_plan_is_known_by_its_file_and_digest(move: Any, api: EvictingApi, tmp_path: Path) -> None:
    plan, path = plan_of([replace(DB, after=())]), tmp_path / "moves.json"
    path.touch(mode=0o600)
    path.write_bytes(encode(plan))
    assert "is not the one that was meant" in move(plan={"plan_path": str(path), "sha256": "0"})["msg"]
    assert move(plan={"plan_path": str(path), "sha256": sha256(plan)})["changed"]
    assert not move(plan=str(path))["changed"]
    assert doings(api) == ["db"]


def other_vmi(api: EvictingApi) -> None:
    api.objects[vmi_path("web")]["metadata"]["uid"] = "uid-of-another"


def other_place(api: EvictingApi) -> None:
    api.objects[vmi_path("web")]["status"]["nodeName"] = "n2"


def no_vmi(api: EvictingApi) -> None:
    del api.objects[vmi_path("web")]


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (other_vmi, "shop/web: it is another one of this name than was planned for; plan anew"),
        (other_place, "shop/web: it is on n2, and was planned to leave n1; plan anew"),
        (no_vmi, "shop/web: there is no VirtualMachineInstance of this name"),
    ],
)
def test_nothing_moves_if_the_last_one_is_not_where_it_was(
    move: Any, api: EvictingApi, happens: Any, words: str
) -> None:
    happens(api)
    result = move(plan=given(CACHE, DB, WEB))
    assert (words in result["msg"], doings(api)) == (True, [])


def test_a_pod_of_the_same_name_is_another_one(move: Any, api: EvictingApi) -> None:
    api.objects[pod_path("cache")]["metadata"]["uid"] = "uid-of-another"
    result = move(plan=given(CACHE, DB))
    assert (result["gone"], doings(api)) == (["shop/cache"], ["db"])


def test_what_waits_for_what_failed_stays(move: Any, api: EvictingApi) -> None:
    api.own_courses["db"] = [FAILURE]
    result = move(plan=given(CACHE, DB, WEB), retries=0)
    assert (result["failed"], result["error"]["reason"], doings(api)) == (True, "MigrationFailed", ["cache", "db"])
    assert (result["changed"], places(result)) == (True, [("db", "failed", "n1")])
    assert result["evicted"][0]["name"] == "cache"


def test_what_was_done_is_told_when_the_server_refuses_the_rest(move: Any, api: EvictingApi) -> None:
    api.faults[vmi_path("db")] = lambda _request: refusal(403, "Forbidden", "no") if doings(api) else None
    result = move(plan=given(CACHE, DB))
    assert (result["failed"], result["changed"], doings(api)) == (True, True, ["cache"])
    assert result["evicted"][0]["outcome"] == "evicted"


def test_who_has_gone_when_others_have_moved_is_not_told_as_if_nothing_had(move: Any, api: EvictingApi) -> None:
    def go(_request: Request) -> None:
        if "db" in doings(api):
            api.objects.pop(vmi_path("web"), None)

    api.faults[vmi_path("web")] = go
    result = move(plan=given(CACHE, DB, WEB))
    assert (result["failed"], result["changed"], doings(api)) == (True, True, ["cache", "db"])
    assert "shop/web: there is no VirtualMachineInstance of this name" in result["msg"]
    assert "What had moved before stays where it is" in result["msg"]
    assert "No migration was started" not in result["msg"]


def test_a_busy_server_ends_no_plan_that_has_taken_long(
    move: Any, api: EvictingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its parts has all of `wait_timeout`, so the last one begins long after that."""
    later = SimpleNamespace(now=lambda: time.monotonic() + (15.0 if doings(api) else 0.0))
    monkeypatch.setattr(persistence, "clock", later)
    monkeypatch.setattr(persistence, "READING", 20.0)
    busy = [refusal(429, "TooManyRequests", "later")]
    api.faults[vmi_path("db")] = lambda _request: busy.pop() if doings(api) and busy else None
    result = move(plan=given(CACHE, DB))
    assert (busy, places(result)) == ([], [("db", "migrated", "n2")])


def evicting(name: str, *after: Action) -> Action:
    """Of a pod that nothing replaces."""
    return action(ActionKind.EVICT, pod(name), "n1", None, *after)


LONE = evicting("lone")


def answer_to_lone(api: EvictingApi, answer: Answer, until: str = "") -> None:
    """To its eviction, until another thing is done."""
    api.add_pod("lone", owner="", status=READY)
    api.faults[f"{pod_path('lone')}/eviction"] = lambda _request: None if until in doings(api) else answer


def test_a_move_waits_for_nothing_but_what_the_plan_says(move: Any, api: EvictingApi) -> None:
    """Not for what may begin at the same time as what it waits for."""
    answer_to_lone(api, BUDGET, until="web")
    result = move(plan=given(LONE, CACHE, DB, WEB))
    assert places(result) == [("db", "migrated", "n2"), ("web", "migrated", "n3")]
    assert [(entry["name"], entry["outcome"]) for entry in result["evicted"]] == [
        ("lone", "evicted"),
        ("cache", "evicted"),
    ]


def test_a_failed_eviction_stops_only_what_waits_for_it(move: Any, api: EvictingApi) -> None:
    answer_to_lone(api, refusal(400, "BadRequest", "no such thing"))
    later = evicting("later", LONE)
    api.add_pod("later", owner="", status=READY)
    result = move(plan=given(LONE, CACHE, DB, replace(WEB, after=(LONE.id,)), later))
    assert (result["error"]["reason"], places(result)) == ("EvictionFailed", [("db", "migrated", "n2")])
    assert [entry["name"] for entry in result["evicted"]] == ["lone", "cache"]
    assert sorted(doings(api)) == ["cache", "db", "lone"]


def test_all_that_fails_is_told(move: Any, api: EvictingApi) -> None:
    answer_to_lone(api, refusal(400, "BadRequest", "no such thing"))
    api.own_courses["db"] = [FAILURE]
    api.faults[vmi_path("web")] = lambda _request: refusal(404, "NotFound", "none") if "cache" in doings(api) else None
    result = move(plan=given(LONE, CACHE, replace(DB, after=()), replace(WEB, after=(CACHE.id,))), retries=0)
    assert (result["error"]["attempted"], result["error"]["reason"]) == ("carry out the plan", "EvictionFailed")
    assert [problem.partition(": ")[0] for problem in result["error"]["problems"]] == [
        "pod shop/lone",
        "shop/db",
        "shop/web",
    ]
    assert all(problem in result["msg"] for problem in result["error"]["problems"])
    assert (result["changed"], places(result)) == (True, [("db", "failed", "n1")])


def test_a_controller_that_has_yet_to_replace_a_pod_replaces_all_of_them(move: Any, api: EvictingApi) -> None:
    """Else who follows the second one would not wait for what comes instead of it."""
    api.forgotten = True
    api.add_pod("o-2", status=READY)
    answer_to_lone(api, BUDGET, until="cache")
    second = evicting("o-2", LONE)
    result = move(plan=given(LONE, CACHE, second, replace(DB, after=(second.id,))), wait_timeout=1)
    assert (result["failed"], result["migrations"], "db" in doings(api)) == (True, [], False)
    assert [entry["controller"] for entry in result["replacements"]] == ["shop/o"]


def test_a_plan_goes_on_after_a_server_that_was_away(
    move: Any, api: EvictingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that concerns the look at what has its turn."""
    monkeypatch.setattr(persistence, "READING", 0.0)
    away = [refusal(503, "ServiceUnavailable", "away")] * 3
    api.faults[vmi_path("db")] = lambda _request: away.pop() if doings(api) and away else None
    result = move(plan=given(CACHE, DB, WEB))
    assert (away, doings(api)) == ([], ["cache", "db", "web"])
    assert places(result) == [("db", "migrated", "n2"), ("web", "migrated", "n3")]


def test_each_end_gives_what_is_left_as_much_time_again(
    move: Any, api: EvictingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "steady", lambda _self: time.monotonic() + 8.0 * len(doings(api)))
    assert places(move(plan=given(CACHE, DB, WEB))) == [("db", "migrated", "n2"), ("web", "migrated", "n3")]


def test_a_pod_of_a_virtual_machine_is_refused_when_it_has_its_turn(move: Any, api: EvictingApi) -> None:
    api.add_pod("launcher", metadata={"labels": {"kubevirt.io": "virt-launcher"}})
    result = move(plan=given(CACHE, evicting("launcher", CACHE), DB))
    assert result["error"]["problems"] == ["pod shop/launcher belongs to a virtual machine"]
    assert (result["changed"], doings(api)) == (True, ["cache", "db"])


def test_what_waits_costs_no_request(move: Any, api: EvictingApi) -> None:
    """However long others take, and pods are looked at only as long as some are evicted."""
    answer_to_lone(api, BUDGET, until="never")
    move(plan=given(LONE, CACHE, DB, replace(WEB, after=(LONE.id,))), wait_timeout=1)
    assert [request.path for request in api.requests].count(vmi_path("web")) == 1


def cluster_of(plan: Plan, uid: str) -> dict[str, Any]:
    return to_json(replace(plan, cluster=PlannedCluster(uid, "v1", "v1")))


def test_a_plan_of_another_cluster(move: Any, api: EvictingApi) -> None:
    result = move(plan=cluster_of(plan_of([CACHE]), "uid-of-before"))
    assert (result["error"]["reason"], doings(api)) == ("OtherCluster", [])
    assert move(plan=cluster_of(plan_of([CACHE]), "uid-of-cluster"))["changed"]


CORDON = action(ActionKind.CORDON, ObjectReference("Node", "", "n1", "uid-n1"), "n1")


@pytest.mark.parametrize(
    ("plan", "settings", "words"),
    [
        (to_json(plans.plan(CORDON)), {}, "the plan maintains n1; give it to node_drain"),
        (given(action(ActionKind.STOP, vm("db"), "n1")), {}, "the plan is to stop shop/db; only what migrates"),
        ({**given(CACHE), "run": "patch"}, {}, "The plan was edited since it was made"),
        (
            to_json(replace(plan_of([CACHE]), run="patch")),
            {"run": "other"},
            "the plan is of run patch, and run is other",
        ),
        (given(CACHE), {"state": "absent"}, "state is absent, and plan is given"),
        (given(CACHE), {"wait": False}, "wait is false, and plan is given"),
        (given(CACHE), {"wait_timeout": 0}, "wait_timeout is 0"),
        (["db"], {}, "A plan is expected"),
    ],
)
def test_a_plan_that_cannot_be_meant(
    move: Any, api: EvictingApi, plan: Any, settings: dict[str, Any], words: str
) -> None:
    result = move(**{"plan": plan, **settings})
    assert (words in result["msg"], doings(api)) == (True, []), result["msg"]


def test_what_is_asked_for_by_names_is_such_a_plan_as_well(move: Any, api: EvictingApi) -> None:
    wanted = {"vmis": [{"namespace": "shop", "name": name} for name in ("db", "web")], "target_node": "n2"}
    foretold = move(**wanted, document=True, check=True)["document"]
    actions, cluster, snapshot = plan_in(foretold).actions, plan_in(foretold).cluster, plan_in(foretold).snapshot
    assert (cluster.kubernetes, len(snapshot.sha256), snapshot.taken[-1]) == ("v1.36.3", 64, "Z")
    assert [(entry.object.uid, entry.source, entry.target) for entry in actions] == [
        ("uid-db", "n1", "n2"),
        ("uid-web", "n1", "n2"),
    ]
    result = move(plan=foretold, document=True)
    assert (result["document"], places(result)) == (foretold, [("db", "migrated", "n2"), ("web", "migrated", "n2")])
