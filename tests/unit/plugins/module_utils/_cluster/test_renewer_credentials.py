# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is renewed by credentials that a plugin gives: one that hangs, and one that is only slow."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import Invocation

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal
from unit.plugins.support.modules import isolate
from unit.plugins.support.run_api import CLUSTER, LEASES, RunApi, running
from unit.plugins.support.token_api import PAST, oidc

LEASE = f"{LEASES}/virtops-run-kernel"
# Of what comes about at once, on a busy machine.
SOON = 60.0
KIND = "client.authentication.k8s.io/v1"


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.token = "first"  # guards nothing
        yield fake


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path)
    monkeypatch.setattr(renewer, "_CREDENTIALS", 0.2)
    monkeypatch.setattr(renewer, "_RETRY", 0.1)
    monkeypatch.setattr(persistence, "BRIEF", 0.1)


def credential(token: str, expires: str | None) -> str:
    """What a plugin prints."""
    status = {"token": token, **({"expirationTimestamp": expires} if expires else {})}
    return json.dumps({"apiVersion": KIND, "kind": "ExecCredential", "status": status})


def plugin(script: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": KIND, "command": "sh", "args": ["-c", script], "interactiveMode": "Never"}}


def renewing_by(user: dict[str, Any], api: RunApi, authority: Authority, folder: Path) -> renewer.Renewer:
    """In this process, of a run that is held."""
    kubeconfig = write_kubeconfig(folder / "config", api.url, authority.cert, user)
    client = connect_by({"kubeconfig": str(kubeconfig)}, SOON, for_credentials=SOON)
    RunHold(client, "kernel", Invocation("a1"), "medik8s-leases").take(0.0)
    found = renewer.Renewer("kernel", "a1", "medik8s-leases", CLUSTER, Process.of(os.getpid()), client)
    assert found.begin()
    return found


@pytest.mark.parametrize("fault", [None, SILENCE, refusal(503, "ServiceUnavailable", "not now")])
def test_credentials_that_do_not_come_lose_the_run_in_its_time(
    api: RunApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Answer | None
) -> None:
    """Others may have theirs, and take it; not where the server is away, too. The plugin's token has always run out."""
    monkeypatch.setattr(renewer, "DURATION", 0.5)
    hangs, asked = tmp_path / "hangs", list[Request]()
    said = credential("first", PAST)
    user = plugin(f"while test -e {hangs}; do sleep 0.05; done; echo '{said}'")
    renewing = renewing_by(user, api, authority, tmp_path)

    def away(request: Request) -> Answer | None:
        asked.append(request)
        if len(asked) == 3:
            time.sleep(0.6)
            renewing.end()
        return fault

    if fault is None:
        api.token = "second"  # guards nothing
    else:
        api.faults[LEASE] = away
    hangs.mkdir()
    late = threading.Timer(SOON, renewing.end)
    late.start()
    try:
        renewing.work()
    finally:
        late.cancel()
        hangs.rmdir()
    if fault is None:
        assert renewing.lost.endswith("the command sh of the kubeconfig gave none within 0.2 seconds")
    else:
        assert (len(asked) >= 3, renewing.lost) == (True, "")


def test_an_identity_provider_that_is_away_loses_the_run_in_its_time(
    api: RunApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The API server answers, so that others may take it."""
    monkeypatch.setattr(renewer, "DURATION", 0.5)
    monkeypatch.setattr(renewer, "_CREDENTIALS", SOON)
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        provider = f"https://127.0.0.1:{taken.getsockname()[1]}"
        user = oidc("2999-01-01T00:00:00Z", provider)
        api.token = user["auth-provider"]["config"]["id-token"]
        renewing = renewing_by(user, api, authority, tmp_path)
        write_kubeconfig(tmp_path / "config", api.url, authority.cert, oidc(PAST, provider))
        api.token = "second"  # guards nothing
        late = threading.Timer(SOON, renewing.end)
        late.start()
        try:
            renewing.work()
        finally:
            late.cancel()
    assert renewing.lost.endswith(f"the identity provider {provider} gives no token: connection refused")


@pytest.mark.parametrize("expires", [PAST, None])
def test_a_plugin_that_is_only_slow_loses_nothing(
    api: RunApi, authority: Authority, tmp_path: Path, expires: str | None
) -> None:
    """Slower than it is waited for at a time: what it gives is used all the same."""
    token = tmp_path / "token"
    token.write_text(credential("first", expires))
    renewing = renewing_by(plugin(f"sleep 1; cat {token}"), api, authority, tmp_path)
    token.write_text(credential("second", expires and "2999-01-01T00:00:00Z"))
    api.token = "second"  # guards nothing

    def renewed(request: Request) -> Answer | None:
        if request.method == "PUT":
            renewing.end()
        return None

    api.faults[LEASE] = renewed
    renewing.work()
    assert (renewing.lost, LEASE in api.objects) == ("", False)
