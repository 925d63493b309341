# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no answer tells, a look does: an eviction, stop, restart or start counts as a change if it was carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence

from testbed.pki import Authority
from unit.plugins.support.draining_api import BUDGET, DrainingApi, act_path, empty_nodes, pod_path
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import Result

EVICTION = f"{pod_path('api')}/eviction"
# What answers an act that may have been carried out.
ANSWERS = [
    SILENCE,
    refusal(500, "InternalError", "etcdserver: request timed out"),
    Answer(502, b"<h1>Bad Gateway</h1>"),
    Answer(200, b"<h1>Log in</h1>"),
]
DENIED = refusal(403, "Forbidden", 'admission webhook "v.x" denied the request: not now')

Task = Callable[..., Result]


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrainingApi]:
    monkeypatch.setattr(persistence, "BRIEF", 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def evicting(drain: Task, api: DrainingApi) -> tuple[str, Task]:
    drain()
    api.add_pod("api")
    return EVICTION, drain


def stopping(drain: Task, api: DrainingApi) -> tuple[str, Task]:
    drain()
    api.add_vm("pets")
    return act_path("stop", "pets"), partial(drain, policies=[{"policy": "stop"}])


def restarting(drain: Task, api: DrainingApi) -> tuple[str, Task]:
    drain()
    api.add_vm("pets", "Manual")
    return act_path("restart", "pets"), partial(drain, policies=[{"policy": "restart"}])


def starting(drain: Task, api: DrainingApi) -> tuple[str, Task]:
    api.add_vm("pets", "Manual")
    drain(policies=[{"policy": "stop"}])
    return act_path("start", "pets"), partial(drain, state="restored")


def deleting(drain: Task, api: DrainingApi) -> tuple[str, Task]:
    """What restarts a VM that gets a new VMI by itself."""
    drain(cordon=True)
    api.add_vm("pets")
    return vmi_path("pets"), partial(drain, policies=[{"policy": "restart"}])


ACTS = {evicting: "evicted", stopping: "stopped", restarting: "restarted", starting: "started"}


def outcome(result: Result) -> str:
    """Of the only act."""
    (entry,) = [entry for acts in ("evicted", "interrupted", "started") for entry in result.get(acts) or ()]
    return str(entry["outcome"])


def answering(api: DrainingApi, path: str, *answers: Answer) -> list[Request]:
    """Let the first acts have these answers, without being carried out; all of them."""
    rest, asked = list(answers), list[Request]()

    def answer(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        asked.append(request)
        return rest.pop(0) if rest else None

    api.faults[path] = answer
    return asked


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("act", [*ACTS, deleting])
def test_what_was_not_carried_out_and_is_forbidden_then_has_changed_nothing(
    drain: Task, api: DrainingApi, act: Any, answer: Answer
) -> None:
    path, task = act(drain, api)
    asked = answering(api, path, answer, answer, DENIED)
    result = task()
    assert (outcome(result), result["changed"], len(asked)) == ("failed", False, 3)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("act", "done"), ACTS.items())
def test_what_was_not_carried_out_is_asked_for_again(
    drain: Task, api: DrainingApi, act: Any, done: str, answer: Answer
) -> None:
    path, task = act(drain, api)
    asked = answering(api, path, answer)
    result = task()
    assert (outcome(result), result["changed"], len(asked)) == (done, True, 2)


@pytest.mark.parametrize(("act", "done"), ACTS.items())
def test_what_was_carried_out_is_a_change(drain: Task, api: DrainingApi, act: Any, done: str) -> None:
    path, task = act(drain, api)
    api.lose_answer(path)
    result = task()
    assert (outcome(result), result["changed"]) == (done, True)
    assert [request.path for request in api.writes()].count(path) == 1


def test_a_pod_that_others_end_when_its_eviction_came_to_nothing_was_not_evicted(drain: Task, api: DrainingApi) -> None:
    _path, task = evicting(drain, api)
    rest = [SILENCE, BUDGET]

    def end(_request: Request) -> Answer:
        if len(rest) == 1:
            del api.objects[pod_path("api")]
        return rest.pop(0)

    api.faults[EVICTION] = end
    result = task()
    assert (outcome(result), result["changed"], rest) == ("gone", False, [])


def test_a_restart_that_a_busy_server_refused_is_not_asked_of_a_successor(drain: Task, api: DrainingApi) -> None:
    """Which somebody else's restart has made before the next try."""
    path, task = restarting(drain, api)
    asked: list[Request] = []

    def refuse(request: Request) -> Answer | None:
        asked.append(request)
        if len(asked) > 1:
            return None
        api.start("pets", "n2", number=9)
        return Answer(503, b"starting", headers=(("Retry-After", "0"),))

    api.faults[path] = refuse
    result = task()
    assert (outcome(result), result["changed"], len(asked)) == ("restarted", False, 1)
    assert api.objects[vmi_path("pets")]["metadata"]["uid"] == "uid-pets-9"
