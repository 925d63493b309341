# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials that take long, or never come: named in time, begun anew, and used when they come late."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, dialling, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import SILENCE
from unit.plugins.support.modules import isolate
from unit.plugins.support.object_api import ObjectApi
from unit.plugins.support.token_api import NODE, exec_by, forget, give, printed, read, taking_a_token

# In seconds; what is to come about comes about in it, however slow the machine is.
LONG = 60.0


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


def test_a_plugin_that_hangs_in_mid_task_is_named_in_time(
    kubeconfig: Path, tmp_path: Path, api: ObjectApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token has always run out already. Asked for twice, it is begun once, and again when it has ended."""
    monkeypatch.setattr(persistence, "BRIEF", 0.5)
    hanging, begun = tmp_path / "hanging", tmp_path / "begun"
    hang = f"echo >> {begun}; while test -e {hanging}; do sleep 0.05; done"
    give(kubeconfig, **exec_by(f"{hang}; {printed('first')}"))
    connected = connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))
    assert read(connected) == {"old": "1"}
    connected.hurry_credentials(0.2)
    give(kubeconfig, **exec_by(f"{hang}; {printed('second')}"))
    hanging.mkdir()
    assert read(connected.briefly()) == {"old": "1"}, "the server takes the old one for a while"
    api.token = "second"
    asked, before = len(api.requests), begun.read_text()
    for _attempt in range(2):
        with pytest.raises(Failure, match=r"the command sh of the kubeconfig gave none within 0\.2 seconds") as told:
            read(connected.briefly())
        assert (told.value.reason, told.value.passing) == ("CredentialsLate", True)
    assert {request.authorization for request in api.requests[asked:]} == {"Bearer first"}
    assert begun.read_text() in (before, f"{before}\n")  # it may not have come to say so yet
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(read, connected)
        connected.hurry_credentials(LONG)
        hanging.rmdir()
        assert waiting.result(LONG) == {"old": "1"}, "as a server is that is away"


def test_a_plugin_that_hangs_for_good_is_begun_anew(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a connection that is dead, when others get their token."""
    monkeypatch.setattr(dialling, "_HANGS_FOR_GOOD", 0.5)
    hangs, over = tmp_path / "hangs", tmp_path / "over"
    hang = f"if rmdir {hangs} 2>/dev/null; then while ! test -e {over}; do sleep 0.05; done; fi"
    give(kubeconfig, **exec_by(f"{hang}; {printed('first')}"))
    connected = connect_by({"kubeconfig": str(kubeconfig)}, LONG, Persistence(LONG))
    connected.patience = 2.0
    hangs.mkdir()
    try:
        assert read(connected) == {"old": "1"}
        assert not hangs.exists()
    finally:
        over.touch()


def test_credentials_may_take_longer_than_a_request(kubeconfig: Path, api: ObjectApi) -> None:
    """A plugin that asks for a token elsewhere; with a second it would be too late."""
    give(kubeconfig, **exec_by(f"sleep 2; {printed('first', '2999-01-01T00:00:00Z')}"))
    with pytest.raises(Failure, match=r"gave none within 1 seconds"):
        connect_by({"kubeconfig": str(kubeconfig)}, 1.0, Persistence(LONG))
    client = connect_by({"kubeconfig": str(kubeconfig)}, 1.0, Persistence(LONG), for_credentials=LONG)
    assert client.server == api.url


@pytest.mark.parametrize(
    ("first", "is_cut", "forgets"),
    [
        ("while ! test -e {over}; do sleep 0.05; done", True, False),
        ("sleep 1.2; exit 1", False, False),
        ("sleep 1.2; exit 1", False, True),
    ],
    ids=["hangs on the connection that was cut", "gives up late", "gives up late, and the server is asked anew"],
)
def test_a_plugin_is_asked_anew_at_once(
    kubeconfig: Path,
    client: Client,
    tmp_path: Path,
    api: ObjectApi,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    is_cut: bool,
    forgets: bool,
) -> None:
    monkeypatch.setattr(dialling, "_HANGS_FOR_GOOD", 10 * LONG)
    once, over = tmp_path / "once", tmp_path / "over"
    once.mkdir()
    give(kubeconfig, **exec_by(f"if rmdir {once}; then {first.format(over=over)}; fi; {printed('second')}"))
    api.token = "second"
    client.patience = 0.8
    monkeypatch.setattr(persistence, "BRIEF", 0.0)
    with pytest.raises(Failure, match="the command sh of the kubeconfig gave none"):
        read(client.briefly())
    client.patience = LONG
    if forgets:
        forget(kubeconfig)
    if is_cut:
        api.token, api.faults[NODE] = "", lambda _request: SILENCE
        with pytest.raises(Failure, match="the connection was lost"):
            read(client.briefly())
        api.faults.clear()
        api.token = "second"
    try:
        assert read(client) == {"old": "1"}
    finally:
        over.touch()


@pytest.mark.parametrize("is_disturbed", [False, True])
def test_what_came_late_is_not_the_last_word(
    client: Client, kubeconfig: Path, api: ObjectApi, monkeypatch: pytest.MonkeyPatch, is_disturbed: bool
) -> None:
    """Two readings that come late, one after the other, and others that ask by what is no reading of the settings."""
    read(client)
    dialler = client._line._dialler
    former = [dialler._settings(), dialler._settings()]
    for settings in former:
        late = dialling._Late(dialler._settings, Thread(target=print), [(settings, clock.now())])
        dialler._late.append(late)
    give(kubeconfig, token="second")
    api.token = "second"
    if is_disturbed:
        dialled = dialler.dialled

        def disturbed(seconds: float) -> Any:
            found = dialled(seconds)
            dialler.read(lambda: None, seconds)
            return found

        monkeypatch.setattr(dialler, "dialled", disturbed)
    assert read(client) == {"old": "1"}
