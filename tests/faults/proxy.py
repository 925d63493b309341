# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy before the API server that, while it is troubled, delays, refuses, loses answers and drops watches.

At a moment that a test has named it does something else, or lets something happen that nobody has expected.

It ends TLS and acts with the rights of its own kubeconfig, for whoever shows the token that it accepts.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import yaml

from testbed.api import ssl_context
from testbed.pki import Authority, write_kubeconfig

_CHUNK = 2**16
# Of an answer these are the connection's own business.
_OF_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}
Refusal = tuple[int, str] | tuple[int, str, str]
_STATUSES = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
# What only a list or a watch is told, and only what would change something.
_EXPIRED, _CONFLICT = (410, "Expired"), (409, "Conflict")
_UNAUTHORIZED = (401, "Unauthorized")
_FIRST_TOKEN = "the-first-token"  # noqa: S105  # guards nothing
_LATE, _REFUSED, _LOST, _CUT, _BUSY, _PAGE = "late", "refused", "lost", "cut", "busy", "page"
ENDED = "ended"
# How a busy server refuses, with a Retry-After.
_BUSY_STATUSES = ((429, "TooManyRequests"), (503, "ServiceUnavailable"))


def _always(_body: bytes) -> bool:
    return True


@dataclass
class Moment:
    """A request, and what happens at it. path: what its path has to match, up to its end. provided: asked of its body.

    A dry run is none, as nothing comes of it.

    after: how many such requests come before, to which nothing happens. only: how often it happens then; None always.
    act: done before the request is passed on. refused: status, reason and words instead of its answer. page: what
    stands on a page of the proxy's own that says 404, as it has no server for now. busy: refused as by a busy server.
    lost: it is done, and nobody hears of it. change: another answer than the server's. came: how many such requests
    there were. met: to how many of them it happened.
    """

    command: str
    path: re.Pattern[str]
    provided: Callable[[bytes], bool] = _always
    after: int = 0
    only: int | None = 1
    act: Callable[[], object] | None = None
    refused: tuple[int, str, str] | None = None
    page: str = ""
    busy: bool = False
    lost: bool = False
    change: Callable[[Any], Any] | None = None
    came: int = 0
    met: int = 0

    def takes(self, command: str, path: str, body: bytes) -> bool:
        """Whether it is to happen to this request, which counts if it is such a one."""
        url = urlsplit(path)
        is_such = command == self.command and self.path.fullmatch(url.path) and "dryRun=" not in url.query
        if not is_such or not self.provided(body):
            return False
        self.came += 1
        return self.came > self.after and (self.only is None or self.met < self.only)

    def fate(self) -> tuple[str, Refusal]:
        if self.refused:
            return _REFUSED, self.refused
        if self.page:
            return _PAGE, (404, self.page)
        if self.busy:
            return _BUSY, _BUSY_STATUSES[0]
        return _LOST if self.lost else "", _UNAUTHORIZED


class Proxy(ThreadingHTTPServer):
    """trouble: share of requests that come to grief. done: how many did, by how. dropped: how often watches were.

    lost, busy: the share of writes that are done and whose answer gets lost, and of all requests that are refused with
    a Retry-After.

    curt: ends each watch after so many seconds without news, as done[ENDED] counts; None lets them be.

    requests: how many came. carried_out: method and path of those that the server has said yes to, without reads and
    dry runs.

    issued: the token that stands in the kubeconfig. accepted: the one that is let pass. moments: what is to happen at
    certain requests; trouble is left to the others.
    """

    daemon_threads = True

    def __init__(self, kubeconfig: Path, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        config = yaml.safe_load(kubeconfig.read_text())
        server = urlsplit(config["clusters"][0]["cluster"]["server"])
        self.upstream = str(server.hostname), int(server.port or 443)
        self.context = ssl_context(config)
        self.trouble, self.dropped = 0.0, 0
        self.lost, self.busy = 0.0, 0.0
        self.curt: float | None = None
        self.issued = self.accepted = _FIRST_TOKEN
        self.requests = 0
        self.done: Counter[str] = Counter()
        self.moments: list[Moment] = []
        self.carried_out: list[tuple[str, str]] = []
        self._random, self._lock = Random(seed), threading.Lock()  # noqa: S311  # a seed makes it again

    def accept(self, token: str) -> None:
        self.accepted = token

    def at(self, command: str, path: str, **what: Any) -> Moment:
        """Let something happen at a request; the fields are those of Moment."""
        self.moments.append(Moment(command, re.compile(path), **what))
        return self.moments[-1]

    def meet(self, command: str, path: str, body: bytes) -> Moment | None:
        """The moment that a request is; what is to happen before it has happened."""
        with self._lock:
            self.requests += 1
            # Each counts it, whichever of them it is then.
            taking = [moment for moment in self.moments if moment.takes(command, path, body)]
            found = next(iter(taking), None)
            if found is not None:
                found.met += 1
        if found is not None and found.act is not None:
            found.act()
        return found

    def fate(self, command: str, others: Refusal) -> tuple[str, Refusal]:
        """What becomes of a request, and the status where it is refused: one of any request's, or of such `others`."""
        with self._lock:
            if self._random.random() < self.busy:
                self.done[_BUSY] += 1
                return _BUSY, self._random.choice(_BUSY_STATUSES)
            if command != "GET" and self._random.random() < self.lost:
                self.done[_LOST] += 1
                return _LOST, others
            if self._random.random() >= self.trouble:
                return "", others
            found = self._random.choice((_LATE, _REFUSED, _LOST, _CUT))
            self.done[found] += 1
            return found, self._random.choice([*_STATUSES.items(), others])

    def ended(self) -> None:
        """A watch, by this."""
        with self._lock:
            self.done[ENDED] += 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are everyday life here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {self.server.accepted}":
            self._refuse(*_UNAUTHORIZED)
            return
        moment = self.server.meet(self.command, self.path, body)
        fate, status = moment.fate() if moment else self.server.fate(self.command, self._refusal())
        if fate == _LATE:
            time.sleep(1.5)
        if fate in (_REFUSED, _BUSY):
            self._refuse(*status, soon=fate == _BUSY)
            return
        if fate == _PAGE:
            self._say(status[0], "text/html", f"<html><body><h1>{status[1]}</h1></body></html>".encode())
            return
        upstream = http.client.HTTPSConnection(*self.server.upstream, context=self.server.context, timeout=600)
        try:
            kept = {"accept", "content-type", "user-agent"}
            headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            if answer.status < http.HTTPStatus.BAD_REQUEST and self.command != "GET" and "dryRun=" not in self.path:
                self.server.carried_out.append((self.command, urlsplit(self.path).path))
            if fate == _LOST:
                answer.read() if "watch=" not in self.path else None
                self.close_connection = True
                return
            if self.server.curt is not None and "watch=" in self.path:
                upstream.sock.settimeout(self.server.curt)
            self._pass_on(answer, cut=fate == _CUT, change=moment.change if moment else None)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            upstream.close()

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Nothing: what is printed is the campaign's."""

    def _refusal(self) -> tuple[int, str]:
        """With what only such a request is refused."""
        if self.command != "GET":
            return _CONFLICT
        return _EXPIRED if "watch=" in self.path or "continue=" in self.path else (503, _STATUSES[503])

    def _refuse(self, status: int, reason: str, message: str = "the proxy says no", *, soon: bool = False) -> None:
        words = {"reason": reason, "message": message, "code": status}
        content = json.dumps({"kind": "Status", "status": "Failure", **words}).encode()
        self._say(status, "application/json", content, soon=soon)

    def _say(self, status: int, kind: str, content: bytes, *, soon: bool = False) -> None:
        """The proxy's own answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if soon:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(content)

    def _pass_on(
        self, answer: http.client.HTTPResponse, *, cut: bool, change: Callable[[Any], Any] | None = None
    ) -> None:
        """In chunks, as they come; a watch ends when all watches are dropped. A change needs the whole."""
        changed = io.BytesIO(json.dumps(change(json.load(answer))).encode()) if change else None
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OF_HOP:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        dropped, is_watch = self.server.dropped, "watch=" in self.path
        while chunk := self._next(changed or answer):
            if cut or (is_watch and self.server.dropped != dropped):
                self.close_connection = True
                return
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _next(self, answer: http.client.HTTPResponse | io.BytesIO) -> bytes:
        """Nothing at its end, which is also where a curt proxy has no more patience with a watch."""
        try:
            return answer.read1(_CHUNK)
        except TimeoutError:
            if self.server.curt is None:
                raise
            self.server.ended()
            return b""


@contextmanager
def proxied(kubeconfig: Path, folder: Path, seed: int) -> Iterator[tuple[Path, Proxy]]:
    """A kubeconfig that leads through a proxy to the API server of another one."""
    place = folder / "proxy"
    place.mkdir()
    authority = Authority(place)
    certificate = authority.issue("server", "server", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    with Proxy(kubeconfig, seed) as proxy:
        # Each connection shakes hands in its own thread: one that says nothing holds up no other.
        proxy.socket = context.wrap_socket(proxy.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        server = f"https://127.0.0.1:{proxy.server_address[1]}"
        try:
            yield write_kubeconfig(place / "kubeconfig", server, authority.cert, {"token": _FIRST_TOKEN}), proxy
        finally:
            with contextlib.suppress(OSError):
                proxy.shutdown()
            thread.join()
