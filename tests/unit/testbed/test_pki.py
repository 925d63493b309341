# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import ssl
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from testbed import pki
from testbed.api import ssl_context


def serve_once(context: ssl.SSLContext, listener: socket.socket, seen: list[object]) -> None:
    connection, _address = listener.accept()
    try:
        with context.wrap_socket(connection, server_side=True) as secure:
            seen.append(secure.getpeercert())
            secure.sendall(b"hello")
    except ssl.SSLError as error:
        seen.append(error)


def greet(server: pki.Certificate, authority: pki.Authority, client: ssl.SSLContext) -> tuple[bytes, object]:
    """What a client hears from a server that asks for certificates, and what the server learned of the client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.cert))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(server.cert, server.key)
    seen: list[object] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=serve_once, args=(context, listener, seen))
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname()) as plain,
                client.wrap_socket(plain, server_hostname="localhost") as secure,
            ):
                said = secure.recv(100)
        finally:
            thread.join()
    return said, seen[0]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> tuple[pki.Authority, dict[str, object]]:
    authority = pki.Authority(tmp_path)
    user = authority.issue("user", "somebody", ["some:group"])
    path = pki.write_kubeconfig(tmp_path / "user.yaml", "https://localhost", authority.cert, pki.certificate_user(user))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return authority, yaml.safe_load(path.read_text())


def test_client_and_server_accept_each_other(kubeconfig: tuple[pki.Authority, dict[str, object]]) -> None:
    authority, config = kubeconfig
    client = ssl_context(config)
    # What Python 3.13 does by default.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server = authority.issue("server", "server", hosts=("localhost", "127.0.0.1"))
    said, peer = greet(server, authority, client)
    assert said == b"hello"
    assert isinstance(peer, dict)
    assert peer["subject"] == ((("organizationName", "some:group"),), (("commonName", "somebody"),))


def test_a_client_certificate_is_no_server_certificate(kubeconfig: tuple[pki.Authority, dict[str, object]]) -> None:
    authority, config = kubeconfig
    imposter = authority.issue("imposter", "localhost")
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(imposter, authority, ssl_context(config))


def test_another_authority_is_not_trusted(kubeconfig: tuple[pki.Authority, dict[str, object]], tmp_path: Path) -> None:
    authority, config = kubeconfig
    (tmp_path / "other").mkdir()
    other = pki.Authority(tmp_path / "other")
    server = other.issue("server", "server", hosts=("localhost",))
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(server, authority, ssl_context(config))


def test_every_file_is_private(kubeconfig: tuple[pki.Authority, dict[str, object]], tmp_path: Path) -> None:
    pki.signing_key(tmp_path)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
