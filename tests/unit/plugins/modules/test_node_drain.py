# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to leave a node leaves, what is to stay stays, and trouble on the way is survived or told."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import libraries

from testbed.pki import Authority
from unit.plugins.support.draining_api import (
    BUDGET,
    TWO_BUDGETS,
    DrainingApi,
    busy_node,
    pod_path,
    vm_path,
    writes_to,
)
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import FAILURE, SUCCESS, migrations_path, vmi_path
from unit.plugins.support.plan_schema import plan_in

NEAR = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "api"}}}
NEAR_PODS = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}
FORBIDDEN = 'pods "api" is forbidden: User "jane" cannot create resource "pods/eviction" in API group ""'


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def test_a_node_is_emptied_once(drain: Any, api: DrainingApi) -> None:
    first = drain(diff=True)
    assert (first["changed"], first["left"]) == (True, [])
    assert [(move["name"], move["outcome"], move["node"]) for move in first["moves"]] == [("db", "migrated", "n2")]
    assert [(entry["name"], entry["outcome"]) for entry in first["evicted"]] == [("api", "evicted")]
    assert first["diff"] == {"before": "vm shop/db\npod shop/api\n", "after": ""}
    assert (first["as_planned"], first["deviations"]) == (2, [])
    assert api.node("n1")["spec"]["unschedulable"]
    second = drain()
    assert (second["changed"], second["moves"], second["evicted"]) == (False, [], [])


def test_a_single_drain_is_the_document_that_everything_obeys(drain: Any) -> None:
    foretold = plan_in(drain(check=True, document=True)["document"])
    done = plan_in(drain(document=True)["document"])
    assert (foretold.actions, foretold.batches) == (done.actions, (("n1",),))
    kinds = [action.kind.value for action in done.actions]
    assert sorted(kinds) == ["cordon", "evict", "maintain", "migrate", "uncordon"]
    assert "document" not in drain()


def test_without_a_library_nothing_is_begun(drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert "library (numpy) on" in drain()["msg"]
    assert api.writes() == []


def test_check_mode_asks_for_everything_and_does_nothing(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    result = drain(check=True, policies=[{"policy": "stop"}])
    outcomes = [entry["outcome"] for name in ("moves", "evicted", "interrupted") for entry in result[name]]
    assert outcomes == ["would_migrate", "would_evict", "would_stop"]
    assert result["changed"]
    assert api.left() == ["api"]
    assert "unschedulable" not in api.node("n1")["spec"]
    assert vmi_path("pets") in api.objects
    assert all("dryRun" in json.dumps(request.body) + json.dumps(request.query) for request in api.writes())


def test_check_mode_tells_what_the_server_refuses(drain: Any, api: DrainingApi) -> None:
    api.evictions = [refusal(422, "Invalid", "no such grace period")]
    result = drain(check=True)
    assert (result["failed"], result["error"]["reason"]) == (True, "DrainFailed")
    assert "pod shop/api: failed, the API server answered 422, no such grace period" in result["msg"]
    assert "Nothing was changed" in result["msg"]
    assert [entry["name"] for entry in result["left"]] == ["api"]
    assert result["moves"][0]["outcome"] == "would_migrate"


def test_check_mode_leaves_to_time_what_time_mends(drain: Any, api: DrainingApi) -> None:
    api.add_migration("theirs", "db")
    api.evictions = [BUDGET]
    result = drain(check=True)
    assert (result["left"], result["evicted"][0]["outcome"]) == ([], "would_evict")


def test_what_a_drain_does_not_concern_stays(drain: Any, api: DrainingApi) -> None:
    api.add_pod("agent", owner="DaemonSet")
    api.add_pod("static", owner="", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    api.add_pod("job", owner="", status={"phase": "Succeeded"})
    assert drain()["left"] == []
    assert api.left() == ["agent", "static", "job"]


@pytest.mark.parametrize(
    ("fields", "allowed", "words"),
    [
        ({"owner": ""}, "force", "nothing would replace it"),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "delete_emptydir_data", "would be lost"),
    ],
)
def test_what_may_not_go_keeps_the_node_full(
    drain: Any, api: DrainingApi, fields: dict[str, Any], allowed: str, words: str
) -> None:
    api.add_pod("odd", **fields)
    result = drain()
    assert f"pod shop/odd: {words}" in result["msg"].replace("the data in its emptyDir volumes ", "")
    assert (result["changed"], result["error"]["reason"], api.writes()) == (False, "NotDrainable", [])
    assert drain(**{allowed: True})["left"] == []


@pytest.mark.parametrize("answer", [BUDGET, TWO_BUDGETS])
def test_a_refused_eviction_is_tried_again(drain: Any, api: DrainingApi, answer: Answer) -> None:
    api.evictions = [answer, answer, None]
    result = drain()
    assert result["evicted"][0]["outcome"] == "evicted"
    assert sum(request.path.endswith("/eviction") for request in api.requests) == 3


def test_a_budget_that_does_not_yield_is_quoted(drain: Any, api: DrainingApi) -> None:
    api.evictions = [BUDGET] * 1000
    result = drain(wait_timeout=1)
    assert result["error"]["reason"] == "DeadlineExceeded"
    assert "disruption budget: The disruption budget api needs 1" in result["left"][0]["why"]
    assert "after 1 s there is left" in result["msg"]
    assert "pod shop/api: held back, Cannot evict pod" in result["msg"]


def test_a_vm_that_follows_pods_waits_for_them(drain: Any, api: DrainingApi) -> None:
    api.objects[vmi_path("db")]["spec"]["affinity"] = NEAR_PODS
    api.objects[pod_path("api")]["metadata"]["labels"] = {"app": "api"}
    api.evictions = [BUDGET, BUDGET, None]
    assert drain()["left"] == []
    paths = [request.path for request in writes_to(api)]
    assert [path.endswith("/eviction") for path in paths] == [True, True, True, False]


@pytest.mark.parametrize("answer", [refusal(404, "NotFound", "gone"), refusal(409, "Conflict", "another uid")])
def test_a_pod_that_is_gone_has_left(drain: Any, api: DrainingApi, answer: Answer) -> None:
    """Another one may have its name by now, elsewhere or even here."""

    def be_gone(_request: Request) -> Answer:
        api.objects.pop(pod_path("api"), None)
        return answer

    api.faults[pod_path("api") + "/eviction"] = be_gone
    assert drain()["evicted"][0]["outcome"] == "gone"
    assert sum(request.path.endswith("/eviction") for request in api.requests) == 1


@pytest.mark.parametrize("words", ['admission webhook "v.x" denied the request: not now', "denied request: not now"])
def test_a_webhook_that_forbids_one_eviction_ends_no_other(drain: Any, api: DrainingApi, words: str) -> None:
    api.add_pod("web")
    api.evictions = [refusal(403, "Forbidden", words)]
    result = drain()
    assert result["error"]["reason"] == "DrainFailed"
    assert sorted(entry["outcome"] for entry in result["evicted"]) == ["evicted", "failed"]
    assert result["moves"][0]["outcome"] == "migrated"
    assert f"the API server answered 403, {words}" in result["msg"]


def test_a_clock_that_is_set_back_delays_no_eviction(
    drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = itertools.count(time.time(), -3600)
    monkeypatch.setattr(Clock, "since_epoch", lambda _self: next(hours))
    api.evictions = [BUDGET, BUDGET, None]
    assert drain(wait_timeout=5)["left"] == []


def test_an_eviction_refused_for_good_ends_the_drain(drain: Any, api: DrainingApi) -> None:
    api.evictions = [refusal(422, "Invalid", "no such grace period")]
    result = drain(terminate_grace_period=7)
    assert result["error"]["reason"] == "DrainFailed"
    assert "pod shop/api: failed, the API server answered 422, no such grace period" in result["msg"]
    assert result["moves"][0]["outcome"] == "migrated"
    (asked,) = [request for request in api.requests if request.path.endswith("/eviction")]
    assert asked.body["deleteOptions"] == {"preconditions": {"uid": "uid-api"}, "gracePeriodSeconds": 7}


def test_a_missing_right_is_told_with_what_was_done(drain: Any, api: DrainingApi) -> None:
    api.evictions = [refusal(403, "Forbidden", FORBIDDEN)]
    result = drain()
    assert "Cannot evict pod shop/api" in result["msg"]
    assert (result["changed"], [entry["name"] for entry in result["left"]]) == (True, ["db", "api"])


def test_a_lost_answer_is_survived(drain: Any, api: DrainingApi) -> None:
    api.evictions = [Answer(201, {"cut": "in the middle"}, cut=3), None]
    assert drain()["left"] == []


def test_a_pod_that_tolerates_the_cordon_is_evicted_once(drain: Any, api: DrainingApi) -> None:
    api.add_pod("system", spec={"tolerations": [{"operator": "Exists"}]})
    api.returns = True
    api.evictions = [None]
    api.objects.pop(pod_path("api"))
    result = drain()
    assert [entry["name"] for entry in result["evicted"]] == ["system"]
    assert api.left() == ["system-again"]


def test_a_pod_whose_turn_has_not_come_keeps_it_when_the_plan_changes(drain: Any, api: DrainingApi) -> None:
    """It tolerates the cordon, but was there before."""
    api.add_vm("db", migratable=True)
    api.add_pod("system", spec={"tolerations": [{"operator": "Exists"}]})
    api.courses = [FAILURE]
    waits = [BUDGET] * 3

    def not_before_it_has_failed(_request: Request) -> Answer | None:
        failed = any(item["status"].get("phase") == "Failed" for item in api.migrations())
        return BUDGET if not failed else waits.pop() if waits else None

    api.faults[pod_path("system") + "/eviction"] = not_before_it_has_failed
    result = drain(retries=0, policies=[{"policy": "stop"}])
    assert {entry["name"]: entry["outcome"] for entry in result["evicted"]} == {"api": "evicted", "system": "evicted"}
    assert (api.objects[vm_path("db")]["spec"]["runStrategy"], api.left()) == ("Halted", [])
    assert result["interrupted"][0]["why"] == f"its migration failed, {api.reason}"


def test_a_vm_is_marked_before_it_is_stopped_and_started_as_it_was(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    result = drain(policies=[{"selector": {"kind": "cattle"}, "policy": "fail"}, {"policy": "stop"}])
    (entry,) = result["interrupted"]
    assert (entry["outcome"], entry["why"]) == (
        "stopped",
        "the VMI cannot be live-migrated because a disk of it cannot be used on two nodes at once "
        "(DisksNotLiveMigratable); move the disk to a PersistentVolumeClaim with access mode ReadWriteMany, or restart "
        "or stop it instead",
    )
    assert api.acts == ["stop pets"]
    metadata = api.objects[vm_path("pets")]["metadata"]
    (mark,) = json.loads(metadata["annotations"]["virtops.kubevirt/stopped-for"]).items()
    assert (mark[0], mark[1]["owner"], mark[1]["run_strategy"]) == ("n1", "me", "Always")
    asked = [(request.method, request.path) for request in api.requests]
    (patched,) = (number for number, each in enumerate(asked) if each == ("PATCH", vm_path("pets")))
    (stopped,) = (number for number, each in enumerate(asked) if each[1].endswith("/stop"))
    assert patched < stopped


def test_a_mark_that_collides_with_another_write_is_written_again(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    collisions = [refusal(409, "Conflict", "the object has been modified")]

    def collide(request: Any) -> Answer | None:
        return collisions.pop() if request.method == "PATCH" and collisions else None

    api.faults[vm_path("pets")] = collide
    assert drain(policies=[{"policy": "stop"}])["interrupted"][0]["outcome"] == "stopped"
    assert not collisions


def test_a_vm_nobody_would_start_again_is_left_alone(drain: Any, api: DrainingApi) -> None:
    vm = api.add_vm("pets")
    del api.objects[vmi_path("pets")]["metadata"]["ownerReferences"]
    result = drain(policies=[{"policy": "stop"}])
    assert "shop/pets" in result["msg"]
    assert "nor can it stop: nothing that owns it starts it again" in result["msg"]
    assert vm["spec"]["runStrategy"] == "Always"


def test_a_migration_of_somebody_else_is_waited_for(drain: Any, api: DrainingApi) -> None:
    theirs = api.add_migration("theirs", "db", course=())
    words = "VirtualMachineInstanceMigration theirs of somebody else moves it (Running)"
    assert f"vm shop/db: waiting, {words}" in drain(wait_timeout=1)["msg"]
    api.finish(theirs)
    result = drain()
    assert (result["left"], api.objects[vmi_path("db")]["status"]["nodeName"]) == ([], "n2")
    assert len(api.migrations()) == 1


def test_an_earlier_tasks_migration_is_gone_on_with(drain: Any, api: DrainingApi) -> None:
    api.courses = [("Pending", "Scheduling")]
    (before,) = drain(wait_timeout=1)["moves"]
    assert before["outcome"] == "migrating"
    (migration,) = api.migrations()
    api.finish(migration)
    (move,) = drain()["moves"]
    assert (move["migration"], move["outcome"]) == (before["migration"], "migrated")
    assert len(api.migrations()) == 1


def test_who_runs_a_failed_task_again_may_have_removed_the_cause(drain: Any, api: DrainingApi) -> None:
    api.courses = [FAILURE]
    assert drain(cordon=True, retries=0)["left"]
    api.courses = [SUCCESS]
    assert drain(cordon=True, retries=0)["left"] == []


def test_two_processes_of_an_owner_name_a_migration_alike(drain: Any, api: DrainingApi) -> None:
    """Else both could create one: the server knows them by name alone."""
    api.courses = [("Pending",)]
    names = []
    for _process in range(2):
        drain(wait_timeout=1)
        (migration,) = api.migrations()
        names.append(migration["metadata"]["name"])
        api.objects.pop(f"{migrations_path()}/{names[-1]}")
    assert names[0] == names[1]


def test_a_failed_migration_is_the_policys_matter(drain: Any, api: DrainingApi) -> None:
    api.courses = [FAILURE]
    result = drain(retries=0)
    assert (result["error"]["reason"], result["moves"][0]["outcome"]) == ("DrainFailed", "failed")
    assert f"vm shop/db: failed, {api.reason}" in result["msg"]


def test_of_a_new_plan_only_what_is_new_is_told(drain: Any, api: DrainingApi) -> None:
    api.courses = [FAILURE]
    with listener() as heard:
        result = drain(retries=0, _progress=heard.path)
    assert [entry["outcome"] for entry in result["evicted"]] == ["evicted"]
    told = [line for line in heard.told if "the plan has changed" in line]
    assert len(told) == 1, told
    assert "VM shop/db cannot leave" in told[0]


def test_a_server_that_is_away_for_a_moment_is_waited_for_and_no_news(drain: Any, api: DrainingApi) -> None:
    away = [None, *[refusal(503, "ServiceUnavailable", "starting")] * 2]  # after the first look
    api.faults["/api/v1/pods"] = lambda _request: away.pop(0) if away else None
    with listener() as heard:
        result = drain(_progress=heard.path)
    assert (result["left"], away) == ([], [])
    assert all(line.startswith("node n1: ") for line in [*heard.told, *heard.details])
    assert heard.told[0] == "node n1: 1 migration, 1 eviction to do"
    assert not [line for line in heard.told if "Trying again" in line]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"owner": " "}, "owner is empty"),
        ({"name": "../pods"}, "name is '../pods', but no object can be named so"),
        ({"wait_timeout": 0}, "wait_timeout is 0; give a second at least"),
        ({"retries": -1}, "retries is -1; give 0 at least"),
        ({"terminate_grace_period": -1}, "terminate_grace_period is -1; give 0 at least"),
        ({"policies": [{"expression": "a..b", "policy": "stop"}]}, "the malformed expression 'a..b'"),
        ({"name": "n9"}, "n9"),
        ({"cordon": False}, "it is not cordoned, so what leaves could come back"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(
    drain: Any, api: DrainingApi, arguments: dict[str, Any], words: str
) -> None:
    result = drain(**arguments)
    assert words in result["msg"]
    assert "\n" not in result["msg"]
    assert api.writes() == []
