# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide again whenever something changed or a time has come, and carry the decision out."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

import httpx

from testbed.api import ApiError, Object
from testbed.simulator.changes import Boot, Change
from testbed.simulator.client import Client, Kind, Watcher
from testbed.simulator.fault import KINDS as KINDS_OF_FAULTS
from testbed.simulator.fault import NAMESPACE, Fault, Faults
from testbed.simulator.migrating import progress
from testbed.simulator.world import Subject, World
from testbed.simulator.writer import boot, write

KINDS = {
    "VirtualMachineInstance": Kind("/apis/kubevirt.io/v1/virtualmachineinstances"),
    "Pod": Kind("/api/v1/pods", "kubevirt.io in (virt-launcher,virt-handler)"),
    "Node": Kind("/api/v1/nodes"),
    "ConfigMap": Kind(f"/api/v1/namespaces/{NAMESPACE}/configmaps"),
}
WORKERS = 8
# Seconds: before a refused or overtaken change is thought over, and between reports on migrations in flight.
RETRY, OVERTAKEN, REPORT = 1.0, 0.05, 5.0
# Seconds by which a fault can be late.
TICK = 0.1


def say(line: str) -> None:
    print(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}", flush=True)


class Loop:
    """One subject is thought over by one worker at a time; what happens to it meanwhile makes it come up again."""

    def __init__(self, client: Client, faults: Faults) -> None:
        self.client = client
        self.world = World(faults, self.mark, time.time, say)
        self.queue: asyncio.Queue[Subject] = asyncio.Queue()
        self.waiting: set[Subject] = set()
        self.busy: set[Subject] = set()
        self.timers: dict[Subject, asyncio.TimerHandle] = {}
        self.seen: set[str] = set()

    async def run(self) -> None:
        """For ever; ends when cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, kind in KINDS.items():
                group.create_task(self.follow(name, kind))
            for _worker in range(WORKERS):
                group.create_task(self.work())
            group.create_task(self.keep_time())
            group.create_task(self.report())

    async def follow(self, name: str, kind: Kind) -> None:
        def replace(objects: list[Object]) -> None:
            self.world.replace(name, objects)
            if len(self.seen) < len(KINDS):
                self.seen.add(name)
                if len(self.seen) == len(KINDS):
                    say(f"ready: watching {len(self.world.nodes)} nodes and {len(self.world.vmis)} VMIs")
                    self.world.mark_all()

        def change(event: str, obj: Object) -> None:
            (self.world.forget if event == "DELETED" else self.world.put)(obj)

        await Watcher(self.client, kind, replace, change).run()

    def mark(self, subject: Subject) -> None:
        """Something happened to the subject: think it over."""
        if len(self.seen) == len(KINDS) and subject not in self.waiting:
            self.waiting.add(subject)
            if subject not in self.busy:
                self.queue.put_nowait(subject)

    async def work(self) -> None:
        while True:
            subject = await self.queue.get()
            self.waiting.discard(subject)
            self.busy.add(subject)
            try:
                await self.think(subject)
            except (httpx.TransportError, ApiError) as error:
                say(f"{subject.kind} {subject.id}: will try again: {error or type(error).__name__}")
                self.wake(subject, RETRY)
            finally:
                self.busy.discard(subject)
                if subject in self.waiting:
                    self.queue.put_nowait(subject)

    async def think(self, subject: Subject) -> None:
        """Decide and carry out, until there is nothing to do now."""
        while True:
            if timer := self.timers.pop(subject, None):
                timer.cancel()
            decision = self.world.decide(subject)
            if decision.change is None:
                if decision.wake is not None:
                    self.wake(subject, decision.wake - time.time())
                return
            if not await self.carry_out(decision.change):
                self.wake(subject, OVERTAKEN)
                return

    async def carry_out(self, change: Change) -> bool:
        """Whether it took effect as decided; the outcome is known to the world then."""
        if isinstance(change, Boot):
            outcome: Object | None = await boot(self.client, change, time.time())
        else:
            outcome = await write(self.client, change)
        if outcome is None:
            return False
        if change.says:
            say(change.says)
        self.world.put(outcome)
        return True

    def wake(self, subject: Subject, delay: float) -> None:
        """Think the subject over after a delay in seconds."""
        if timer := self.timers.pop(subject, None):
            timer.cancel()
        self.timers[subject] = asyncio.get_running_loop().call_later(max(delay, 0), self.mark, subject)

    async def keep_time(self) -> None:
        """Faults come into force and end by the clock."""
        before: list[Fault] = []
        while True:
            await asyncio.sleep(TICK)
            active = list(self.world.faults.active(time.time(), KINDS_OF_FAULTS))
            if active != before:
                before = active
                self.world.mark_all()

    async def report(self) -> None:
        """Tell how far migrations are, as virt-launcher does in its log."""
        while True:
            await asyncio.sleep(REPORT)
            shares = [(vmi.key, progress(self.world.situation(uid), vmi)) for uid, vmi in self.world.vmis.items()]
            flying = [f"{key} {share:.0%}" for key, share in shares if share is not None]
            if flying:
                say(f"migrating: {', '.join(flying)}")
