# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator as a process, and its watches when they cannot go on."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys

import pytest

from integration.simulator.lab import Lab
from testbed.api import Object
from testbed.home import PACKAGE
from testbed.simulator.client import Client, Kind, Watcher

NODES = Kind("/api/v1/nodes")
# Its type came after the API server, which knows no event of before.
KUBEVIRTS = Kind("/apis/kubevirt.io/v1/kubevirts")
SECONDS = 30


class Seen:
    """What a watcher tells."""

    def __init__(self, lab: Lab, kind: Kind, version: str) -> None:
        self.client = Client(lab.testbed.kubeconfig)
        self.watcher = Watcher(self.client, kind, self.replace, self.change)
        self.watcher.version = version
        self.lists: list[set[str]] = []
        self.changed: list[str] = []
        self.news = asyncio.Event()

    def replace(self, objects: list[Object]) -> None:
        self.lists.append({obj["metadata"]["name"] for obj in objects})
        self.news.set()

    def change(self, _event: str, obj: Object) -> None:
        self.changed.append(obj["metadata"]["name"])
        self.news.set()

    async def run(self) -> None:
        """Until the first news."""
        task = asyncio.create_task(self.watcher.run())
        try:
            await asyncio.wait_for(self.news.wait(), SECONDS)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.client.close()


def test_an_expired_watch_lists_again(lab: Lab) -> None:
    async def watch() -> Seen:
        seen = Seen(lab, KUBEVIRTS, "1")  # "too old resource version"
        await seen.run()
        return seen

    seen = asyncio.run(watch())
    there = {item["metadata"]["name"] for item in lab.api.items(KUBEVIRTS.path)}
    assert there
    assert (seen.lists, seen.changed) == ([there], [])


def test_a_watch_goes_on_from_where_it_was(lab: Lab) -> None:
    version = lab.api.get(NODES.path, limit=1)["metadata"]["resourceVersion"]
    lab.api.patch(f"{NODES.path}/{lab.nodes[0]}", {"metadata": {"labels": {"touched": version}}})

    async def watch() -> Seen:
        seen = Seen(lab, NODES, version)
        await seen.run()
        return seen

    seen = asyncio.run(watch())
    assert not seen.lists
    assert seen.changed


@pytest.mark.usefixtures("nodes")
def test_it_says_that_it_is_ready_and_ends_when_asked(lab: Lab) -> None:
    command = [sys.executable, "-m", "testbed.simulator", "--kubeconfig", str(lab.testbed.kubeconfig)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(PACKAGE.parent)}
    ) as process:
        assert process.stdout is not None
        assert "ready: watching" in process.stdout.readline()
        process.terminate()
        assert process.wait(SECONDS) == 0
