# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watched list is up to date after each look, and no event costs a request of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence, watch
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.watch import WatchedList

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, FakeApi, Request, serving

Object = dict[str, Any]


@dataclass
class Server:
    """What a Client offers to a watched list. `streams`: the events of each watch to come; the last one stays open.

    A gate among the events is waited for. left: set when a watch was left before its end.
    """

    streams: list[list[Any]] = field(default_factory=list)
    items: list[Object] = field(default_factory=list)
    lists: int = 0
    watched: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def get(self, path: str, attempted: str, **query: str) -> Any:
        self.lists += 1
        return {"metadata": {"resourceVersion": "1"}, "items": self.items}

    def watch(self, path: str, attempted: str, seconds: int, **query: str) -> Iterator[Any]:
        self.watched.append(query["resourceVersion"])
        for event in self.streams.pop(0) if self.streams else ():
            if isinstance(event, Exception):
                raise event
            if isinstance(event, threading.Event):
                event.wait(10)
                continue
            try:
                yield event
            except GeneratorExit:
                self.left.set()
                raise
        if not self.streams:
            self.closing.wait(10)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.closing.set()


def event(kind: str, name: str, version: int) -> Object:
    metadata = {"namespace": "shop", "name": name, "resourceVersion": str(version)}
    return {"type": kind, "object": json.loads(json.dumps({"metadata": metadata}))}


def watched(server: Server, bell: threading.Event | None = None) -> WatchedList:
    client: Any = server
    known = WatchedList(client, "/path", "things", {}, bell)
    known.update(0)
    return known


def names(known: WatchedList) -> list[str]:
    return sorted(name for _namespace, name in known.objects)


def test_one_look_takes_all_that_has_happened(server: Server) -> None:
    server.streams = [[event("ADDED", f"vm-{number}", number + 2) for number in range(9)]]
    known = watched(server)
    known.update(5)
    assert names(known) == [f"vm-{number}" for number in range(9)]
    assert server.watched == ["1"]


def test_a_look_without_news_ends_in_time_and_leaves_the_watch_open(server: Server) -> None:
    known = watched(server)
    begun = time.monotonic()
    known.update(0.1)
    known.update(0.1)
    assert 0.2 <= time.monotonic() - begun < 60
    assert server.watched == ["1"]


def test_a_watch_that_has_ended_is_gone_on_with_where_it_was(server: Server) -> None:
    server.streams = [[event("ADDED", "a", 2), event("BOOKMARK", "", 5)], [event("DELETED", "a", 6)]]
    known = watched(server)
    known.update(5)
    assert names(known) == ["a"]
    known.update(5)
    assert names(known) == []
    assert server.watched == ["1", "5"]


def test_who_waits_for_the_bell_hears_what_happens_after_a_watch_has_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers end each watch after half a minute; the next look may be seconds away, if nothing rings."""
    monkeypatch.setattr(watch, "_LULL", 5)
    bell, gate = threading.Event(), threading.Event()
    server.streams = [[event("ADDED", "a", 2)], [gate, event("ADDED", "b", 3)]]
    known = watched(server, bell)
    known.update(5)
    bell.clear()
    gate.set()
    assert bell.wait(5)
    monkeypatch.setattr(watch, "_LULL", 0.02)
    known.update(5)
    assert (names(known), server.lists) == (["a", "b"], 1)


def test_a_watch_of_what_was_forgotten_rings_for_nobody(server: Server) -> None:
    bell, gate = threading.Event(), threading.Event()
    server.streams = [[gate, event("ADDED", "a", 2)], []]
    known = watched(server, bell)
    known.forget()
    gate.set()
    assert server.left.wait(5)
    assert not bell.is_set()


def test_a_server_that_has_forgotten_is_asked_for_the_whole_list(server: Server) -> None:
    server.streams = [[{"type": "ERROR", "object": {"code": 410}}], []]
    known = watched(server)
    known.update(5)
    known.update(5)
    assert server.lists == 2


GONE = {"type": "ERROR", "object": {"code": 410}}


@pytest.mark.parametrize(("stream", "looks"), [([], 4), ([GONE], 8)])
def test_a_server_that_ends_each_watch_at_once_has_a_rest(
    server: Server, monkeypatch: pytest.MonkeyPatch, stream: list[Any], looks: int
) -> None:
    """Whoever waits for many seconds would ask it again and again, as fast as it can."""
    monkeypatch.setattr(watch, "_REST", 0.05)
    server.streams = [stream] * 4 + [[event("ADDED", "a", 2)]]
    known = watched(server)
    begun = time.monotonic()
    for _look in range(looks):
        known.update(60)
    assert 0.2 <= time.monotonic() - begun < 60
    known.update(5)
    assert names(known) == ["a"]


@pytest.mark.parametrize("end", [[], [Failure("watch", "server", "cut", "Wait.", unanswered=True)]])
def test_so_it_has_where_several_lists_share_a_bell(
    server: Server, monkeypatch: pytest.MonkeyPatch, end: list[Any]
) -> None:
    """Each end rings it, and who looks then begins the watches of the others again."""
    monkeypatch.setattr(watch, "_REST", 0.1)
    server.streams = [end] * 1000
    client: Any = server
    bell, begun = threading.Event(), time.monotonic()
    several = [WatchedList(client, "/path", "things", {}, bell) for _list in range(2)]
    while len(server.watched) <= 2 * 2:
        assert time.monotonic() - begun < 60, "watches are not begun again"
        bell.wait(0.05)
        bell.clear()
        for known in several:
            known.update(0)
    most = 1 + (time.monotonic() - begun) / 0.1
    assert len(server.watched) <= 2 * most
    assert server.lists <= 2 * (1 + most)


CUT = Failure("watch", "server", "the connection was lost", "Wait.", unanswered=True, reason="ConnectionLost")


@pytest.mark.parametrize("error", [CUT, Failure("watch", "server", "starting", "Wait.", status=503)])
def test_a_watch_that_is_cut_is_begun_again_with_all_there_is_by_then(server: Server, error: Failure) -> None:
    server.streams = [[event("ADDED", "a", 2), error], []]
    known = watched(server)
    known.update(5)
    assert names(known) == ["a"]
    server.items = [event("ADDED", name, 3)["object"] for name in ("a", "b")]
    known.update(5)
    assert (names(known), server.lists) == (["a", "b"], 2)


def test_a_watch_that_is_not_allowed_is_a_failure(server: Server) -> None:
    server.streams = [[event("ADDED", "a", 2), Failure("watch", "server", "no rights", "Ask.", status=403)], []]
    known = watched(server)
    with pytest.raises(Failure, match="no rights"):
        known.update(5)
    assert names(known) == ["a"]
    known.update(5)
    assert server.lists == 2


@pytest.fixture
def api(authority: Authority) -> Iterator[FakeApi]:
    with serving(FakeApi(), authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


def update_until(known: WatchedList, wanted: list[str]) -> None:
    for _look in range(9):
        if names(known) != wanted:
            known.update(5)
    assert names(known) == wanted


def stay_silent(request: Request) -> Answer:
    return request.outlast()


def fall_silent(_request: Request) -> Answer:
    return Answer(200, json.dumps(event("ADDED", "b", 2)).encode() + b"\n", hushed=True)


@pytest.mark.parametrize("bell", [None, threading.Event()])
@pytest.mark.parametrize(("hush", "before"), [(stay_silent, ["a"]), (fall_silent, ["a", "b"])])
def test_a_watch_of_a_server_that_falls_silent_is_begun_again_and_misses_nothing(
    connection: dict[str, str], api: FakeApi, monkeypatch: pytest.MonkeyPatch, hush: Any, before: list[str], bell: Any
) -> None:
    """As where a connection was forgotten on the way: after the time of a stream and of an answer it is given up."""
    monkeypatch.setattr(watch, "_STREAM_SECONDS", 0)
    monkeypatch.setattr(persistence, "READING", 20.0)
    items, watches = [event("ADDED", "a", 1)["object"]], list[Request]()

    def answer(request: Request) -> Answer:
        if "watch" not in request.query:
            return Answer(200, {"metadata": {"resourceVersion": str(len(items))}, "items": items})
        watches.append(request)
        if len(watches) == 1 or len(items) == 1:  # a slow machine may need more than one
            hushed: Answer = hush(request)
            return hushed
        return Answer(200, json.dumps(event("ADDED", "d", 4)).encode() + b"\n")

    api.faults["/things"] = answer
    known = WatchedList(connect_by(connection, 0.3), "/things", "things", {}, bell)
    known.update(0)
    update_until(known, before)
    items += [event("ADDED", name, 3)["object"] for name in ("b", "c")]
    update_until(known, ["a", "b", "c", "d"])


def test_a_watch_that_is_silent_by_nature_is_no_trouble(
    connection: dict[str, str], api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    rings: list[Callable[[], None]] = []
    told: list[str] = []
    monkeypatch.setattr(watch, "_STREAM_SECONDS", 0)
    watched_by_now = threading.Event()

    def alarm(_seconds: float, ring: Callable[[], None]) -> threading.Timer:
        rings.append(ring)
        return threading.Timer(0.0, lambda: None)

    def answer(request: Request) -> Answer:
        if "watch" not in request.query:
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})
        watched_by_now.set()
        return request.outlast()

    api.faults["/things"] = answer
    monkeypatch.setattr(persistence, "Timer", alarm)
    client = connect_by(connection, 0.3, Persistence(None, told.append))
    WatchedList(client, "/things", "things", {}, threading.Event()).update(0)
    assert watched_by_now.wait(60)
    later = clock.now() + 1000.0
    monkeypatch.setattr(clock, "now", lambda: later)
    (ring,) = rings
    ring()
    assert (told, len(rings)) == ([], 1)
