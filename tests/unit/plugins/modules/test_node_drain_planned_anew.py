# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What does not come about as planned, or is otherwise by its turn, is planned anew."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VMI
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    Plan,
    plan_of,
)
from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main as cluster_snapshot

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, pod, refused, vm
from unit.plugins.support.draining_api import BUDGET, VMIS, DrainingApi, act_path, busy_node, fill, pod_path, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import FAILURE, MIGRATIONS, SUCCESS, vmi_path
from unit.plugins.support.modules import ModuleRunner

STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]
DB = vmi_path("db")


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def batch_of(nodes: tuple[str, ...], *leaving: Action, **options: Any) -> Plan:
    """A plan of one batch, of which pod `api` leaves n1 as well."""
    cordons = [action(ActionKind.CORDON, ObjectReference("Node", "", name, ""), name) for name in nodes]
    evicted = action(ActionKind.EVICT, pod("api"), "n1")
    return replace(plan_of([*cordons, *leaving, evicted]), batches=(nodes,), options=options)


def test_a_vm_of_another_node_that_is_waited_for_is_tried_again(drain: Any, api: DrainingApi) -> None:
    """As by the drain of that node, which may not be there; here `web` has to leave before `db`."""
    fill(api, "n3")
    api.add_vmi("web", "n2")
    api.own_courses = {"web": [FAILURE, SUCCESS]}
    other = action(ActionKind.MIGRATE, vm("web"), "n2", "n3")
    given = batch_of(("n1", "n2"), other, action(ActionKind.MIGRATE, vm("db"), "n1", "n3", other))
    result = drain(plan=to_json(given))
    assert (result.get("msg"), result["left"]) == (None, [])
    assert {entry["name"]: (entry["outcome"], entry["attempts"]) for entry in result["moves"]} == {
        "web": ("migrated", 2),
        "db": ("migrated", 1),
    }


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("policy", ["fail", "stop"])
def test_a_vm_that_somebody_brings_back_is_migrated_again(
    drain: Any, api: DrainingApi, policy: str, retries: int
) -> None:
    """As it tolerates the cordon; whoever can be migrated is neither stopped nor restarted, however often."""
    api.add_vm("db", migratable=True)
    brought = list[str]()

    def answer(_request: Request) -> Answer | None:
        status = api.objects[DB]["status"]
        if status["nodeName"] != "n1" and len(brought) < 3:
            brought.append(status["nodeName"])
            status["nodeName"] = "n1"
        return BUDGET if len(brought) < 3 or status["nodeName"] == "n1" else None

    api.faults[f"{pod_path('api')}/eviction"] = answer
    with listener() as heard:
        result = drain(policies=[{"policy": policy}], retries=retries, _progress=heard.path)
    assert (result.get("msg"), result["left"], api.acts) == (None, [], [])
    assert sum("shop/db: somebody has brought it back to n1; it is to leave again" in line for line in heard.told) == 3
    assert result["interrupted"] == []
    (move,) = result["moves"]
    assert (move["outcome"], move["attempts"], move["failure_reason"]) == ("migrated", 4, "")
    assert len(api.migrations()) == 4


def test_that_a_vm_was_brought_back_is_told_once_however_often_others_are_planned_for(
    drain: Any, api: DrainingApi
) -> None:
    """It cannot be migrated any more, and waits for its turn to be restarted."""
    api.add_vm("db", "Manual", migratable=True)
    there, away, rounds = api.objects[DB]["status"], list[str](), list[int]()

    def answer(_request: Request) -> Answer | None:
        if there["nodeName"] == "n2":
            away.append("seen")
        if len(away) == 4:  # it has arrived, as everybody knows
            there["nodeName"], there["conditions"] = "n1", [{"type": "LiveMigratable", "status": "False"}]
            away.append("back")
        if len(away) > 4:
            rounds.append(len(rounds))
            if len(rounds) in (4, 9, 14):
                api.add_vmi(f"late-{len(rounds)}")
        return BUDGET if len(rounds) < 30 else None

    api.faults[f"{pod_path('api')}/eviction"] = answer
    with listener() as heard:
        result = drain(policies=RESTART, _progress=heard.path)
    assert (result.get("msg"), result["left"], api.acts) == (None, [], ["restart db"])
    assert sum("has brought it back" in line for line in heard.told) == 1, heard.told


@pytest.mark.parametrize("policy", ["restart", "stop"])
def test_a_vm_that_can_be_migrated_when_its_turn_comes_is_migrated(drain: Any, api: DrainingApi, policy: str) -> None:
    """A disk of it is unplugged while a budget holds back what it has to wait for."""
    api.add_vm("db")
    waits = [BUDGET] * 3

    def answer(_request: Request) -> Answer | None:
        if not waits:
            return None
        if len(waits) == 1:
            api.objects[DB]["status"]["conditions"] = []
        return waits.pop()

    api.faults[f"{pod_path('api')}/eviction"] = answer
    result = drain(policies=[{"policy": policy}])
    assert (result.get("msg"), result["left"], api.acts, result["interrupted"]) == (None, [], [], [])
    (move,) = result["moves"]
    assert (move["name"], move["outcome"]) == ("db", "migrated")


@pytest.mark.parametrize(
    ("path", "others"),
    [(DB, []), (act_path("stop", "db"), []), (act_path("stop", "db"), ["late"])],
    ids=["looked at", "asked", "planned anew"],
)
def test_a_vm_that_can_be_migrated_by_now_is_not_stopped_as_it_was_about_to_be(
    drain: Any, api: DrainingApi, path: str, others: list[str]
) -> None:
    """Its disk is unplugged while the server is busy, when it is looked at last, or when its VM has its mark already.

    Then another VM may come at the same time, for whose sake all is planned anew.
    """
    api.add_vm("db")

    def answer(_request: Request) -> Answer | None:
        conditions = api.objects[DB]["status"]["conditions"]
        if not conditions:
            return None
        conditions.clear()
        for name in others:
            api.add_vmi(name)
        return refusal(429, "TooManyRequests", "busy")

    api.faults[path] = answer
    result = drain(policies=STOP)
    assert (result.get("msg"), result["left"], api.acts, result["interrupted"]) == (None, [], [], [])
    assert {move["name"]: move["outcome"] for move in result["moves"]} == dict.fromkeys(["db", *others], "migrated")
    assert not find_marks(api.objects[vm_path("db")])
    assert api.objects[vm_path("db")]["spec"]["runStrategy"] == "Always"


def test_a_vm_that_is_brought_back_is_planned_as_the_cluster_is_by_then(drain: Any, api: DrainingApi) -> None:
    """It was to be stopped, as no node could take it; while somebody had it elsewhere, one came that can."""
    api.add_vm("db", migratable=True)
    status, labels = api.objects[DB]["status"], api.node("n2")["metadata"]["labels"]
    labels["kubevirt.io/schedulable"] = "false"
    waits = [BUDGET] * 3

    def answer(_request: Request) -> Answer | None:
        if len(waits) == 3:
            status["nodeName"] = "n2"
        if len(waits) == 1:
            status["nodeName"], labels["kubevirt.io/schedulable"] = "n1", "true"
        return waits.pop() if waits else None

    api.faults[f"{pod_path('api')}/eviction"] = answer
    result = drain(policies=STOP)
    assert (result.get("msg"), result["left"], api.acts) == (None, [], [])
    assert [(move["name"], move["outcome"]) for move in result["moves"]] == [("db", "migrated")]


def test_who_is_brought_back_while_a_plan_is_made_for_another_one_gets_a_plan_of_its_own(
    drain: Any, api: DrainingApi
) -> None:
    """The first one knows nothing of it: by that it would be stopped, as it was to be when no node could take it."""
    fill(api, "n3")
    api.add_vmi("web")
    for spec in (api.add_vm("db", migratable=True)["spec"]["template"]["spec"], api.objects[DB]["spec"]):
        spec["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
    there, labels = api.objects[DB]["status"], api.node("n2")["metadata"]["labels"]
    labels["kubevirt.io/schedulable"] = "false"
    web, rounds = api.objects[vmi_path("web")]["status"], itertools.count()
    left = ["db"]

    def evicts(_request: Request) -> Answer | None:
        number = next(rounds)
        if number == 0:
            there["nodeName"] = "n2"
        if number == 6:
            labels["kubevirt.io/schedulable"], web["nodeName"] = "true", "n1"
        return BUDGET if left or number < 9 else None

    def lists(request: Request) -> Answer | None:
        """VMIs have been read by then."""
        if "limit" in request.query and left and labels["kubevirt.io/schedulable"] == "true":
            there["nodeName"] = "n1"
            left.clear()
        return None

    api.faults |= {f"{pod_path('api')}/eviction": evicts, "/apis/policy/v1/poddisruptionbudgets": lists}
    result = drain(policies=STOP)
    assert (result.get("msg"), result["left"], api.acts) == (None, [], [])
    assert {move["name"]: move["outcome"] for move in result["moves"]} == {"web": "migrated", "db": "migrated"}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("drift", ["repair", "fail"])
def test_a_plan_to_stop_a_vm_that_can_be_migrated_by_now_is_not_obeyed(
    drain: Any, api: DrainingApi, drift: str, check: bool
) -> None:
    given = batch_of(("n1",), refused(action(ActionKind.STOP, vm("db"), "n1")), policies=STOP)
    result = drain(plan=to_json(given), drift=drift, check=check)
    assert api.acts == []
    if drift == "fail":
        assert "VM shop/db goes to n2, as it can be migrated; it was: stops until its node is back" in result["msg"]
    else:
        assert [(move["name"], move["outcome"]) for move in result["moves"]] == [
            ("db", "would_migrate" if check else "migrated")
        ]


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("ends", ["before the plan", "with the plan"])
def test_who_is_brought_back_for_nobody_any_more_keeps_nobody_waiting(
    drain: Any, api: DrainingApi, ends: str, times: int
) -> None:
    """On another node of the batch it was to go before `db`, which ends while that is under way, as somebody comes."""
    fill(api, "n3", "n4")
    api.add_vmi("web", "n2")
    api.own_courses = {"web": [("Pending", "Scheduling", "Running"), SUCCESS]}
    api.brought_back = {"web": times}
    first = action(ActionKind.MIGRATE, vm("web"), "n2", "n4")
    given = batch_of(("n1", "n2"), first, action(ActionKind.MIGRATE, vm("db"), "n1", "n3", first))
    late = vmi_path("late")

    def go_on(request: Request) -> Answer | None:
        flying = next((entry for entry in api.migrations() if entry["spec"]["vmiName"] == "web"), None)
        phase = (flying or {}).get("status", {}).get("phase")
        if flying and phase == "Running" and late not in api.objects:
            api.add_vmi("late")
            if ends == "before the plan":
                api.objects.pop(DB)
        elif "limit" in request.query and late in api.objects:
            api.objects.pop(DB, None)
        elif flying and phase == "Running" and api.objects[late]["status"]["nodeName"] != "n1":
            api.finish(flying)
        return None

    api.faults |= {VMIS: go_on, MIGRATIONS: go_on}
    result = drain(plan=to_json(given), wait_timeout=60)
    assert (result.get("msg"), result["left"], DB in api.objects) == (None, [], False)
    assert {move["name"]: move["outcome"] for move in result["moves"]}["web"] == "migrated"


@pytest.mark.parametrize("drift", ["repair", "fail"])
@pytest.mark.parametrize("can", [False, True], ids=["refused", "can-be-migrated"])
def test_who_is_to_be_stopped_for_nobody_any_more_is_left_to_its_own_node(
    drain: Any, api: DrainingApi, drift: str, can: bool
) -> None:
    """`web` was to follow it, and ends."""
    fill(api, "n3")
    api.add_vm("pets")
    api.objects[vmi_path("pets")]["status"]["nodeName"] = "n2"
    del api.objects[DB]
    api.add_vmi("web")
    stop = replace(refused(action(ActionKind.STOP, vm("pets"), "n2")), after=("1.evict.shop/api",))
    given = batch_of(("n1", "n2"), action(ActionKind.MIGRATE, vm("web"), "n1", "n3", stop), policies=STOP)
    given = replace(given, actions=(*given.actions[:2], given.actions[-1], stop, given.actions[2]))
    waits = [BUDGET] * 6

    def answer(_request: Request) -> Answer | None:
        if len(waits) == 4:
            del api.objects[vmi_path("web")]
        if len(waits) == 1 and can:
            api.objects[vmi_path("pets")]["status"]["conditions"] = []
        return waits.pop() if waits else None

    api.faults[f"{pod_path('api')}/eviction"] = answer
    result = drain(plan=to_json(given), drift=drift)
    assert (result.get("msg"), result["left"], api.acts) == (None, [], [])


def test_who_has_made_room_and_is_brought_back_is_moved_once_more(drain: Any, api: DrainingApi) -> None:
    """Its old pod is there for a while yet, and nobody else moves it."""
    fill(api, "n3", "n4")
    api.add_vmi("web", "n3")
    room = replace(action(ActionKind.MIGRATE, vm("web"), "n3", "n4"), node="n1")
    given = batch_of(("n1",), room, action(ActionKind.MIGRATE, vm("db"), "n1", "n3", room))
    web, old = vmi_path("web"), pod_path("virt-launcher-web")
    owner = {"apiVersion": "kubevirt.io/v1", "kind": VMI, "name": "web", "uid": "uid-web", "controller": True}
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": "uid-web"}
    api.add_pod("virt-launcher-web", "n3", metadata={"labels": labels, "ownerReferences": [owner]})
    looks = itertools.count()

    def go_on(_request: Request) -> Answer | None:
        if api.objects[web]["status"]["nodeName"] == "n4" and old in api.objects and next(looks) > 10:
            api.objects[web]["status"]["nodeName"] = "n3"
            del api.objects[old]
        return None

    api.faults |= {"/api/v1/pods": go_on}
    result = drain(plan=to_json(given), wait_timeout=60)
    assert (result.get("msg"), result["left"]) == (None, [])
    assert [entry["spec"]["vmiName"] for entry in api.migrations()] == ["web", "web", "db"]


def test_a_pod_that_tolerates_the_cordon_is_evicted_once_however_often_others_are_planned_for(
    drain: Any, api: DrainingApi
) -> None:
    """It is expected on another node each time."""
    there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]}
    api.add_pod("system", spec={"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": wish}})
    rounds = itertools.count(1)

    def answer(_request: Request) -> Answer | None:
        if (number := next(rounds)) in (4, 9, 14):
            api.add_vmi(f"late-{number}")
        api.returns = number < 20
        return BUDGET if api.returns else None

    api.returns = True
    api.faults[f"{pod_path('api')}/eviction"] = answer
    result = drain()
    assert (result.get("msg"), result["left"], len(result["moves"])) == (None, [], 4)
    assert {entry["name"] for entry in result["evicted"]} == {"api", "system"}
    assert api.left() == ["system-again"]


@pytest.mark.parametrize("read_before", [False, True])
def test_a_vm_that_is_restarted_and_comes_to_the_next_node_of_the_batch_is_not_restarted_again(
    drain: Any,
    api: DrainingApi,
    run_module: ModuleRunner,
    connection: dict[str, Any],
    tmp_path: Path,
    read_before: bool,
) -> None:
    """As it tolerates the cordon. Drains come one after the other where Ansible has fewer forks than the batch nodes.

    read_before: they have the batch's snapshot, and see by themselves what has happened since.
    """
    fill(api, "n3")
    api.node("n3")["status"]["allocatable"] |= {"cpu": "80", "memory": "160Gi"}  # where it is expected, again and again
    api.lands = "n3"
    made = api.add_vm("pets", "Manual")["spec"]["template"]["spec"]
    made["tolerations"] = [{"operator": "Exists"}]
    fixed = api.objects[vmi_path("pets")]["status"]["conditions"]
    leaving = (action(ActionKind.RESTART, vm("pets"), "n1", "n3"), action(ActionKind.MIGRATE, vm("db"), "n1", "n3"))
    given = batch_of(("n1", "n2"), *leaving, policies=RESTART)
    settings: dict[str, Any] = {"plan": to_json(given)}
    if read_before:
        settings["snapshot"] = run_module(cluster_snapshot, **connection, path=str(tmp_path / "cluster.json"))
    first = drain(**settings)
    assert (first["left"], first["interrupted"][0]["target_node"]) == ([], "n2")
    again = api.objects[vmi_path("pets")]
    again["spec"], again["status"]["conditions"] = made, fixed
    second = drain(name="n2", **settings)
    words = "it was restarted already and came to n2, as it tolerates the cordon"
    assert (api.acts, [words in entry["why"] for entry in second["left"]]) == (["restart pets"], [True]), second
    assert second["error"]["reason"] in ("NotDrainable", "DrainFailed")


def test_a_vm_whose_migration_failed_goes_nowhere_but_to_its_target(drain: Any, api: DrainingApi) -> None:
    fill(api, "n3")
    api.courses = [FAILURE, FAILURE]
    given = batch_of(("n1",), action(ActionKind.MIGRATE, vm("db"), "n1", "n2"), targets={"shop/db": "n2"})
    result = drain(plan=to_json(given), retries=1)
    assert (result["error"]["reason"], result["moves"][0]["attempts"]) == ("DrainFailed", 2)
    assert {migration["spec"]["addedNodeSelector"]["kubernetes.io/hostname"] for migration in api.migrations()} == {
        "n2"
    }
