# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A secure connection that is refused will be refused again, and one that is cut may well come about a little later."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

from testbed.pki import Authority, Certificate
from unit.plugins.support.fake_api import FakeApi, serving
from unit.plugins.support.modules import isolate

# What a server does with a connection; it is closed then.
Act = Callable[[socket.socket], None]

HANDSHAKE_FAILURE, UNKNOWN_AUTHORITY, PROTOCOL_VERSION, INTERNAL_ERROR = 40, 48, 70, 80


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Between two tries: the only time that passes."""
    isolate(monkeypatch, tmp_path)
    slept: list[float] = []
    monkeypatch.setattr(persistence, "READING", 1.0)
    monkeypatch.setattr(persistence, "clock", SimpleNamespace(now=lambda: sum(slept)))
    monkeypatch.setattr(persistence, "time", SimpleNamespace(sleep=slept.append, strftime=time.strftime))
    return slept


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    return authority.issue("server", "server", hosts=["127.0.0.1"])


@contextmanager
def server(act: Act, port: int = 0) -> Iterator[str]:
    """Its address."""

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the end of the test
            while True:
                connection, _address = listening.accept()
                with connection, contextlib.suppress(OSError):
                    act(connection)

    with socket.create_server(("127.0.0.1", port)) as listening:
        thread = threading.Thread(target=serve, args=[listening])
        thread.start()
        try:
            yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def told(address: str, authority: Authority, **credentials: str) -> Failure:
    given = {"host": address, "api_key": "open-sesame", "ca_cert": str(authority.cert), **credentials}
    with pytest.raises(Failure) as error:
        connect_by(given, 10.0)
    return error.value


def speak_http(connection: socket.socket) -> None:
    connection.recv(1)
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request\n")
    drain(connection)


def alert(number: int) -> Act:
    """Refuse the handshake with a fatal alert (RFC 8446, 6.2)."""

    def act(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(bytes([21, 3, 3, 0, 2, 2, number]))
        drain(connection)

    return act


def end(connection: socket.socket) -> None:
    """As a server that goes down."""
    drain(connection, once=True)


def reset(connection: socket.socket) -> None:
    """As a proxy before a server that is down."""
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def drain(connection: socket.socket, *, once: bool = False) -> None:
    """What is unread when a connection is closed makes it a reset."""
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536) and not once:
        pass


def ask_for_certificate(certificate: Certificate, authority: Authority, version: ssl.TLSVersion) -> Act:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    context.load_verify_locations(authority.cert)
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = context.maximum_version = version

    def act(connection: socket.socket) -> None:
        secure = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with contextlib.suppress(ssl.SSLError):
            secure.do_handshake()
        with socket.socket(fileno=secure.detach()) as plain:
            drain(plain)

    return act


@pytest.mark.parametrize(
    "act",
    [speak_http, *map(alert, (HANDSHAKE_FAILURE, UNKNOWN_AUTHORITY, PROTOCOL_VERSION))],
    ids=["http", "no cipher", "unknown authority", "another version"],
)
def test_what_is_refused_is_told_at_once(authority: Authority, slept: list[float], act: Act) -> None:
    with server(act) as address:
        error = told(address, authority)
    assert (error.reason, slept) == ("TlsFailed", [])
    assert "no secure connection came about" in str(error)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("given", ["none", "another authority's"])
def test_a_client_certificate_that_is_refused_is_told_at_once(
    authority: Authority,
    certificate: Certificate,
    slept: list[float],
    tmp_path: Path,
    version: ssl.TLSVersion,
    given: str,
) -> None:
    other = Authority(tmp_path).issue("client", "client")
    credentials = {"client_cert": str(other.cert), "client_key": str(other.key)} if given != "none" else {}
    with server(ask_for_certificate(certificate, authority, version)) as address:
        error = told(address, authority, **credentials)
    assert (error.reason, slept) == ("TlsFailed", []), error
    assert "that it accepts the client certificate" in error.remedy


@pytest.mark.parametrize("act", [end, reset, alert(INTERNAL_ERROR)], ids=["ended", "reset", "in trouble"])
def test_what_is_cut_is_tried_again(authority: Authority, slept: list[float], act: Act) -> None:
    with server(act) as address:
        error = told(address, authority)
    assert "; tried " in error.message, error
    assert sum(slept) == pytest.approx(1.0)


def test_an_authority_that_is_none_is_told_at_once(authority: Authority, slept: list[float], tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("no certificate")
    with server(end) as address:
        error = told(address, authority, ca_cert=str(tmp_path / "none.pem"))
    assert (error.reason, slept) == ("TlsFailed", [])


def test_what_another_server_has_answered_at_its_address_counts_for_nothing(
    authority: Authority, certificate: Certificate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with serving(FakeApi(), certificate) as api:
        connect_by({"host": api.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}, 10.0)
    (elsewhere := tmp_path / "next").mkdir()
    isolate(monkeypatch, elsewhere)
    with server(reset, port=int(api.url.rpartition(":")[2])) as address:
        assert "; tried " in told(address, authority).message


@pytest.mark.parametrize(("status", "lasts"), [(407, True), (403, True), (429, False), (503, False)])
def test_a_proxy_that_refuses_for_good_is_told_at_once(
    authority: Authority, slept: list[float], status: int, *, lasts: bool
) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(f"HTTP/1.1 {status} No Way\r\nContent-Length: 0\r\n\r\n".encode())
        drain(connection)

    with server(refuse) as proxy:
        address = proxy.replace("https://", "http://joe:a-secret@")
        failure = told("https://127.0.0.1:1", authority, proxy=address)
    assert ("a-secret" in str(failure), bool(slept), failure.passing) == (False, not lasts, not lasts)
    assert failure.concerns_all is lasts, "what is asked for is no affair of its"
    assert not lasts or f"the proxy on the way answered {status}, No Way. Check the proxy" in str(failure)
