# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM is stopped or restarted once, and comes back as it was, whatever happens to the answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from testbed.pki import Authority
from unit.plugins.support.draining_api import (
    BUDGET,
    VMIS,
    DrainingApi,
    act_path,
    empty_nodes,
    pod_path,
    vm_path,
)
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path

STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def vanishes(api: DrainingApi, path: str, looks: int, *paths: str) -> None:
    """After so many looks at it, or at these."""
    left = list(range(looks))

    def look(request: Request) -> Answer | None:
        if request.method == "GET" and left:
            left.pop()
        elif request.method == "GET":
            api.objects.pop(path, None)
        return None

    api.faults |= dict.fromkeys((path, *paths), look)


def halt(api: DrainingApi) -> Answer:
    """The VM is to stop, and runs for a moment yet."""
    api.objects[vm_path("pets")]["spec"]["runStrategy"] = "Halted"
    return Answer(202, b"")


@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure"])
def test_a_vm_comes_back_though_the_answer_to_its_stop_was_lost(drain: Any, api: DrainingApi, strategy: str) -> None:
    api.add_vm("pets", strategy)
    api.lose_answer(act_path("stop", "pets"))
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], api.acts) == ("stopped", ["stop pets"])
    (started,) = drain(state="restored")["started"]
    assert (started["outcome"], started["node"]) == ("started", "n1")
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == strategy
    assert not api.objects[vm_path("pets")]["metadata"]["annotations"]


def test_a_vm_comes_back_though_the_run_that_stopped_it_was_killed(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    api.faults[act_path("stop", "pets")] = lambda _request: halt(api)
    assert drain(policies=STOP, wait_timeout=1)["interrupted"][0]["outcome"] == "ending"
    vanishes(api, vmi_path("pets"), 5, VMIS)
    (entry,) = drain(policies=STOP)["interrupted"]
    assert entry["outcome"] == "stopped"
    api.faults.clear()
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == "Always"


def test_a_vm_is_started_for_the_node_it_was_stopped_for_last(drain: Any, api: DrainingApi) -> None:
    """Somebody has started it between its node's maintenance and that of the next."""
    api.add_vm("pets")
    drain(policies=STOP)
    vm = api.objects[vm_path("pets")]
    vm["spec"]["runStrategy"] = "Always"
    api.start("pets", "n2")
    api.objects[vmi_path("pets")]["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
    drain(name="n2", policies=STOP)
    assert drain(state="restored")["started"] == []
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == "Halted"
    assert drain(name="n2", state="restored")["started"][0]["outcome"] == "started"


def test_a_vm_that_somebody_else_stops_meanwhile_is_theirs(drain: Any, api: DrainingApi) -> None:
    assert drain()["changed"], "the node is cordoned"
    api.add_vm("pets", "Halted")
    foretold = drain(check=True, policies=STOP)
    vanishes(api, vmi_path("pets"), 5, VMIS)
    for result in (foretold, drain(policies=STOP)):
        (entry,) = result["interrupted"]
        assert (entry["outcome"], entry["failure_reason"]) == ("ended", "somebody else has stopped its VM")
        assert [told["done"] for told in result["deviations"]] == ["ended, somebody else has stopped its VM"]
        assert not result["changed"]
    assert (api.acts, drain(state="restored")["started"]) == ([], [])


def test_a_vm_that_somebody_else_stops_right_before_is_theirs(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")

    def forestall(request: Request) -> Answer | None:
        if request.method == "GET" or api.objects[vm_path("pets")]["spec"]["runStrategy"] == "Halted":
            return None
        halt(api)
        vanishes(api, vmi_path("pets"), 5, VMIS)
        return refusal(409, "Conflict", "the object has been modified")

    api.faults[vm_path("pets")] = forestall
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], entry["failure_reason"]) == ("ended", "somebody else has stopped its VM")
    assert (api.acts, drain(state="restored")["started"]) == ([], [])


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
def test_a_vm_that_somebody_else_has_asked_to_stop_is_theirs(drain: Any, api: DrainingApi, strategy: str) -> None:
    vm = api.add_vm("pets", strategy)
    vm["status"] = {
        "stateChangeRequests": [{"action": "Stop", "uid": api.objects[vmi_path("pets")]["metadata"]["uid"]}]
    }
    # Its guest goes on until it is looked at.
    api.faults[vm_path("pets")] = lambda _request: vanishes(api, vmi_path("pets"), 0, VMIS)
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], entry["failure_reason"]) == ("ended", "somebody else has stopped its VM")


def test_a_vm_that_ends_by_itself_is_not_stopped(drain: Any, api: DrainingApi) -> None:
    """It starts again elsewhere, or not, as its VM has it."""
    api.add_vm("pets")
    vanishes(api, vmi_path("pets"), 0)
    assert drain(policies=STOP)["interrupted"][0]["outcome"] == "ended"
    assert api.acts == []


def test_a_vm_that_somebody_moves_away_is_not_stopped(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")

    def move(request: Request) -> Answer | None:
        if request.method == "PATCH":
            api.objects[vmi_path("pets")]["status"]["nodeName"] = "n2"
        return None

    api.faults["/api/v1/nodes/n1"] = move
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], entry["target_node"], api.acts) == ("already_gone", "n2", [])


def test_a_vm_that_ends_by_itself_is_not_waited_for_if_nothing_starts_it(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    vanishes(api, vmi_path("pets"), 0)
    result = drain(policies=RESTART)
    assert (result["interrupted"][0]["outcome"], api.acts) == ("failed", [])
    assert "nothing starts it again, as its VM has run strategy Manual" in result["msg"]


def test_a_guest_that_shuts_down_at_that_moment_is_not_started_anew(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")

    def shut_down(request: Request) -> Answer | None:
        api.objects[vmi_path("pets")]["status"]["phase"] = "Succeeded"
        return None

    # Asked for when the VMI is about to be restarted only.
    api.faults[vm_path("pets")] = api.faults[vmi_path("pets")] = shut_down
    result = drain(policies=RESTART)
    assert (result["interrupted"][0]["outcome"], api.acts) == ("failed", [])
    assert "nothing starts it again, as its VM has run strategy Manual" in result["msg"]


def test_a_restart_that_was_asked_for_is_not_asked_for_again(drain: Any, api: DrainingApi) -> None:
    vm = api.add_vm("pets", "Manual")
    vm["status"] = {"stateChangeRequests": [{"action": "Stop", "uid": "uid-pets"}, {"action": "Start"}]}
    looks = itertools.count(1)

    def look(_request: Request) -> Answer | None:
        if next(looks) == 6:
            api.start("pets", "n2", number=2)
        return None

    api.faults |= dict.fromkeys((VMIS, vmi_path("pets")), look)
    assert drain(policies=RESTART)["interrupted"][0]["outcome"] == "restarted"
    assert api.acts == []


@pytest.mark.parametrize(("policies", "outcome"), [(RESTART, "restarted"), (STOP, "ended")])
def test_who_comes_between_two_looks_is_left_alone(drain: Any, api: DrainingApi, policies: Any, outcome: str) -> None:
    """The restart was asked for before, and is carried out right before its VM is looked at, which shows it no more."""
    api.add_vm("pets", "Manual")

    def restart(_request: Request) -> Answer | None:
        if api.objects[vmi_path("pets")]["metadata"]["uid"] == "uid-pets":
            api.start("pets", "n2", number=2)
        return None

    api.faults[vm_path("pets")] = restart
    result = drain(policies=policies)
    assert (result["interrupted"][0]["outcome"], result["left"], api.acts) == (outcome, [], [])
    assert api.objects[vmi_path("pets")]["metadata"]["uid"] == "uid-pets-2"
    assert "annotations" not in api.objects[vm_path("pets")]["metadata"]


def test_a_vm_is_restarted_once_though_the_answer_was_lost(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    api.lose_answer(act_path("restart", "pets"))
    (entry,) = drain(policies=RESTART)["interrupted"]
    assert (entry["outcome"], entry["target_node"], api.acts) == ("restarted", "n2", ["restart pets"])


def test_a_restart_that_comes_too_late_is_no_failure(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")

    def collide(_request: Request) -> Answer:
        api.start("pets", "n2", number=2)
        return refusal(409, "Conflict", "VM is not running: Halted")

    api.faults[act_path("restart", "pets")] = collide
    (entry,) = drain(policies=RESTART)["interrupted"]
    assert (entry["outcome"], entry["target_node"]) == ("restarted", "n2")


def ends(api: DrainingApi) -> Answer:
    """The guest shuts down by itself, so that there is nothing to restart."""
    api.shut_down("pets")
    return refusal(409, "Conflict", "VM is not running")


def is_stopped(api: DrainingApi) -> Answer:
    """By somebody else, who is quicker."""
    halt(api)
    api.shut_down("pets")
    return Answer(202, b"")


def is_deleted(api: DrainingApi) -> Answer:
    del api.objects[vm_path("pets")], api.objects[vmi_path("pets")]
    return Answer(202, b"")


@pytest.mark.parametrize(
    ("strategy", "happens", "words"),
    [
        ("Manual", ends, "nothing starts it again, as its VM has run strategy Manual"),
        ("Manual", is_stopped, "nothing starts it again, as its VM has run strategy Halted"),
        ("RerunOnFailure", is_deleted, "nothing starts it again, as its VM is gone"),
    ],
)
def test_a_vm_that_nobody_starts_again_is_named_when_the_node_is_empty(
    drain: Any, api: DrainingApi, strategy: str, happens: Callable[[DrainingApi], Answer], words: str
) -> None:
    api.add_vm("pets", strategy)
    api.add_pod("api")
    api.faults[act_path("restart", "pets")] = lambda _request: happens(api)
    result = drain(policies=RESTART)
    assert result["error"]["reason"] == "DrainFailed"
    ((name, why),) = [(entry["name"], entry["why"]) for entry in result["left"]]
    assert (name, words in why) == ("pets", True), why
    assert (api.left(), result["evicted"][0]["outcome"]) == ([], "evicted")
    assert drain(policies=RESTART)["left"] == [], "the node is empty"


def test_a_vm_that_ends_by_itself_before_its_turn_is_named(drain: Any, api: DrainingApi) -> None:
    """Pods go before it, and a budget holds one back; its VMI stays as it has ended."""
    api.add_vm("pets", "RerunOnFailure")
    api.add_pod("api")

    def end(request: Request) -> Answer | None:
        api.objects[vmi_path("pets")]["status"]["phase"] = "Succeeded"
        return None

    api.faults[f"{pod_path('api')}/eviction"] = end
    api.evictions = [BUDGET]
    result = drain(policies=RESTART)
    assert "vm shop/pets: failed, it has ended, and nothing starts it again" in result["msg"]
    assert (api.acts, api.left()) == ([], [])


def test_a_vm_that_somebody_starts_elsewhere_after_all_is_no_failure(drain: Any, api: DrainingApi) -> None:
    """Another VM takes longer to leave than that."""
    for name in ("pets", "toys"):
        api.add_vm(name, "Manual")
    looks = itertools.count(1)

    def look(_request: Request) -> Answer | None:
        number = next(looks)
        if number == 8:
            api.start("pets", "n2", number=2)
        if number == 16:
            api.start("toys", "n2", number=2)
        return None

    def restart_slowly(_request: Request) -> Answer:
        api.objects[vmi_path("toys")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        api.faults |= dict.fromkeys((VMIS, vmi_path("toys")), look)
        return Answer(202, b"")

    api.faults[act_path("restart", "pets")] = lambda _request: ends(api)
    api.faults[act_path("restart", "toys")] = restart_slowly
    result = drain(policies=RESTART)
    outcomes = {entry["name"]: entry["outcome"] for entry in result["interrupted"]}
    assert (outcomes, result["left"]) == ({"pets": "failed", "toys": "restarted"}, [])


def test_a_vm_that_comes_back_after_its_restart_is_named(drain: Any, api: DrainingApi) -> None:
    """Once is enough: it is not interrupted again, but the node is not empty."""
    api.add_vm("pets", "Manual")

    def come_back(_request: Request) -> Answer:
        kept = api.objects[vmi_path("pets")]["status"]["conditions"]
        api.start("pets", "n1", number=2)
        api.objects[vmi_path("pets")]["status"]["conditions"] = kept
        return Answer(202, b"")

    restart = act_path("restart", "pets")
    api.faults[restart] = come_back
    result = drain(policies=RESTART, wait_timeout=1)
    why = "it runs here again after it was restarted, and nothing is interrupted twice"
    assert [(entry["name"], entry["why"]) for entry in result["left"]] == [("pets", why)]
    assert (result["error"]["reason"], f"after 1 s there is left vm shop/pets: {why}" in result["msg"]) == (
        "DeadlineExceeded",
        True,
    )
    assert [request.path for request in api.writes()].count(restart) == 1


def test_a_restart_that_is_refused_fails(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    api.faults[act_path("restart", "pets")] = lambda _request: refusal(409, "Conflict", "recover its volumes first")
    result = drain(policies=RESTART)
    assert (result["interrupted"][0]["outcome"], result["error"]["reason"]) == ("failed", "DrainFailed")
    assert "recover its volumes first" in result["msg"]


def test_a_vmi_whose_vm_is_gone_is_not_ended(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    del api.objects[vm_path("pets")]
    result = drain(policies=STOP)
    assert "there is no VM pets any more that would start it again" in result["msg"]
    assert vmi_path("pets") in api.objects
    assert "Nothing was changed" in drain(policies=STOP, check=True)["msg"]


@pytest.mark.parametrize("policies", [STOP, RESTART])
def test_a_vmi_whose_vm_goes_without_it_is_not_ended(drain: Any, api: DrainingApi, policies: Any) -> None:
    """With --cascade=orphan it stays, and nothing would start it again; it is deleted after the look for the plan."""
    vm = api.add_vm("pets")
    api.faults[vmi_path("pets")] = lambda _: vm["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")
    result = drain(policies=policies, wait_timeout=1)
    assert "vm shop/pets: waiting, VM pets is being deleted" in result["msg"]
    assert vmi_path("pets") in api.objects


def test_another_vm_that_has_the_name_by_now_is_neither_marked_nor_stopped(drain: Any, api: DrainingApi) -> None:
    """It is made anew between the look at the one and the write of its mark, while its VMI still ends."""
    vm = api.add_vm("pets")

    def make_anew(request: Request) -> Answer | None:
        if request.method == "PATCH" and api.objects[vm_path("pets")] is vm:
            metadata = {**vm["metadata"], "uid": "another", "resourceVersion": "99"}
            api.objects[vm_path("pets")] = {**vm, "metadata": metadata}
        return None

    api.faults[vm_path("pets")] = make_anew
    result = drain(policies=STOP)
    assert "VirtualMachine shop/pets is another one by now" in result["msg"]
    assert (api.acts, "labels" in api.objects[vm_path("pets")]["metadata"]) == ([], False)


@pytest.mark.parametrize("path", [act_path("stop", "pets"), vm_path("pets")])
def test_a_webhook_that_forbids_one_stop_ends_no_other(drain: Any, api: DrainingApi, path: str) -> None:
    api.add_vm("pets")
    api.add_vm("toys")
    denied = refusal(403, "Forbidden", 'admission webhook "v.x" denied the request: not now')
    api.faults[path] = lambda request: denied if request.method != "GET" else None
    result = drain(policies=STOP)
    outcomes = {entry["name"]: entry["outcome"] for entry in result["interrupted"]}
    assert outcomes == {"pets": "failed", "toys": "stopped"}
    assert "the API server answered 403, admission webhook" in result["msg"]
