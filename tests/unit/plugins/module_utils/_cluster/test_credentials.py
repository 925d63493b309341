# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A token that runs out while a task is at work: read anew, for as long as that may come about, and never worse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event
from traceback import format_exception
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from kubernetes.config import incluster_config
from oauthlib.oauth2 import InvalidGrantError

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.dialling import without_user
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import SILENCE, Answer, FakeApi, Fault, Request, refusal, serving
from unit.plugins.support.modules import isolate
from unit.plugins.support.object_api import NODES, ObjectApi
from unit.plugins.support.token_api import NODE, PAST, exec_by, forget, give, oidc, printed, read, taking_a_token, write

VERSION = "/version"
# In seconds; what is to come about comes about in it, however slow the machine is.
LONG = 60.0
EVICTION = "/api/v1/namespaces/shop/pods/web/eviction"


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectApi]:
    monkeypatch.setattr(persistence, "READING", LONG)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    with taking_a_token(authority, "127.0.0.1") as fake:
        yield fake


@pytest.fixture
def kubeconfig(api: ObjectApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    isolate(monkeypatch, tmp_path)
    return write_kubeconfig(tmp_path / "config", api.url, authority.cert, {"token": "first"})


@pytest.fixture
def client(kubeconfig: Path) -> Client:
    return connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))


def watch(client: Client) -> object:
    return next(client.watch(NODES, "watch nodes", 5))["object"]["metadata"]["labels"]


@pytest.mark.parametrize("ask", [read, write, watch])
def test_credentials_are_read_anew_when_they_have_run_out(
    api: ObjectApi, client: Client, kubeconfig: Path, ask: Callable[[Client], object]
) -> None:
    read(client)
    api.token = "second"
    with pytest.raises(Failure, match="401"):
        ask(client)
    give(kubeconfig, token="second")
    added = {"type": "ADDED", "object": {"metadata": {"labels": {"old": "1"}}}}
    api.faults[NODES] = lambda _request: Answer(200, json.dumps(added).encode() + b"\n")
    assert ask(client) == {"old": "1"}


def be_away(_request: Request) -> Answer:
    return SILENCE


def be_busy(_request: Request) -> Answer:
    return Answer(429, b"Too many requests", headers=(("Retry-After", "0"),))


def be_in_trouble(_request: Request) -> Answer:
    return refusal(500, "InternalError", "etcdserver: request timed out")


@pytest.mark.parametrize("fault", [be_away, be_busy, be_in_trouble])
def test_a_server_that_is_away_while_credentials_are_read_anew_is_waited_for(
    api: ObjectApi, client: Client, kubeconfig: Path, fault: Fault
) -> None:
    """Also by what is never looked for, and so never sent again: with the old credentials nothing was carried out."""
    forget(kubeconfig)
    api.token = "second"
    give(kubeconfig, token="second")
    faults = [fault] * 5
    api.faults[VERSION] = lambda request: faults.pop()(request) if faults else None
    api.faults[EVICTION] = lambda _request: Answer(201, {"kind": "Status"})
    assert client.post(EVICTION, "evict", {}, done=None) == {"kind": "Status"}
    assert not faults


def test_credentials_that_cannot_be_read_any_more_are_told_with_the_refusal(
    api: ObjectApi, client: Client, kubeconfig: Path
) -> None:
    api.token = "second"
    kubeconfig.write_text("clusters: [")
    with pytest.raises(Failure, match=r"answered 401, Unauthorized; with .* anew, its settings are not usable"):
        read(client)


@pytest.mark.parametrize("by", ["file", "plugin", "lasting plugin"])
def test_a_request_on_its_way_while_others_renew_the_credentials_goes_out_once_more_with_those(
    api: ObjectApi, kubeconfig: Path, by: str
) -> None:
    """Its refusal is of the old ones, which say nothing of the new."""
    token = kubeconfig.with_name("token")
    token.write_text("first")
    until = PAST if by == "plugin" else "2999-01-01T00:00:00Z"
    prints = printed("'$(cat " + str(token) + ")'", until)
    give(kubeconfig, **({"tokenFile": str(token)} if by == "file" else exec_by(prints)))
    client = connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))
    api.token = ""
    api.add_node("n2")
    arrived, renewed = Event(), Event()

    def meet(request: Request) -> Answer | None:
        if request.authorization == "Bearer second":
            return None
        if request.path == NODE:
            arrived.set()
            renewed.wait(LONG)
        return refusal(401, "Unauthorized", "Unauthorized")

    api.faults = {NODE: meet, f"{NODES}/n2": meet}
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(read, client)
        arrived.wait(LONG)
        token.write_text("second")
        client.get(f"{NODES}/n2", "read")
        renewed.set()
        assert slow.result() == {"old": "1"}


@pytest.mark.parametrize("user", [{"tokenFile": "/dev/null"}, exec_by("exit 1"), exec_by(printed("")), {}])
def test_credentials_that_are_none_replace_no_others(
    api: ObjectApi, client: Client, kubeconfig: Path, user: dict[str, Any]
) -> None:
    """As nobody, a task would be refused what it may do, and never ask for a token again."""
    api.token = "second"
    give(kubeconfig, **user)
    with pytest.raises(Failure, match=r"answered 401, Unauthorized; read anew, there are no credentials") as told:
        read(client)
    assert told.value.concerns_all
    assert {request.authorization for request in api.requests} == {"Bearer first"}
    api.token = "first"
    assert read(client) == {"old": "1"}


@pytest.mark.parametrize("user", ["", "joe@", "joe:a-secret@", "joe:a/b@c@", "joe:a//secret@"])
@pytest.mark.parametrize("protocol", ["", "https://"])
def test_an_address_is_told_without_its_user(protocol: str, user: str) -> None:
    assert without_user(f"{protocol}{user}api.example.org:6443") == f"{protocol}api.example.org:6443"


@pytest.mark.parametrize("is_there", [False, True])
def test_a_pods_token_stays_while_the_next_cannot_be_read(
    api: ObjectApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    """Whether it has run out is the server's to say."""
    isolate(monkeypatch, tmp_path)
    api.token = ""
    token = tmp_path / "token"
    token.write_text("first")
    server = urlsplit(api.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority.cert))
    at_once = SimpleNamespace(datetime=datetime, timedelta=lambda **_minutes: timedelta())
    monkeypatch.setattr(incluster_config, "datetime", at_once)
    client = connect_by({}, LONG, Persistence(LONG))
    token.unlink()
    if is_there:  # and empty
        token.touch()
    assert read(client) == {"old": "1"}
    assert api.requests[-1].authorization == "bearer first"
    token.write_text("second")
    read(client)
    assert api.requests[-1].authorization == "bearer second"


@pytest.mark.parametrize("around", ["{}\n", "  {}\r\n", "\n{}"])
def test_what_a_file_has_around_a_token_is_not_of_it(
    api: ObjectApi, kubeconfig: Path, authority: Authority, around: str
) -> None:
    """As `echo` writes it, and kubectl reads it."""
    (kubeconfig.parent / "token").write_text(around.format("first"))
    give(kubeconfig, tokenFile="token")
    assert read(connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))) == {"old": "1"}
    given = {"host": api.url, "ca_cert": str(authority.cert), "api_key": around.format("first")}
    client = connect_by(given, LONG, Persistence(LONG))
    assert read(client) == {"old": "1"}
    api.token = "second"
    with pytest.raises(Failure, match="401"):
        read(client)


SECRET = "a-secret"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"api_key": f"first\n{SECRET}"}, "sent with a request, holds a line break"),
        ({"proxy": f"http://joe:{SECRET}/1@127.0.0.1:1"}, "or of a proxy cannot be read. A user name or password"),
        ({"proxy": f"http://joe:{SECRET}#1@127.0.0.1:1"}, "or of a proxy cannot be read. A user name or password"),
        ({"host": f"https://joe:{SECRET}@127.0.0.1:1"}, "(https://127.0.0.1:1): connection refused"),
        ({"host": f"https://joe:{SECRET}@127.0.0.1:no"}, "(https://127.0.0.1:no): its settings are not usable"),
    ],
)
def test_no_credential_is_told_that_cannot_be_used(
    api: ObjectApi,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: dict[str, Any],
    words: str,
) -> None:
    # What a server at this address once offered may be remembered, and then nothing is asked.
    isolate(monkeypatch, tmp_path)
    monkeypatch.setattr(persistence, "READING", 0.0)
    options = {"host": api.url, "ca_cert": str(authority.cert), "api_key": "first", **given}
    with pytest.raises(Failure) as told:
        connect_by(options, LONG)
    assert (words in str(told.value), SECRET in "".join(format_exception(told.value))) == (True, False), told.value


def test_an_identity_provider_whose_address_cannot_be_used_is_no_trouble_that_passes(
    api: ObjectApi, client: Client, kubeconfig: Path
) -> None:
    read(client)
    api.token = "second"
    give(kubeconfig, **oidc(PAST, f"https://joe:{SECRET}/1@127.0.0.1:1"))
    with pytest.raises(Failure, match=r"answered 401, Unauthorized; with .* the address of the server") as told:
        read(client)
    assert SECRET not in "".join(format_exception(told.value))


OIDC = "/.well-known/openid-configuration"
RUN_OUT = {"error": "invalid_grant", "error_description": f"it has run out\n{'x' * 9999}"}


@pytest.fixture
def provider(authority: Authority) -> Iterator[FakeApi]:
    """It gives no token yet."""
    fake = FakeApi()
    fake.faults[OIDC] = lambda _request: Answer(200, {"token_endpoint": f"{fake.url}/token"})
    with serving(fake, authority.issue("provider", "provider", hosts=["127.0.0.1"])):
        yield fake


@pytest.mark.parametrize(
    ("path", "answer", "words", "remedy"),
    [
        ("/token", Answer(400, RUN_OUT), "invalid_grant: it has run", "Log in"),
        ("/token", Answer(400, {"error": "login_required"}), "login_required", "Log in"),
        ("/token", Answer(401, {"error": "invalid_client"}), "invalid_client", "Check the client's id"),
        (
            "/token",
            Answer(200, {"access_token": "x", "refresh_token": "r"}),
            "its answer has no id_token",
            "Check the cl",
        ),
        (OIDC, Answer(200, b"[]"), "its answer is not the JSON", "Check the client's id"),
        (OIDC, Answer(200, b"<html>Log in</html>"), "its answer is not the JSON", "Check the client's id"),
        (OIDC, Answer(200, b"<html>Entr\xe9e</html>"), "its answer is not the JSON", "Check the client's id"),
    ],
    ids=["logged out", "to be asked", "unknown client", "no token", "another document", "a page", "not in UTF-8"],
)
def test_an_identity_provider_that_gives_no_token_is_told(
    api: ObjectApi,
    client: Client,
    kubeconfig: Path,
    authority: Authority,
    provider: FakeApi,
    path: str,
    answer: Answer,
    words: str,
    remedy: str,
) -> None:
    """In the midst of a task with the refusal of the token that has run out."""
    provider.faults[path] = lambda _request: answer
    read(client)
    api.token = "second"
    give(kubeconfig, **oidc(PAST, provider.url, authority.cert))
    with pytest.raises(Failure, match=f"401, .* the identity provider gives no token: {words}") as told:
        read(client)
    assert (told.value.passing, len(str(told.value)) < 1000) == (False, True)
    with pytest.raises(Failure, match=f"the identity provider gives no token: {words}.* {remedy}"):
        connect_by({"kubeconfig": str(kubeconfig)}, LONG)


@pytest.mark.parametrize("name", ["refresh-token", "idp-certificate-authority", "idp-certificate-authority-data"])
def test_settings_for_an_identity_provider_are_no_answer_of_it(
    kubeconfig: Path, authority: Authority, provider: FakeApi, name: str
) -> None:
    user = oidc(PAST, provider.url, authority.cert)
    user["auth-provider"]["config"][name] = 5
    give(kubeconfig, **user)
    with pytest.raises(Failure, match="its settings are not usable"):
        connect_by({"kubeconfig": str(kubeconfig)}, LONG)


@pytest.mark.parametrize(
    "answer",
    [Answer(502, b"<html>Bad gateway</html>"), Answer(503, {"error": "temporarily_unavailable"})],
    ids=["a page of a gateway", "busy"],
)
def test_one_that_gives_none_for_now_is_asked_again(
    api: ObjectApi, client: Client, kubeconfig: Path, authority: Authority, provider: FakeApi, answer: Answer
) -> None:
    read(client)
    api.token = token_of(oidc("2999-01-01T00:00:00Z", provider.url))
    answers = [Answer(200, {"access_token": "x", "id_token": api.token, "refresh_token": "r2"}), answer]
    provider.faults["/token"] = lambda _request: answers.pop()
    give(kubeconfig, **oidc(PAST, provider.url, authority.cert))
    assert (read(client), answers) == ({"old": "1"}, [])


def test_a_token_that_is_not_renewed_in_time_is_used_as_long_as_it_lasts(client: Client) -> None:
    def renew(_configuration: Any) -> None:
        raise InvalidGrantError(description="it has run out")

    client._line.dialled._renew = renew
    assert read(client) == {"old": "1"}


def token_of(user: dict[str, Any]) -> str:
    return str(user["auth-provider"]["config"]["id-token"])


def test_no_token_is_told_that_cannot_be_used_when_it_was_read_anew(
    api: ObjectApi, client: Client, kubeconfig: Path
) -> None:
    read(client)
    api.token = "second"
    give(kubeconfig, token=f"second\n{SECRET}")
    with pytest.raises(Failure, match=r"Cannot read .* its settings are not usable, the token") as told:
        read(client)
    assert SECRET not in "".join(format_exception(told.value))


def test_no_token_is_told_that_cannot_be_used_when_it_was_renewed(api: ObjectApi, client: Client) -> None:
    def renew(configuration: Any) -> None:
        configuration.api_key = {"authorization": f"Bearer second\n{SECRET}"}

    client._line.dialled._renew = renew
    with pytest.raises(Failure, match=r"Cannot read .* its settings are not usable, the token") as told:
        read(client)
    assert SECRET not in "".join(format_exception(told.value))
