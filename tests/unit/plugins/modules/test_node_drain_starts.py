# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that was stopped for a node runs again once the node is back, however long its guest takes to shut down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import PlannedCluster

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, act_path, empty_nodes, vm_path
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.object_api import NODES
from unit.plugins.support.plan_schema import plan_in

STOP = [{"policy": "stop"}]
MARK = "virtops.kubevirt/stopped-for"
DENIED = refusal(401, "Unauthorized", "the token has expired")
NOT_NOW = refusal(403, "Forbidden", 'admission webhook "v.x" denied the request: not now')


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def stop_and_be_killed(drain: Any, api: DrainingApi, strategy: str) -> None:
    """The guest shuts down slowly, and the drain does not live to see it."""
    api.slow = True
    api.add_vm("pets", strategy)
    drain(policies=STOP, wait_timeout=1)
    assert (api.acts, is_marked(api)) == (["stop pets"], True)


def shuts_down_after(api: DrainingApi, looks: int) -> None:
    left = list(range(looks))

    def look(_request: Request) -> Answer | None:
        if left:
            left.pop()
            if not left:
                api.shut_down("pets")
        return None

    api.faults[vmi_path("pets")] = look


def is_marked(api: DrainingApi) -> bool:
    return MARK in api.objects[vm_path("pets")]["metadata"].get("annotations", {})


def runs(api: DrainingApi) -> bool:
    vmi = api.objects.get(vmi_path("pets"))
    return vmi is not None and "deletionTimestamp" not in vmi["metadata"]


@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure"])
def test_a_guest_that_shuts_down_slowly_is_waited_for(drain: Any, api: DrainingApi, strategy: str) -> None:
    """Until then its VMI is there, and even says that it runs."""
    stop_and_be_killed(drain, api, strategy)
    shuts_down_after(api, looks=4)
    (entry,) = drain(state="restored")["started"]
    assert (entry["outcome"], entry["node"]) == ("started", "n1")
    assert api.objects[vmi_path("pets")]["metadata"]["uid"] != "uid-pets"
    assert (runs(api), is_marked(api)) == (True, False)
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == strategy


@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure"])
def test_a_guest_that_takes_too_long_is_told_and_not_forgotten(drain: Any, api: DrainingApi, strategy: str) -> None:
    stop_and_be_killed(drain, api, strategy)
    result = drain(state="restored", wait_timeout=1)
    assert "its guest has yet to shut down" in result["msg"]
    assert is_marked(api)
    api.shut_down("pets")
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (runs(api), is_marked(api)) == (True, False)
    assert drain(state="restored")["started"] == []


def test_a_stop_that_virt_controller_has_yet_to_see_is_waited_for(drain: Any, api: DrainingApi) -> None:
    stop_and_be_killed(drain, api, "Manual")
    del api.objects[vmi_path("pets")]["metadata"]["deletionTimestamp"]
    shuts_down_after(api, looks=4)
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert api.acts == ["stop pets", "start pets"]


@pytest.mark.campaign
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure"])
def test_a_restore_that_is_killed_anywhere_is_repeated(
    drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch, strategy: str, is_done: bool
) -> None:
    """Each run gets one request further. `is_done`: the last one is carried out, but its answer is lost."""
    stop_and_be_killed(drain, api, strategy)
    answer, left = api.answer, 0

    def answer_some(request: Request) -> Answer:
        nonlocal left
        left -= 1
        if left > 0:
            return answer(request)
        if left == 0 and is_done:
            answer(request)
        return DENIED

    monkeypatch.setattr(api, "answer", answer_some)
    for granted in range(12):
        left = granted
        assert drain(state="restored")["failed"]
    api.shut_down("pets")
    for granted in range(40):
        left = granted
        if not drain(state="restored").get("failed"):
            break
    assert left > 0, "the last run had all that it needs"
    assert (runs(api), is_marked(api)) == (True, False)
    assert api.acts.count("start pets") == (strategy != "Always")


def test_the_mark_of_another_vm_of_the_name_stays(drain: Any, api: DrainingApi) -> None:
    """It has come just before the mark would have been taken off."""
    stop_and_be_killed(drain, api, "Always")
    api.shut_down("pets")
    seen_running = []

    def look(request: Request) -> Answer | None:
        if request.method == "GET" and runs(api):
            seen_running.append(request)
            if len(seen_running) == 2:
                api.objects[vm_path("pets")]["metadata"]["uid"] = "uid-of-another"
        return None

    api.faults[vm_path("pets")] = look
    drain(state="restored")
    assert len(seen_running) >= 2
    assert is_marked(api)


def test_a_vm_that_was_never_stopped_runs(drain: Any, api: DrainingApi) -> None:
    """The drain was killed between its mark and its request."""
    api.add_vm("pets", "Manual")
    asked: list[Request] = []

    def die(request: Request) -> Answer:
        asked.append(request)
        return DENIED

    api.faults[act_path("stop", "pets")] = die
    api.faults[vm_path("pets")] = lambda _request: DENIED if asked else None
    drain(policies=STOP)
    assert is_marked(api)
    api.faults.clear()
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (api.acts, is_marked(api)) == ([], False)


@pytest.mark.parametrize(
    "answer",
    [
        NOT_NOW,
        refusal(403, "Forbidden", 'User "me" cannot update resource "virtualmachines/stop"'),
        refusal(409, "Conflict", "the object has been modified"),
    ],
    ids=["webhook", "rights", "conflict"],
)
@pytest.mark.parametrize("strategy", ["Always", "Manual"])
def test_a_vm_whose_stop_is_refused_stays_off_when_its_owner_halts_it(
    drain: Any, api: DrainingApi, strategy: str, answer: Answer
) -> None:
    """It carries no mark then, nor does its node note it: it was never stopped for it."""
    api.add_vm("pets", strategy)
    api.faults[act_path("stop", "pets")] = lambda _request: answer
    assert drain(policies=STOP)["failed"]
    assert (is_marked(api), "stopped" in str(api.objects[f"{NODES}/n1"]["metadata"])) == (False, False)
    spec = api.objects[vm_path("pets")]["spec"]
    spec["runStrategy"] = "Halted"
    del api.objects[vmi_path("pets")]
    assert drain(state="restored")["started"] == []
    assert (api.acts, spec["runStrategy"], runs(api)) == ([], "Halted", False)


def test_a_mark_that_cannot_be_taken_off_for_a_moment_goes_later(drain: Any, api: DrainingApi) -> None:
    """The stop is asked for anew, and refused again."""
    api.add_vm("pets")
    refused: list[Request] = []

    def refuse(request: Request) -> Answer:
        refused.append(request)
        return NOT_NOW

    def take_off(request: Request) -> Answer | None:
        changed = request.body.get("metadata", {}).get("annotations", {MARK: ""})
        is_first = len(refused) == 1 and changed[MARK] is None
        return refusal(503, "ServiceUnavailable", "etcd is away") if is_first else None

    api.faults |= {act_path("stop", "pets"): refuse, vm_path("pets"): take_off}
    assert "not now" in drain(policies=STOP)["msg"]
    assert (len(refused), is_marked(api)) == (2, False)


def start_and_be_killed(drain: Any, api: DrainingApi, strategy: str) -> None:
    """Before it is seen running."""
    api.add_vm("pets", strategy)
    drain(policies=STOP)
    api.faults[vmi_path("pets")] = lambda _request: DENIED if runs(api) else None
    drain(state="restored")
    assert (runs(api), is_marked(api)) == (True, True)
    del api.faults[vmi_path("pets")]


@pytest.mark.parametrize("strategy", ["Manual", "Once"])
def test_a_vm_that_fails_before_it_runs_is_started_again(drain: Any, api: DrainingApi, strategy: str) -> None:
    """As after a reboot, when the kubelet does not know the device yet that the launcher asks for."""
    api.add_vm("pets", strategy)
    drain(policies=STOP)
    failing = ["uid-of-first", "uid-of-second"]

    def look(_request: Request) -> Answer | None:
        vmi = api.objects.get(vmi_path("pets"))
        if vmi is not None and vmi["status"]["phase"] == "Running" and failing:
            vmi["metadata"]["uid"] = failing.pop(0)
            vmi["status"] |= {"phase": "Failed", "nodeName": "n1"}
        return None

    api.faults[vmi_path("pets")] = look
    (entry,) = drain(state="restored")["started"]
    assert (entry["outcome"], failing) == ("started", [])
    assert (api.objects[vmi_path("pets")]["status"]["phase"], is_marked(api)) == ("Running", False)
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == strategy
    assert api.acts == ["stop pets"] + (["start pets"] * 3 if strategy == "Manual" else [])


# For so many seconds a write is looked for, or else the next look of the task tells.
@pytest.mark.parametrize("patience", [20.0, 0.0])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_vm_that_fails_before_it_runs_is_stopped_once_though_the_answer_is_lost(
    drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch, patience: float, *, is_done: bool
) -> None:
    """So that KubeVirt removes the failed VMI of one that runs `Once`."""
    monkeypatch.setattr(persistence, "BRIEF", patience)
    api.add_vm("pets", "Once")
    drain(policies=STOP)
    rest, stops = ["uid-of-first"], list[Request]()

    def look(_request: Request) -> Answer | None:
        vmi = api.objects.get(vmi_path("pets"))
        if vmi is not None and rest:
            vmi["metadata"]["uid"] = rest.pop()
            vmi["status"] |= {"phase": "Failed", "nodeName": "n1"}
        return None

    def lose(request: Request) -> Answer | None:
        if request.body.get("spec") != {"runStrategy": "Halted"}:
            return None
        stops.append(request)
        if is_done and len(stops) == 1:
            api._list(request)
        return SILENCE if len(stops) == 1 else None

    api.faults |= {vmi_path("pets"): look, vm_path("pets"): lose}
    result = drain(state="restored")
    assert [entry["outcome"] for entry in result["started"]] == ["started"]
    assert (result["changed"], len(stops)) == (True, 1 if is_done else 2)
    assert (api.objects[vm_path("pets")]["spec"]["runStrategy"], runs(api), is_marked(api)) == ("Once", True, False)
    assert not drain(state="restored")["changed"]


@pytest.mark.parametrize("strategy", ["Manual", "Once"])
def test_a_vm_that_fails_until_the_time_is_over_is_found_again(drain: Any, api: DrainingApi, strategy: str) -> None:
    start_and_be_killed(drain, api, strategy)

    def look(_request: Request) -> Answer | None:
        if vmi := api.objects.get(vmi_path("pets")):
            vmi["status"]["phase"] = "Failed"
        return None

    api.faults[vmi_path("pets")] = look
    assert drain(state="restored", wait_timeout=1)["failed"]
    assert is_marked(api)
    del api.faults[vmi_path("pets")]
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (runs(api), is_marked(api)) == (True, False)


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
def test_a_vm_that_ends_before_it_was_seen_running_is_named_until_it_runs(
    drain: Any, api: DrainingApi, strategy: str
) -> None:
    start_and_be_killed(drain, api, strategy)
    del api.objects[vmi_path("pets")]
    for _attempt in range(2):
        result = drain(state="restored")
        assert "shop/pets: failed, it ended before it was seen running; start it, or " in result["msg"]
        assert is_marked(api)
    assert api.acts == ["stop pets", "start pets"], "nobody knows whether somebody has stopped it"
    api.start("pets")
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert not is_marked(api)


@pytest.mark.parametrize("strategy", ["Always", "Manual"])
def test_a_vm_that_somebody_stops_before_it_runs_again_stays_off(drain: Any, api: DrainingApi, strategy: str) -> None:
    start_and_be_killed(drain, api, strategy)
    vm = api.objects[vm_path("pets")]
    if strategy == "Manual":
        vm["status"] = {
            "stateChangeRequests": [{"action": "Stop", "uid": api.objects[vmi_path("pets")]["metadata"]["uid"]}]
        }
    else:
        vm["spec"]["runStrategy"] = "Halted"
    del api.objects[vmi_path("pets")]
    acts = list(api.acts)
    result = drain(state="restored")
    assert "somebody else has stopped it since; start it if it is to run" in result["msg"]
    assert (runs(api), is_marked(api), api.acts) == (False, False, acts)
    assert drain(state="restored")["started"] == []


def test_a_mark_of_an_older_version_is_read(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    del api.objects[vmi_path("pets")]
    mark = {"owner": "me", "run_strategy": "Manual", "since": "2026-01-01T00:00:00Z"}
    metadata = api.objects[vm_path("pets")]["metadata"]
    metadata |= {"labels": {"virtops.kubevirt/stopped": "true"}, "annotations": {MARK: json.dumps({"n1": mark})}}
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (api.acts, is_marked(api)) == (["start pets"], False)


def test_what_is_started_is_the_document_that_everything_obeys(drain: Any, api: DrainingApi) -> None:
    stop_and_be_killed(drain, api, "Always")
    api.shut_down("pets")
    api.objects["/api/v1/namespaces/kube-system"] = {"metadata": {"uid": "uid-of-cluster"}}
    foretold = plan_in(drain(state="restored", check=True, document=True)["document"])
    plan = plan_in(drain(state="restored", document=True)["document"])
    (action,) = plan.actions
    assert (action.kind.value, action.object.title, action.node) == ("start", "shop/pets", "n1")
    assert plan.cluster == PlannedCluster("uid-of-cluster", "v1.36.3", "v1.8.4")
    assert (plan.snapshot.sha256, len(plan.snapshot.taken)) == (foretold.snapshot.sha256, len("2026-01-01T00:00:00Z"))
    nothing = plan_in(drain(state="restored", document=True)["document"])
    assert nothing.snapshot.sha256 != plan.snapshot.sha256


def test_what_the_account_may_not_read_is_missing_in_the_document_alone(drain: Any, api: DrainingApi) -> None:
    stop_and_be_killed(drain, api, "Always")
    api.shut_down("pets")
    for path in (BY_NAME["kubevirts"].path, "/api/v1/namespaces/kube-system"):
        api.faults[path] = lambda _request: refusal(403, "Forbidden", "you may not read that")
    result = drain(state="restored", document=True)
    assert [entry["outcome"] for entry in result["started"]] == ["started"]
    assert plan_in(result["document"]).cluster == PlannedCluster("", "v1.36.3", "")


def test_check_mode_starts_nothing(drain: Any, api: DrainingApi) -> None:
    stop_and_be_killed(drain, api, "Manual")
    for _attempt in range(2):
        (entry,) = drain(state="restored", check=True)["started"]
        assert (entry["outcome"], "start before it" in entry["message"]) == ("would_start", False)
        if vmi_path("pets") in api.objects:
            api.shut_down("pets")
    assert (runs(api), is_marked(api)) == (False, True)


def test_a_webhook_that_forbids_one_start_ends_no_other(drain: Any, api: DrainingApi) -> None:
    for name in ("pets", "toys"):
        api.add_vm(name, "Manual")
    drain(policies=STOP)
    denied = refusal(403, "Forbidden", 'admission webhook "v.x" denied the request: not now')
    api.faults[act_path("start", "pets")] = lambda _request: denied
    result = drain(state="restored")
    outcomes = {entry["name"]: entry["outcome"] for entry in result["started"]}
    assert outcomes == {"pets": "failed", "toys": "started"}
    assert is_marked(api), "it may be tried again"
