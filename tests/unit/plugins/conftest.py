# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence

from testbed.pki import Authority
from unit.plugins.support.fake_api import FakeApi, serving
from unit.plugins.support.modules import ModuleRunner, isolate
from unit.plugins.support.objects import kubevirt, named


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly anything is sent again, unless a test is about that: most are about what follows."""
    monkeypatch.setattr(persistence, "READING", 0.0)
    monkeypatch.setattr(persistence, "BRIEF", 0.0)


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleRunner:
    isolate(monkeypatch, tmp_path)
    return ModuleRunner(capsys)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def api(authority: Authority) -> Iterator[FakeApi]:
    """A cluster with KubeVirt, and nothing else in it."""
    fake = FakeApi()
    fake.lists["kubevirts"] = [kubevirt()]
    fake.lists["namespaces"] = [named("default"), named("kube-system")]
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])) as running:
        yield running


@pytest.fixture
def connection(api: FakeApi, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """Arguments that reach the cluster, and nothing that is known of another one."""
    isolate(monkeypatch, tmp_path)
    return {"host": api.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}
