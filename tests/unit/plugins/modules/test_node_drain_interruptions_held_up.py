# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens while a drain sees, right before it ends a VM, that the node is its own: that may take minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import carrying_out
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import (
    StoppedMark,
    find_marks,
    find_notes,
    marked,
)

from testbed.pki import Authority
from unit.plugins.support.draining_api import SET, DrainingApi, act_path, empty_nodes, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.object_api import NODES

STOP, RESTART = [{"policy": "stop"}], [{"policy": "restart"}]
N1, LOOK = f"{NODES}/n1", ("GET", vmi_path("pets"))


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrainingApi]:
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)
    fake = empty_nodes()
    fake.add_vm("pets", "Manual")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def meanwhile(api: DrainingApi, policies: Any, happens: Callable[[DrainingApi], Any]) -> None:
    """When the node is looked at for the last time before the VM is ended."""
    last = [("PATCH", vm_path("pets")), ("PATCH", N1)] if policies is STOP else [("GET", vm_path("pets")), LOOK]
    right_after(api, last, happens)


def right_after(api: DrainingApi, last: list[tuple[str, str]], happens: Callable[[DrainingApi], Any]) -> None:
    """When the node is looked at, and these were the last writes and looks at VMs before."""

    def look(request: Request) -> None:
        before = [
            (entry.method, entry.path) for entry in api.requests if entry.method != "GET" or "/shop/" in entry.path
        ]
        if request.method == "GET" and before[-len(last) :] == last:
            happens(api)

    api.faults[N1] = look


def comes_up_elsewhere(api: DrainingApi) -> None:
    api.start("pets", "n2", number=2)


def moves(api: DrainingApi) -> None:
    api.objects[vmi_path("pets")]["status"]["nodeName"] = "n2"


def is_marked(api: DrainingApi) -> bool:
    return bool(find_marks(api.objects[vm_path("pets")]))


@pytest.mark.parametrize("happens", [comes_up_elsewhere, moves])
@pytest.mark.parametrize(
    ("policies", "strategy"), [(RESTART, "Manual"), (RESTART, "Always"), (STOP, "Manual"), (STOP, "Always")]
)
def test_a_vm_that_runs_elsewhere_by_then_is_left_alone(
    drain: Any, api: DrainingApi, policies: Any, strategy: str, happens: Callable[[DrainingApi], None]
) -> None:
    """A restart or stop bears no uid, and who has moved keeps his."""
    api.objects[vm_path("pets")]["spec"]["runStrategy"] = strategy
    meanwhile(api, policies, happens)
    result = drain(policies=policies)
    there = api.objects[vmi_path("pets")]
    assert (result["left"], api.acts, is_marked(api)) == ([], [], False)
    assert (there["status"]["nodeName"], "deletionTimestamp" in there["metadata"]) == ("n2", False)
    assert vmi_path("pets") not in [write.path for write in api.writes()]


@pytest.mark.parametrize("policies", [STOP, RESTART])
def test_what_is_deleted_without_an_answer_is_told_as_done(drain: Any, api: DrainingApi, policies: Any) -> None:
    """Though it has left when it is looked at before the next try."""
    api.add_set("n1", ready=1)
    api.successors = "n2"
    api.lose_answer(vmi_path("set-0"))
    result = drain(policies=policies)
    outcomes = {entry["name"]: entry["outcome"] for entry in result["interrupted"]}
    assert (outcomes["set-0"], result["left"]) == ("restarted", [])
    assert [write.path for write in api.writes()].count(vmi_path("set-0")) == 1


def is_uncordoned(api: DrainingApi) -> None:
    api.node("n1")["spec"].pop("unschedulable")


def test_a_vm_that_runs_on_as_its_node_was_uncordoned_keeps_no_mark(drain: Any, api: DrainingApi) -> None:
    """Else it would be started again when its owner stops it later."""
    meanwhile(api, STOP, is_uncordoned)
    result = drain(policies=STOP)
    assert (result["error"]["reason"], api.acts, is_marked(api)) == ("NotCordoned", [], False)
    assert not find_notes(api.node("n1"))


def test_the_mark_of_who_has_the_node_by_then_stays(drain: Any, api: DrainingApi) -> None:
    """By it their VM is started again."""
    theirs = {"n1": StoppedMark("theirs", "Manual", "2026-01-01T00:00:00Z")}

    def is_taken(api: DrainingApi) -> None:
        is_uncordoned(api)
        api.objects[vm_path("pets")]["metadata"] |= marked(theirs)

    meanwhile(api, STOP, is_taken)
    drain(policies=STOP)
    assert find_marks(api.objects[vm_path("pets")]) == theirs
    assert find_notes(api.node("n1"))


@pytest.mark.parametrize("strategy", ["Manual", "Always"])
def test_who_moves_while_the_server_is_busy_keeps_no_mark(drain: Any, api: DrainingApi, strategy: str) -> None:
    """Its stop was not asked for, and will not be."""
    api.objects[vm_path("pets")]["spec"]["runStrategy"] = strategy

    def is_busy(_request: Request) -> Answer:
        moves(api)
        return refusal(429, "TooManyRequests", "busy")

    api.faults[act_path("stop", "pets")] = is_busy
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], api.acts, is_marked(api)) == ("already_gone", [], False)
    assert not find_notes(api.node("n1"))


def test_a_vm_that_ends_by_itself_and_is_to_run_on_was_not_stopped(drain: Any, api: DrainingApi) -> None:
    """Its guest has shut down, say, and KubeVirt gives it another one."""
    api.objects[vm_path("pets")]["spec"]["runStrategy"] = "Always"
    meanwhile(api, STOP, lambda api: api.objects.pop(vmi_path("pets")))
    (entry,) = drain(policies=STOP)["interrupted"]
    assert (entry["outcome"], api.acts, is_marked(api)) == ("ended", [], False)


def replica_moves(api: DrainingApi) -> None:
    api.objects[vmi_path("set-1")]["status"]["nodeName"] = "n2"


@pytest.mark.parametrize("happens", [replica_moves, is_uncordoned])
def test_a_replica_that_runs_on_is_not_in_the_mark_of_its_set(
    drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch, happens: Callable[[DrainingApi], Any]
) -> None:
    """Else its set would be waited for as if it lacked one; the one that was stopped before stays in it."""
    monkeypatch.setattr(carrying_out, "_THREADS", 1)
    for path in (vm_path("pets"), vmi_path("pets")):
        del api.objects[path]
    api.node("n2")["status"]["allocatable"]["pods"] = "0"  # else what is stopped is started there
    api.add_set("n1", "n1", ready=2)
    right_after(api, [("GET", vmi_path("set-1")), ("GET", SET), ("PATCH", SET)], happens)
    drain(policies=STOP)
    (mark,) = find_marks(api.objects[SET]).values()
    assert mark.vmis == ("set-0",)
    assert vmi_path("set-1") not in [write.path for write in api.writes()]
