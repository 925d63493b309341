# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is no answer of an API server, as of a proxy without one, says nothing of objects, and is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find, listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, serving
from unit.plugins.support.object_api import NODES, ObjectApi

NODE = f"{NODES}/n1"
TIMEOUT = 5.0


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectApi]:
    monkeypatch.setattr(persistence, "READING", 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    fake = ObjectApi()
    fake.add_node("n1")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def client(connection: dict[str, str]) -> Client:
    return connect_by(connection, TIMEOUT, Persistence(20.0))


@pytest.mark.parametrize(
    "body",
    [
        {"code": 14, "message": "no server is left", "details": [{"@type": "type.googleapis.com/google.rpc.Help"}]},
        {"message": "no server is left", "details": "upstream"},
        {"message": "no server is left", "details": {"causes": "upstream"}},
        {"message": "no server is left", "details": {"causes": ["upstream"]}},
    ],
)
def test_a_proxy_may_refuse_in_json_of_its_own(client: Client, api: ObjectApi, body: dict[str, Any]) -> None:
    answers = [Answer(503, body, headers=(("Retry-After", "0"),)), Answer(400, body)]
    api.faults[NODE] = lambda _request: answers.pop(0)
    with pytest.raises(Failure, match="answered 400, no server is left"):
        client.get(NODE, "read")


# A proxy that has no server for now.
PAGES = [
    Answer(404, b"<html><h1>Not here</h1></html>"),
    Answer(404, b"default backend - 404"),
    Answer(404, {"message": "no route"}),
]
NOT_SERVED = Answer(404, b"404 page not found\n")
# Of a gateway that knows nobody, or is busy with itself.
LOGIN = Answer(200, b"<!DOCTYPE html>\n<html><title>Log in</title>Once more</html>")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("path", "ask"), [(NODE, Client.get), (NODE, find), (NODES, partial(listed, limit="9"))])
def test_a_page_that_is_not_found_is_no_object_that_is_gone(
    client: Client, api: ObjectApi, page: Answer, path: str, ask: Callable[[Client, str, str], object]
) -> None:
    pages = [page, page]
    api.faults[path] = lambda _request: pages.pop() if pages else None
    assert ask(client, path, "read")
    assert pages == []


@pytest.mark.parametrize("page", PAGES)
def test_what_a_proxy_has_not_found_is_deleted_all_the_same(client: Client, api: ObjectApi, page: Answer) -> None:
    pages = [page]
    api.faults[NODE] = lambda request: pages.pop() if pages and request.method == "DELETE" else None
    client.delete(NODE, "delete", None, dry_run=False)
    assert (pages, find(client, NODE, "read")) == ([], None)


def test_a_proxy_without_a_server_is_told_when_the_time_is_over(client: Client, api: ObjectApi) -> None:
    patience = client.briefly()
    api.faults[NODE] = lambda _request: PAGES[0]
    with pytest.raises(Failure, match="something before the API server answered 404, Not here") as told:
        patience.get(NODE, "read")
    assert (told.value.passing, told.value.gone) == (True, False)
    assert "This is no answer of a Kubernetes API server: check what stands between, such as a proxy" in str(told.value)


@pytest.mark.parametrize("page", [*PAGES, NOT_SERVED])
@pytest.mark.parametrize("path", ["/version", "/apis"])
def test_a_proxy_without_a_server_is_waited_for_from_the_beginning(
    connection: dict[str, str], api: ObjectApi, page: Answer, path: str
) -> None:
    """All API servers serve these, so that even the plain text of Go's servers is none of theirs."""
    pages = [page, page]
    api.faults[path] = lambda _request: pages.pop() if pages else None
    assert find(connect_by(connection, TIMEOUT, Persistence(20.0)), NODE, "read")
    assert pages == []


@pytest.mark.parametrize(
    "page",
    [LOGIN, *(Answer(200, text) for text in (b"", b"[]", b'["a"]', b"null", b"7", b'"a"', b"{}", b'{"groups": 7}'))],
)
def test_a_page_with_status_200_is_waited_for_from_the_beginning(
    connection: dict[str, str], api: ObjectApi, page: Answer
) -> None:
    pages = [page, page]
    api.faults["/apis"] = lambda _request: pages.pop() if pages else None
    assert find(connect_by(connection, TIMEOUT, Persistence(20.0)), NODE, "read")
    assert pages == []


def test_an_address_where_no_api_server_comes_up_is_told_when_the_time_is_over(
    connection: dict[str, str], api: ObjectApi
) -> None:
    api.faults["/version"] = lambda _request: NOT_SERVED
    with pytest.raises(Failure, match="something before the API server answered 404, 404 page not found") as told:
        connect_by(connection, TIMEOUT, Persistence(0.5))
    assert "tried " in str(told.value)
    assert "and that the address is that of an API server." in str(told.value)


@pytest.mark.parametrize(
    ("page", "words"),
    [(LOGIN, "not JSON: status 200, Log in"), (Answer(200, b"[]"), "JSON of something else: status 200")],
)
def test_a_page_with_status_200_is_told_when_the_time_is_over(
    connection: dict[str, str], api: ObjectApi, page: Answer, words: str
) -> None:
    """It is no mistake in the settings of which something could be told."""
    api.faults["/apis"] = lambda _request: page
    with pytest.raises(Failure, match=f"the answer is {words}; tried ") as told:
        connect_by(connection, TIMEOUT, Persistence(0.5))
    assert (told.value.reason, told.value.passing) == ("NotJson", True)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe Log in", "Log in"), (b'{"status": {"token": "t-1"', "JSON with a mistake"), (b"<p>", "an empty page")],
)
def test_what_is_not_json_is_told_by_its_first_line(client: Client, api: ObjectApi, content: bytes, words: str) -> None:
    api.faults[NODE] = lambda _request: Answer(200, content)
    with pytest.raises(Failure, match="the answer is not JSON: status 200, ") as told:
        client.briefly().get(NODE, "read")
    assert (words in told.value.message, "t-1" in str(told.value)) == (True, False)


def test_a_kind_that_is_not_installed_is_told_at_once_and_has_no_objects(client: Client, api: ObjectApi) -> None:
    asked: list[Request] = []

    def unserved(request: Request) -> Answer:
        asked.append(request)
        return NOT_SERVED

    api.faults[NODE] = api.faults[NODES] = unserved
    assert listed(client, NODES, "list") == []
    with pytest.raises(Failure, match="the API server answered 404, 404 page not found"):
        find(client, NODE, "read")
    assert len(asked) == 2
