# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in this process, on loopback with TLS, that can be made to fail in ways a real one cannot at will.

It serves lists in pages and records the requests. What real API servers do is proved on the testbed; this one is for
what travels over the wire when things go wrong.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS, Kind

from testbed.pki import Certificate

Object = dict[str, Any]
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True)
class Request:
    """connection: what comes after it."""

    method: str
    path: str
    query: dict[str, str]
    body: Object = field(default_factory=dict)
    authorization: str = ""
    connection: BufferedIOBase | None = field(default=None, compare=False, repr=False)

    def outlast(self) -> Answer:
        """When the client has had enough of waiting, no answer."""
        assert self.connection is not None
        with suppress(OSError):
            self.connection.read(1)
        return SILENCE


@dataclass(frozen=True)
class Answer:
    """`cut`: send only that many bytes of the body, then close the connection. headers: besides the usual.

    hushed: send the body, and then nothing more, as long as the client waits.
    """

    status: int
    body: Object | bytes
    cut: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    hushed: bool = False


# The connection is closed without an answer, as by a server that goes down.
SILENCE = Answer(0, b"")


# What answers a request in place of the server; None leaves it to the server.
Fault = Callable[[Request], Answer | None]


def refusal(status: int, reason: str, message: str) -> Answer:
    """A Status object as API servers send it."""
    return Answer(status, {"kind": "Status", "apiVersion": "v1", "code": status, "reason": reason, "message": message})


@dataclass
class FakeApi:
    """`lists`: objects by the name of their list. `faults`: by path. `forbidden`: names of lists that answer 403.

    withheld: verbs and resources, as `delete leases.coordination.k8s.io`, that reviews say are not allowed. token: the
    only one that is let in, empty for anybody.
    """

    lists: dict[str, list[Object]] = field(default_factory=lambda: {kind.name: [] for kind in KINDS})
    faults: dict[str, Fault] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    withheld: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    token: str = ""
    url: str = ""

    def unserve(self, name: str) -> None:
        """As on a server that does not know the kind."""
        del self.lists[name]

    def fail(self, name: str, fault: Fault) -> None:
        self.faults[BY_NAME[name].path] = fault

    def asked(self, name: str) -> list[Request]:
        """The requests for a list so far."""
        return [request for request in self.requests if request.path == BY_NAME[name].path]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.token and request.authorization != f"Bearer {self.token}":
            return refusal(401, "Unauthorized", "Unauthorized")
        fault = self.faults.get(request.path)
        answer = fault(request) if fault else None
        return answer or self._discovery(request) or self._review(request) or self._list(request)

    def _discovery(self, request: Request) -> Answer | None:
        bodies: dict[str, Object] = {
            "/version": {"gitVersion": "v1.36.3"},
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
        }
        return Answer(200, bodies[request.path]) if request.path in bodies else None

    def _review(self, request: Request) -> Answer | None:
        if request.path != REVIEWS:
            return None
        wanted = request.body["spec"]["resourceAttributes"]
        denied = {f"list {BY_NAME[name].title}" for name in self.forbidden} | self.withheld
        return Answer(201, {"status": {"allowed": asked_for(wanted) not in denied}})

    def _list(self, request: Request) -> Answer:
        kind = next((kind for kind in KINDS if kind.path == request.path and kind.name in self.lists), None)
        if kind is None:
            return refusal(404, "NotFound", "the server could not find the requested resource")
        if kind.name in self.forbidden:
            return refusal(403, "Forbidden", f'{kind.title} is forbidden: User "jane" cannot list resource')
        return page(request, self._found(kind, request))

    def _found(self, kind: Kind, request: Request) -> list[Object]:
        """Of a kind. It leaves nothing behind that another request at the same time could come by."""
        return self.lists[kind.name]


def page(request: Request, items: list[Object]) -> Answer:
    """Those that the request asks for: all from where it goes on, unless it has a limit."""
    start = int(request.query.get("continue", 0))
    end = start + int(request.query.get("limit", len(items)))
    rest = {"continue": str(end)} if end < len(items) else {}
    return Answer(200, {"metadata": {"resourceVersion": "7", **rest}, "items": items[start:end]})


def asked_for(wanted: Object) -> str:
    """The verb and resource of a review; `in place` for a namespace, and the name of one object, behind them."""
    resource = "/".join(filter(None, (wanted["resource"], wanted["subresource"])))
    title = ".".join(filter(None, (resource, wanted["group"])))
    place = f"in {wanted['namespace']}" if "namespace" in wanted else ""
    return " ".join(filter(None, (wanted["verb"], title, wanted["name"], place)))


@contextmanager
def serving(api: FakeApi, certificate: Certificate | None) -> Iterator[FakeApi]:
    """Serve on a free port of 127.0.0.1 as long as the context lasts; without a certificate in plain text."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(api))
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.cert, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    api.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(api: FakeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body go out separately; waiting for acknowledgements between them costs 40 ms an answer.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_form = "form" in (self.headers.get("Content-Type") or "")
            self._reply({} if is_form else json.loads(content or b"{}"))

        def do_PATCH(self) -> None:
            self.do_POST()

        def do_PUT(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def _reply(self, body: Object) -> None:
            url = urlsplit(self.path)
            credentials = self.headers.get("Authorization") or ""
            query = dict(parse_qsl(url.query))
            request = Request(self.command, unquote(url.path), query, body, credentials, self.rfile)
            answer = api.answer(request)
            if answer is SILENCE:
                self.close_connection = True
                return
            length, content = _sent(answer)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            for name, value in (length, *answer.headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = _closes(answer, request)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: the requests are recorded."""

    return Handler


def _sent(answer: Answer) -> tuple[tuple[str, str], bytes]:
    """The header that tells how long a body is, and as much of it as is sent."""
    content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    if answer.hushed:
        return ("Transfer-Encoding", "chunked"), b"%x\r\n%s\r\n" % (len(content), content)
    return ("Content-Length", str(len(content))), content[: answer.cut]


def _closes(answer: Answer, request: Request) -> bool:
    """Whether the connection is closed after an answer; if it is hushed, when the client has had enough."""
    if answer.hushed:
        request.outlast()
    return answer.hushed or answer.cut is not None
