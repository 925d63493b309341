# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM is stopped or restarted once, and comes back as it was, whatever happens to the answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import drain_run, following, starts
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, act_path, empty_nodes, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner

STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrainingApi]:
    for module, name in ((drain_run, "_PAUSE"), (starts, "_PAUSE"), (following, "_PAUSE_AFTER_TROUBLE")):
        monkeypatch.setattr(module, name, 0.01)
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, main, **connection, name="n1", owner="me", cordon=True, wait_timeout=20)


def vanishes(api: DrainingApi, path: str, looks: int) -> None:
    """After so many looks at it."""
    left = list(range(looks))

    def look(request: Request) -> Answer | None:
        if request.method == "GET" and left:
            left.pop()
        elif request.method == "GET":
            api.objects.pop(path, None)
        return None

    api.faults[path] = look


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
    state = drain(policies=STOP, _round={"elapsed": 0, "seconds": 0.1, "state": None})["_round"]
    assert state["run"]["interruptions"][0]["outcome"] == "ending"
    vanishes(api, vmi_path("pets"), looks=5)
    (entry,) = drain(policies=STOP)["interrupted"]
    assert entry["outcome"] == "stopped"
    del api.faults[vmi_path("pets")]
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


def test_a_vm_that_somebody_else_stops_meanwhile_is_not_started_again(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Halted")
    vanishes(api, vmi_path("pets"), looks=5)
    assert drain(policies=STOP)["interrupted"][0]["outcome"] == "stopped"
    assert api.acts == []
    assert drain(state="restored")["started"] == []


def test_a_vm_that_ends_by_itself_is_stopped_before_it_starts_again(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets")
    vanishes(api, vmi_path("pets"), looks=0)
    assert drain(policies=STOP)["interrupted"][0]["outcome"] == "stopped"
    assert api.acts == ["stop pets"]


def test_a_vm_that_ends_by_itself_is_not_waited_for_if_nothing_starts_it(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    vanishes(api, vmi_path("pets"), looks=1)
    result = drain(policies=RESTART)
    assert (result["interrupted"][0]["outcome"], api.acts) == ("failed", [])
    assert "VM is not running" in result["msg"]


def test_a_restart_that_was_asked_for_is_not_asked_for_again(drain: Any, api: DrainingApi) -> None:
    vm = api.add_vm("pets", "Manual")
    vm["status"] = {"stateChangeRequests": [{"action": "Stop", "uid": "uid-pets"}, {"action": "Start"}]}
    looks = []

    def look(request: Request) -> Answer | None:
        looks.append(request)
        if len(looks) == 5:
            api.start("pets", "n2", number=2)
        return None

    api.faults[vmi_path("pets")] = look
    assert drain(policies=RESTART)["interrupted"][0]["outcome"] == "restarted"
    assert api.acts == []


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
