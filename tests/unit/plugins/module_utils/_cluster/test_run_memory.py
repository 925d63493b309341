# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run remembers while the server is away: it is tried on, told once if it lasts, and in the end how often."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import run_lease, run_memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_memory import RunMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import Invocation

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.own_time import Time, own_time
from unit.plugins.support.run_api import CONFIG_MAPS, LEASES, RunApi, running

PLACE = "medik8s-leases"
AWAY = refusal(503, "ServiceUnavailable", "shutting down")
OUTRUN = refusal(409, "AlreadyExists", "it already exists")


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """of_day: as it is told. now: in seconds."""
    time = SimpleNamespace(of_day="02:14:07", now=0.0, sleep=lambda _seconds: None)
    time.strftime = lambda _format: time.of_day
    time.monotonic = lambda: time.now
    monkeypatch.setattr(run_memory, "time", time)
    monkeypatch.setattr(persistence, "time", time)
    return time


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def memory(api: RunApi, connection: dict[str, str], time: SimpleNamespace, told: list[str]) -> RunMemory:
    client = connect_by(connection, 5)
    hold = RunHold(client, "kernel", Invocation("a1"), PLACE)
    hold.take(0.0)
    memory = RunMemory(hold, RunStore(client, "kernel", PLACE), told.append)
    memory.remember("record-n1", lambda _content: b"{}")
    return memory


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


@pytest.mark.parametrize(("last", "seconds"), [(False, 5.0), (True, 120.0)])
def test_who_writes_now_and_then_waits_for_no_look_at_the_run_either(
    api: RunApi, connection: dict[str, str], passing: Time, last: bool, seconds: float
) -> None:
    """A drain has other things to do meanwhile, except in the end."""
    client = connect_by(connection, 5)
    hold = RunHold(client, "kernel", Invocation("a1"), PLACE)
    hold.take(0.0)
    memory = RunMemory(hold, RunStore(client, "kernel", PLACE), lambda _line: None)
    memory.remember("record-n1", lambda _content: b"{}")
    api.faults[f"{LEASES}/virtops-run-kernel"] = lambda _request: AWAY
    began = passing.now
    memory.write(at_once=True, last=last)
    assert passing.now - began == pytest.approx(seconds)
    assert api.config_maps() == []


def test_what_cannot_be_read_any_more_is_written_anew(api: RunApi, memory: RunMemory, told: list[str]) -> None:
    memory.write(at_once=True)
    api.config_maps()[0]["binaryData"] = {"content": "broken"}
    memory.remember("record-n1", lambda content: b"[]" if content is None else b"what it was")
    memory.write(at_once=True)
    found = memory._store.get("record-n1")
    assert (found and found.content, told) == (b"[]", [])


def test_what_cannot_be_told_without_what_it_was_is_not_lost_in_silence(
    api: RunApi, memory: RunMemory, told: list[str]
) -> None:
    memory.write(at_once=True)
    api.config_maps()[0]["binaryData"] = {"content": "broken"}
    memory.remember("record-n1", lambda _content: None)
    memory.write(at_once=True)
    assert (len(told), "its content is not what" in told[0]) == (1, True)


@pytest.mark.parametrize("path", [CONFIG_MAPS, LEASES])
def test_what_is_never_kept_says_in_the_end_how_often_it_was_tried(
    api: RunApi, memory: RunMemory, time: SimpleNamespace, told: list[str], path: str
) -> None:
    held = [found for found in api.objects if found.startswith(f"{path}/")]
    for away in (path, *held):
        api.faults[away] = lambda _request: AWAY
    counts = []
    for second in (0.0, 9.9, 10.0, 20.0):
        time.now = second
        memory.write(at_once=True)
        memory._hold._seen = float("-inf")  # or a look of a moment ago would do
        counts.append(len(told))
    assert (counts, told[0].endswith(" Trying again since 02:14:07.")) == ([0, 0, 1, 1], True)
    time.of_day = "02:20:00"
    memory.write(last=True)
    assert len(told) == 2
    assert "shutting down, tried 5 times since 02:14:07. " in told[1]
    assert "Trying again" not in told[1]


def test_what_fails_for_a_moment_is_not_told(
    api: RunApi, memory: RunMemory, time: SimpleNamespace, told: list[str]
) -> None:
    api.faults[CONFIG_MAPS] = lambda _request: AWAY
    memory.write(at_once=True)
    api.faults.clear()
    time.now = 60.0
    memory.write(last=True)
    assert told == []


def test_what_time_does_not_mend_is_told_at_once(api: RunApi, memory: RunMemory, told: list[str]) -> None:
    api.faults[CONFIG_MAPS] = lambda _request: refusal(403, "Forbidden", "no")
    memory.write(at_once=True)
    assert [line.endswith(" Trying again.") for line in told] == [True]
    memory.write(last=True)
    assert len(told) == 1


@pytest.mark.parametrize("answer", [AWAY, refusal(429, "TooManyRequests", "too many requests"), OUTRUN])
@pytest.mark.parametrize("last", [False, True])
def test_what_somebody_else_has_taken_meanwhile_is_not_written_again(
    api: RunApi,
    memory: RunMemory,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    last: bool,
) -> None:
    """What it is to remember is for them to say."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    for patience in ("READING", "BRIEF"):
        monkeypatch.setattr(persistence, patience, 5.0)

    def take(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        api.hold_run("b2", seconds=10**9)
        return answer

    api.faults[CONFIG_MAPS] = take
    memory.write(at_once=True, last=last)
    api.hold_run("a1", seconds=10**9)
    memory.write(last=True)
    assert [write.path for write in api.writes()].count(CONFIG_MAPS) == 1
    assert told == []


def test_what_is_read_while_somebody_else_takes_the_run_is_not_replaced(
    api: RunApi, memory: RunMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    memory.write(at_once=True)
    (before,) = api.config_maps()
    memory.remember("record-n1", lambda _content: b"{}\n")
    api.faults[f"{CONFIG_MAPS}/{before['metadata']['name']}"] = lambda _request: api.hold_run("b2", seconds=10**9)
    memory.write(last=True)
    assert api.config_maps() == [before]


@pytest.mark.parametrize("is_seen", [True, False])
def test_what_time_does_not_mend_any_more_is_told_after_what_it_may_mend(
    api: RunApi, memory: RunMemory, time: SimpleNamespace, told: list[str], is_seen: bool
) -> None:
    """Also if nobody has written in between, in the end."""
    api.faults[CONFIG_MAPS] = lambda _request: AWAY
    for second in (0.0, 10.0):
        time.now = second
        memory.write(at_once=True)
    api.faults[CONFIG_MAPS] = lambda _request: refusal(403, "Forbidden", "no")
    time.now = 20.0
    if is_seen:
        memory.write(at_once=True)
    memory.write(last=True)
    assert ["answered 503" in line for line in told] == [True, False]
    assert ("answered 403" in told[1], "since" in told[1]) == (True, False)
