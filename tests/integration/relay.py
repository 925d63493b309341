# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server that is away at first: a relay that refuses so many connections before it lets any through."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml

_CHUNK = 2**16


class Relay(socketserver.ThreadingTCPServer):
    """`refused`: how many connections it has refused."""

    def __init__(self, server: tuple[str, int], refuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.api_server, self.refuses, self.refused = server, refuses, 0

    def verify_request(self, request: object, client_address: object) -> bool:
        if self.refused == self.refuses:
            return True
        self.refused += 1
        return False


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Relay)
        with contextlib.suppress(OSError), socket.create_connection(self.server.api_server) as other:
            ends = {self.request: other, other: self.request}
            while True:
                for source in select.select(list(ends), [], [])[0]:
                    chunk = source.recv(_CHUNK)
                    if not chunk:
                        return
                    ends[source].sendall(chunk)


@contextmanager
def relayed(kubeconfig: Path, folder: Path, refuses: int) -> Iterator[tuple[Path, Relay]]:
    """A kubeconfig that leads to the API server of another one, through the relay."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    server = urlsplit(cluster["server"])
    with Relay((str(server.hostname), int(server.port or 443)), refuses) as relay:
        thread = threading.Thread(target=relay.serve_forever)
        thread.start()
        cluster["server"] = f"https://127.0.0.1:{relay.server_address[1]}"
        path = folder / "relay.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)
        try:
            yield path, relay
        finally:
            relay.shutdown()
            thread.join()
