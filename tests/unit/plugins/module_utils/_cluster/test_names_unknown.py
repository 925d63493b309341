# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of the server is not known any more, as after a lost VPN: waited for by whom it has led there before."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import SILENCE
from unit.plugins.support.modules import isolate
from unit.plugins.support.object_api import ObjectApi
from unit.plugins.support.token_api import NODE, forget, give, read, taking_a_token, write

LONG = 60.0


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectApi]:
    monkeypatch.setattr(persistence, "READING", LONG)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    with taking_a_token(authority, "localhost") as fake:
        yield fake


@pytest.fixture
def kubeconfig(api: ObjectApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    isolate(monkeypatch, tmp_path)
    url = api.url.replace("127.0.0.1", "localhost")
    return write_kubeconfig(tmp_path / "config", url, authority.cert, {"token": "first"})


@pytest.fixture
def client(kubeconfig: Path) -> Client:
    return connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))


class Names:
    """Knows none the next few times, and counts these."""

    def __init__(self, error: int, times: int) -> None:
        self.left = times
        self._error, self._known = error, socket.getaddrinfo

    def __call__(self, *given: Any, **more: Any) -> Any:
        if self.left > 0:
            self.left -= 1
            raise socket.gaierror(self._error, "Name or service not known")
        return self._known(*given, **more)


@pytest.mark.parametrize("error", [socket.EAI_NONAME, socket.EAI_FAIL])
@pytest.mark.parametrize("ask", [read, write])
def test_a_name_that_is_lost_in_mid_task_is_waited_for(
    client: Client, api: ObjectApi, monkeypatch: pytest.MonkeyPatch, error: int, ask: Callable[[Client], Any]
) -> None:
    read(client)
    names = Names(error, 3)

    def cut(_request: object) -> Any:
        api.faults.clear()
        monkeypatch.setattr(socket, "getaddrinfo", names)
        return SILENCE

    api.faults[NODE] = cut
    assert ask(client) == {"old": "1"}
    assert names.left == 0


def test_a_name_that_is_lost_while_credentials_are_read_anew_is_waited_for(
    client: Client, api: ObjectApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(client)
    forget(kubeconfig)
    api.token = "second"
    give(kubeconfig, token="second")
    names = Names(socket.EAI_NONAME, 3)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    assert read(client) == {"old": "1"}
    assert names.left == 0


def test_a_name_that_has_led_there_for_others_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To connect asks for nothing then, as it is remembered what the server offers."""
    names = Names(socket.EAI_NONAME, 3)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    again = connect_by(dict(client._line._dialler._options), LONG, Persistence(LONG))
    with pytest.raises(Failure, match="the host's name cannot be resolved"):
        read(again)
    assert names.left == 2


@pytest.mark.parametrize(
    ("proxy", "words"),
    [(None, "the host's name cannot be resolved"), ("http://proxy.invalid:3128", "the name of the proxy on the way")],
)
def test_a_name_that_has_led_nowhere_is_told_at_once(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, proxy: str | None, words: str
) -> None:
    names = Names(socket.EAI_NONAME, 3)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    with pytest.raises(Failure, match=words):
        connect_by({"kubeconfig": str(kubeconfig), "proxy": proxy}, LONG, Persistence(LONG))
    assert names.left == 2
