# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The testbed's own promises: it comes up on loopback, side by side, says what died, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from testbed import cli, cluster, processes
from testbed.api import Api, ApiError
from testbed.handle import RunningTestbed
from testbed.home import PACKAGE, Home, existing


@pytest.fixture
def home() -> Iterator[Home]:
    """A further testbed's folder; whatever a test leaves in it goes."""
    home = Home(f"extra-{os.getpid()}")
    yield home
    cluster.down(home)


def start(home: Home, owner: int | None = None) -> None:
    cluster.up(home, time_scale=60, seed=0, owner_pid=owner)


def listening(process: psutil.Process) -> set[str]:
    return {c.laddr.ip for c in process.net_connections(kind="tcp") if c.status == psutil.CONN_LISTEN}


@pytest.mark.gate
def test_all_parts_listen_on_loopback_only(testbed: RunningTestbed) -> None:
    live = processes.running(testbed.home)
    assert set(live) == set(cluster.NAMES)
    addresses = set().union(*(listening(process) for process in live.values()))
    assert addresses <= {"127.0.0.1", "::1"}


def test_two_side_by_side_and_down_leaves_nothing(testbed: RunningTestbed, home: Home) -> None:
    start(home)
    assert list(home.temporary.iterdir()), "parts leave temporary files, which are to lie in the testbed's folder"
    first, second = testbed.home.settings(), home.settings()
    assert first
    assert second
    assert not set(first.ports.values()) & set(second.ports.values())
    with Api(home.kubeconfig()) as other:
        other.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "only-here"}})
    with pytest.raises(ApiError, match='namespaces "only-here" not found'):
        testbed.api.get("/api/v1/namespaces/only-here")

    assert cluster.down(home)
    assert not home.root.exists()
    assert not cluster.lock_file(home).exists()
    assert not processes.running(home)
    assert set(processes.running(testbed.home)) == set(cluster.NAMES), "the other testbed is untouched"
    assert not cluster.down(home), "a second down finds nothing"


def test_up_again_changes_nothing_and_a_dead_part_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    start(home)
    before = {name: process.pid for name, process in processes.running(home).items()}
    start(home)
    assert {name: process.pid for name, process in processes.running(home).items()} == before
    assert "is up already" in capsys.readouterr().err

    victim = processes.running(home)["kube-scheduler"]
    victim.kill()
    psutil.wait_procs([victim], timeout=5)
    assert cli.main(["--name", home.name, "status"]) == 1
    said = capsys.readouterr().out
    assert f"kube-scheduler of testbed {home.name} is not running; its last lines:" in said
    assert "Starting Kubernetes Scheduler" in said

    start(home)
    assert "kube-scheduler" in capsys.readouterr().err
    assert set(processes.running(home)) == set(cluster.NAMES)


def test_what_a_killed_up_left_is_removed_by_the_next(home: Home, testbed: RunningTestbed) -> None:
    left = Home(f"killed-{os.getpid()}")
    command = [sys.executable, "-m", "testbed", "--name", left.name, "up"]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)}, stderr=subprocess.DEVNULL
    ) as starting:
        deadline = time.monotonic() + 60
        while "kube-apiserver" not in processes.running(left):
            assert starting.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        starting.send_signal(signal.SIGKILL)
    assert processes.running(left)

    start(home)
    assert not processes.running(left)
    assert left not in existing()
    assert testbed.home in existing()


def test_a_testbed_goes_with_its_owner(home: Home) -> None:
    owned = Home(f"owned-{os.getpid()}")
    with subprocess.Popen(["sleep", "600"]) as owner:
        start(owned, owner=owner.pid)
        cluster.remove_stale(except_for=home)
        assert set(processes.running(owned)) == set(cluster.NAMES)
        owner.kill()
    cluster.remove_stale(except_for=home)
    assert not processes.running(owned)
    assert owned not in existing()


def test_service_account_has_only_its_own_rights(testbed: RunningTestbed, capsys: pytest.CaptureFixture[str]) -> None:
    testbed.run("kubeconfig", "--service-account", "least/privileged")
    path = capsys.readouterr().out.strip()
    with Api(path) as api:
        review = api.create(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        )
        assert review["status"]["userInfo"]["username"] == "system:serviceaccount:least:privileged"
        with pytest.raises(ApiError, match="cannot list resource") as denied:
            api.get("/api/v1/nodes")
    assert denied.value.status == 403
    assert Path(path).stat().st_mode & 0o777 == 0o600
