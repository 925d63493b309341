# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed that integration tests share.

A run makes a testbed of its own and takes it down at its end, so that several runs can go side by side.
`VIRTOPS_TESTBED=NAME` makes the tests use one that is up already, which spares the start while one works on a test.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.draining import Yard
from testbed import cluster, waiting
from testbed.api import Api
from testbed.handle import RunningTestbed
from testbed.home import Home, cache
from unit.plugins.support.modules import ModuleRunner, isolate

TIME_SCALE = 60.0
# Begun before all others: a worker that came to these at the end would be at them alone for a quarter of an hour.
LONGEST = "test_server_away.py"
waiting.patience = 5.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != LONGEST)


@pytest.fixture(scope="session")
def testbed(request: pytest.FixtureRequest) -> Iterator[RunningTestbed]:
    given = os.environ.get("VIRTOPS_TESTBED")
    home = Home(given or f"pytest-{os.getpid()}")
    if not given:
        cluster.up(home, time_scale=TIME_SCALE, seed=0, owner_pid=os.getpid())
    with Api(home.kubeconfig()) as api:
        yield RunningTestbed(home, api)
    if request.session.testsfailed:
        tell(request, f"logs: {keep_logs(home)}")
    if not given:
        cluster.down(home)


@pytest.fixture(scope="module")
def yard(request: pytest.FixtureRequest, testbed: RunningTestbed) -> Iterator[Yard]:
    """Nodes that a module of tests has for itself, by the names that stand in its NODES."""
    with Yard.standing(testbed, request.module.NODES) as yard:
        yield yard


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleRunner:
    """Run a module in this process, as Ansible would."""
    isolate(monkeypatch, tmp_path)
    return ModuleRunner(capsys)


def keep_logs(home: Home) -> Path:
    """A folder with what the parts of a testbed have said, for whoever wants to know why a test failed."""
    folder = Path(tempfile.mkdtemp(prefix=f"{home.name}-", dir=_made(cache() / "logs")))
    shutil.copytree(home.logs, folder, dirs_exist_ok=True)
    return folder


def tell(request: pytest.FixtureRequest, line: str) -> None:
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter:  # which a worker beside others has not
        reporter.write_line(f"\n{line}")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def namespace(testbed: RunningTestbed) -> Iterator[str]:
    """A namespace that goes with the test, and everything in it."""
    name = testbed.namespace()
    yield name
    testbed.drop_namespace(name)
