# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each kind of request whose answer is lost, or that is refused for now: done once, and told as done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    Persistence,
    repeatable,
)

from testbed.pki import Authority
from unit.plugins.support.draining_api import BUDGET, TWO_BUDGETS, UNADMITTED
from unit.plugins.support.fake_api import SILENCE, Answer, Fault, Request, refusal, serving
from unit.plugins.support.object_api import NODES, ObjectApi

NODE, ACT = f"{NODES}/n1", "/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db/restart"
# Of a try, in seconds: where it is to be over, and where it is not, however slow the machine is.
SHORT, LONG = 1.0, 60.0
SOON = (("Retry-After", "0"),)
# As a server says that has to do for others first (k8s.io/apiserver, server/filters/priority-and-fairness.go).
TOO_MANY = Answer(429, b"Too many requests, please try again later.", headers=SOON)


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectApi]:
    monkeypatch.setattr(persistence, "READING", 2 * LONG)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    fake = ObjectApi()
    fake.add_node("n1", {"old": "1"})
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def client(connection: dict[str, str], request: pytest.FixtureRequest) -> Client:
    callspec = getattr(request.node, "callspec", None)
    is_late = callspec is not None and callspec.params.get("fault") is take_too_long
    return connect_by(connection, SHORT if is_late else LONG, Persistence(2 * LONG))


def drop(_request: Request) -> Answer:
    return SILENCE


def take_too_long(request: Request) -> Answer:
    return request.outlast()


def cut(_request: Request) -> Answer:
    return Answer(200, {"kind": "Node"}, cut=5)


def fail(_request: Request) -> Answer:
    return refusal(500, "InternalError", "etcdserver: request timed out")


def show_a_page(_request: Request) -> Answer:
    """Of a proxy that knows no better for a moment."""
    return Answer(200, b"<html>Log in</html>")


def be_busy(_request: Request) -> Answer:
    return TOO_MANY


def be_busy_for_a_day(_request: Request) -> Answer:
    return Answer(429, TOO_MANY.body, headers=(("Retry-After", "86400"),))


def start(_request: Request) -> Answer:
    return Answer(503, refusal(503, "ServiceUnavailable", "starting").body, headers=SOON)


def lack_a_webhook(_request: Request) -> Answer:
    return UNADMITTED


def redirect(_request: Request) -> Answer:
    return Answer(307, {}, headers=(("Location", NODE),))


UNCERTAIN: list[Fault] = [drop, take_too_long, cut, fail, show_a_page]
REFUSING: list[Fault] = [be_busy, start, lack_a_webhook]

WRITES: dict[str, tuple[str, Callable[[Client], Any]]] = {
    "create": (NODES, lambda client: client.create(NODES, "create", {"metadata": {"name": "n2"}, "spec": {}})),
    "replace": (
        NODE,
        lambda client: client.replace(NODE, "write", {"metadata": {"name": "n1", "labels": {"new": "1"}}}),
    ),
    "patch": (NODE, lambda client: client.patch(NODE, "change", {"metadata": {"labels": {"new": "1", "old": None}}})),
    "delete": (NODE, lambda client: client.delete_only(NODE, "delete", {"uid": "uid-n1"}, dry_run=False)),
}


def at_first(api: ObjectApi, path: str, fault: Fault, *, done: bool) -> list[Request]:
    """Let the first write to a path come to grief, after it was done or without; all writes to it."""
    writes: list[Request] = []

    def meet(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        writes.append(request)
        if len(writes) > 1:
            return None
        if done:
            api._list(request)
        return fault(request)

    api.faults[path] = meet
    return writes


@pytest.mark.parametrize("fault", REFUSING)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_refused_for_now_is_sent_again(
    client: Client, api: ObjectApi, name: str, fault: Fault
) -> None:
    path, write = WRITES[name]
    writes = at_first(api, path, fault, done=False)
    assert write(client)["metadata"]["name"]
    assert len(writes) == 2


@pytest.mark.parametrize("fault", UNCERTAIN)
@pytest.mark.parametrize("name", ["create", "replace", "patch"])
def test_a_write_that_was_done_is_not_sent_again(client: Client, api: ObjectApi, name: str, fault: Fault) -> None:
    path, write = WRITES[name]
    writes = at_first(api, path, fault, done=True)
    assert write(client)["metadata"]["name"]
    assert len(writes) == 1


@pytest.mark.parametrize("fault", UNCERTAIN)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_not_done_is_sent_again(client: Client, api: ObjectApi, name: str, fault: Fault) -> None:
    path, write = WRITES[name]
    writes = at_first(api, path, fault, done=False)
    assert write(client)["metadata"]["name"]
    assert len(writes) == 2


@pytest.mark.parametrize("left", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"uid": "another"}])
def test_what_was_deleted_is_gone_or_going(client: Client, api: ObjectApi, left: dict[str, str]) -> None:
    """Or another one of its name is there, which is not to be deleted."""

    def delete_late(_request: Request) -> Answer:
        api.objects.pop(NODE)
        if left:
            api.add_node("n1")["metadata"].update(left)
        return SILENCE

    writes = at_first(api, NODE, delete_late, done=False)
    WRITES["delete"][1](client)
    assert len(writes) == 1
    assert (NODE in api.objects) is bool(left)


def test_who_may_not_look_deletes_again(client: Client, api: ObjectApi) -> None:
    """With the preconditions of the first time."""
    writes = at_first(api, NODE, drop, done=True)
    deleted = api.faults[NODE]
    api.faults[NODE] = lambda request: refusal(403, "Forbidden", "no") if request.method == "GET" else deleted(request)
    with pytest.raises(Failure, match="404"):
        WRITES["delete"][1](client)
    assert [write.body["preconditions"] for write in writes] == [{"uid": "uid-n1"}] * 2


@pytest.mark.parametrize(
    ("uid", "seen", "maybe_done"), [("uid-n1", True, False), ("uid-n1", False, True), ("", True, True)]
)
def test_what_is_still_there_was_not_deleted(
    client: Client, api: ObjectApi, uid: str, seen: bool, maybe_done: bool
) -> None:
    """If one may look; and one without its uid may be another one by now."""
    answers = [SILENCE, refusal(403, "Forbidden", "not now")]

    def meet(request: Request) -> Answer | None:
        if request.method == "GET":
            return None if seen else refusal(403, "Forbidden", "no")
        return answers.pop(0)

    api.faults[NODE] = meet
    with pytest.raises(Failure, match="not now") as told:
        client.delete(NODE, "delete", uid or None, dry_run=False)
    assert told.value.maybe_done is maybe_done


@pytest.mark.parametrize(("uid", "left"), [("uid-n1", False), ("uid-another", True), (None, False)])
def test_what_is_gone_or_another_one_is_deleted(client: Client, api: ObjectApi, uid: str | None, left: bool) -> None:
    for _twice in range(2):
        client.delete(NODE, "delete", uid, dry_run=False)
    assert (NODE in api.objects) is left


def test_what_somebody_has_written_meanwhile_is_a_conflict(client: Client, api: ObjectApi) -> None:
    body = {"metadata": {"name": "n1", "resourceVersion": "1", "labels": {"new": "1"}}}

    def outrun(_request: Request) -> Answer:
        api.node("n1")["metadata"] |= {"resourceVersion": "99", "labels": {"theirs": "1"}}
        return SILENCE

    at_first(api, NODE, outrun, done=False)
    with pytest.raises(Failure, match="409"):
        client.patch(NODE, "change", body)
    assert api.node("n1")["metadata"]["labels"] == {"theirs": "1"}


@pytest.mark.parametrize("fault", [*UNCERTAIN, redirect])
def test_what_nobody_can_see_goes_out_once(client: Client, api: ObjectApi, fault: Fault) -> None:
    """Nor does a library send it again."""
    writes = at_first(api, ACT, fault, done=False)
    with pytest.raises(Failure) as told:
        client.act(ACT, "restart VM shop/db", {}, done=None)
    assert (len(writes), told.value.maybe_done) == (1, fault is not redirect)


@pytest.mark.parametrize("answer", [Answer(202, b""), Answer(200, b"\n"), Answer(200, {"kind": "Status"})])
def test_what_answers_an_act_is_nothing_or_json(client: Client, api: ObjectApi, answer: Answer) -> None:
    writes = at_first(api, ACT, lambda _request: answer, done=False)
    client.act(ACT, "restart VM shop/db", {}, done=None)
    assert len(writes) == 1


def test_a_lost_answer_is_not_taken_for_the_refusal_of_another_request(client: Client, api: ObjectApi) -> None:
    """That is being handled when it is asked for, as when a namespace is missing and created."""
    writes = at_first(api, NODES, drop, done=True)
    try:
        client.get(f"{NODES}/n2", "read")
    except Failure:
        WRITES["create"][1](client)
    assert len(writes) == 1
    assert api.node("n2")


def test_a_dry_run_may_come_twice(client: Client, api: ObjectApi) -> None:
    writes = at_first(api, NODE, drop, done=True)
    client.patch(NODE, "change", {"metadata": {"labels": {"new": "1"}}}, dryRun="All")
    assert len(writes) == 2
    assert api.node("n1")["metadata"]["labels"] == {"old": "1"}


def test_a_dry_run_is_not_answered_by_what_is_there(client: Client, api: ObjectApi) -> None:
    at_first(api, NODES, drop, done=True)
    with pytest.raises(Failure, match="409"):
        client.create(NODES, "create", {"metadata": {"name": "n1"}}, dryRun="All")


@pytest.mark.parametrize("fault", [*UNCERTAIN, *REFUSING])
def test_a_read_is_repeated(client: Client, api: ObjectApi, fault: Fault) -> None:
    faults = [fault, fault]
    api.faults[NODE] = lambda request: faults.pop()(request) if faults else None
    assert client.get(NODE, "read")["metadata"]["name"] == "n1"


@pytest.mark.parametrize(
    ("answer", "status", "times"), [(BUDGET, 429, 1), (TWO_BUDGETS, 500, 1), (TOO_MANY, 404, 2), (UNADMITTED, 404, 2)]
)
def test_a_budgets_answer_is_not_a_busy_servers(
    client: Client, api: ObjectApi, answer: Answer, status: int, times: int
) -> None:
    path = "/api/v1/namespaces/shop/pods/web/eviction"
    writes = at_first(api, path, lambda _request: answer, done=False)
    api.objects.clear()
    with pytest.raises(Failure) as told:
        client.post(path, "evict", {"metadata": {"name": "web"}}, done=None)
    assert (told.value.status, told.value.maybe_done, len(writes)) == (status, False, times)


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "86400",
        "soon",
        "nan",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        f"Wed, 21 Oct 2015 07:28:00 +{'9' * 20}",
        f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT",
    ],
)
def test_a_server_that_is_busy_for_ever_ends_it_in_time(
    connection: dict[str, str], api: ObjectApi, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    slept: list[float] = []  # the only time that passes
    monkeypatch.setattr(persistence, "clock", SimpleNamespace(now=lambda: sum(slept)))
    monkeypatch.setattr(persistence, "time", SimpleNamespace(sleep=slept.append, strftime=time.strftime))
    client = connect_by(connection, 60.0, Persistence(0.5))
    asked: list[Request] = []

    def be_busy_for_ever(request: Request) -> Answer:
        asked.append(request)
        return Answer(503, b"<html><h1>No server</h1> is left</html>", headers=(("Retry-After", text),))

    api.faults[NODE] = be_busy_for_ever
    with pytest.raises(Failure, match=r"answered 503, No server; tried \d+ times since") as told:
        client.get(NODE, "read")
    assert told.value.status == 503
    assert len(asked) >= 2
    assert sum(slept) == pytest.approx(0.5)


@pytest.mark.parametrize("fault", [drop, be_busy_for_a_day])
def test_no_library_repeats_what_connecting_asks(
    connection: dict[str, str], api: ObjectApi, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """Nor waits for as long as the server says."""
    slept: list[float] = []  # the only time that passes
    monkeypatch.setattr(persistence, "clock", SimpleNamespace(now=lambda: sum(slept)))
    monkeypatch.setattr(persistence, "time", SimpleNamespace(sleep=slept.append, strftime=time.strftime))
    asked: list[Request] = []

    def come_to_grief(request: Request) -> Answer | None:
        asked.append(request)
        return fault(request)

    api.faults["/version"] = come_to_grief
    with pytest.raises(Failure, match=r"connection was lost|answered 429, Too many requests.*; tried \d+ times since"):
        connect_by(connection, LONG, Persistence(100.0))
    assert len(asked) == len(slept) + 1
    assert sum(slept) == pytest.approx(100.0)


def test_reviews_and_tokens_may_come_twice(client: Client, api: ObjectApi) -> None:
    answers: list[Fault] = [drop]
    api.faults[ACT] = lambda request: answers.pop()(request) if answers else Answer(201, {"status": {}})
    assert client.post(ACT, "ask", {}, done=repeatable) == {"status": {}}


def test_a_server_that_is_away_at_first_is_waited_for(
    connection: dict[str, str], api: ObjectApi, authority: Authority
) -> None:
    faults = [drop, start, drop]
    api.faults["/version"] = lambda request: faults.pop()(request) if faults else None
    assert connect_by(connection, 5.0).get(NODE, "read")["metadata"]["name"] == "n1"
