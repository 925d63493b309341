# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A token that runs out while a module is at work is read once anew; if the new one is refused, that is one error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.node_topology import main

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NODES, ObjectApi

NODE = f"{NODES}/n1"
Label = Callable[[], Result]


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    fake = ObjectApi()
    fake.token = "first"  # guards nothing
    fake.add_node("n1")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Where the newest one stands."""
    path = tmp_path / "token"
    path.write_text("first")
    return path


def by_file(token: Path) -> dict[str, Any]:
    return {"tokenFile": str(token)}


def by_plugin(token: Path) -> dict[str, Any]:
    """Begun once for each line of the file beside the token."""
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "%s"}}
    script = f"echo >> {token}.read; printf '{json.dumps(answer)}' $(cat {token})"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-c", script]}}


@pytest.fixture(params=[by_file, by_plugin])
def label(
    request: pytest.FixtureRequest,
    api: ObjectApi,
    authority: Authority,
    token: Path,
    run_module: ModuleRunner,
    tmp_path: Path,
) -> Label:
    kubeconfig = write_kubeconfig(tmp_path / "config", api.url, authority.cert, request.param(token))
    topology = [{"nodes": ["n1"], "labels": {"rack": "7"}}]
    return partial(run_module, main, kubeconfig=str(kubeconfig), topology=topology)


def run_out(api: ObjectApi, token: Path, newest: str, wanted: str) -> None:
    """Once the module has read, and wants to write."""

    def meet(request: Request) -> Answer | None:
        if request.method == "GET" or api.token == wanted:
            return None
        token.write_text(newest)
        api.token = wanted
        return refusal(401, "Unauthorized", "Unauthorized")

    api.faults[NODE] = meet


def written_by(api: ObjectApi) -> list[str]:
    return [request.authorization for request in api.writes()]


def test_a_module_goes_on_with_the_newest(label: Label, api: ObjectApi, token: Path) -> None:
    run_out(api, token, "second", "second")
    assert label()["changed"]
    assert api.node("n1")["metadata"]["labels"] == {"rack": "7"}
    assert written_by(api) == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("newest", ["first", "second"])
def test_a_newest_that_is_refused_is_one_error(label: Label, api: ObjectApi, token: Path, newest: str) -> None:
    run_out(api, token, newest, "third")
    result = label()
    said = result["msg"].replace(api.url, "")  # whose port may be such a number
    assert (result["failed"], result["error"]["status"], said.count("401")) == (True, 401, 1)
    assert "Check the credentials" in result["msg"]
    assert written_by(api) == [f"Bearer {used}" for used in dict.fromkeys(("first", newest))]


@pytest.mark.parametrize("label", [by_plugin], indirect=True)
def test_a_plugin_is_begun_once_more(label: Label, api: ObjectApi, token: Path) -> None:
    run_out(api, token, "second", "third")
    label()
    assert token.with_name("token.read").read_text() == "\n" * 2
