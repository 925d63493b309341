# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain that ends without an empty node leaves nothing half done."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command, Interrupt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._cluster.test_plan_run import Slow
from unit.plugins.module_utils._execution.moments import look, seen_pod, seen_vmi
from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

STAYS = action(ActionKind.EVICT, pod("stays"), "n1")
STOP = replace(action(ActionKind.STOP, vm("web"), "n1"), after=(STAYS.id,))


@dataclass
class Asked:
    """Takes everything back that it is asked about."""

    server: str = "server"
    commands: list[Command] = field(default_factory=list)

    def carry_out(self, commands: Collection[Command], *_may: Any, **_once: Any) -> tuple[list[Answer], None]:
        self.commands += commands
        words = "it is not to end any more"
        return [Answer(command, words, passing=True, needless=True, spared=True) for command in commands], None


@dataclass
class Remembered:
    """What another process has left: a stop that was refused for a moment, and a pod that never leaves."""

    record: Record

    def recall(self, _record: Record, _now: float) -> Record:
        return self.record

    def keep(self, record: Record) -> None: ...


def test_a_stop_that_waits_in_vain_is_taken_back_before_its_drain_is_lost() -> None:
    """Its mark would let its VM be started again, also if its owner stops it from then on."""
    stop = replace(Interrupting.begin(STOP), begun_at=1.0, asked_at=1.0, reason="the server is busy")
    failed = replace(Evicting.begin(STAYS), outcome="failed", refusal="never")
    there = look(seen_pod("stays"), seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm"))
    scene, asked, given = Slow([there]), Asked(), plan(STAYS, STOP)
    drain = NodeDrain(
        Means(scene, asked, lambda _nodes: None, scene, scene.hours),
        Execution("n1", "run-1"),
        given,
        planned=given,
        replan=cast(Any, None),
        memory=Remembered(Record({STAYS.id: failed, STOP.id: stop})),
        retries=0,
    )
    drain.run(60.0)
    (command,) = asked.commands
    assert isinstance(command, Interrupt)
    assert (command.action, command.begins) == (STOP.id, False)
    assert (drain.is_lost, drain.record.has_acted) == (True, False)
