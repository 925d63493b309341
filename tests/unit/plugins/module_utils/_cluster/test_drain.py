# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain that ends without an empty node leaves nothing half done."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command, Interrupt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Blocked

from unit.plugins.module_utils._cluster.test_plan_run import TAKEN, Hours, Slow
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
class Busy(Asked):
    """Refuses all for a moment."""

    def carry_out(self, commands: Collection[Command], *_may: Any, **_once: Any) -> tuple[list[Answer], None]:
        self.commands += commands
        return [Answer(command, "the server is busy", passing=True) for command in commands], None


@dataclass
class Lagging(Slow):
    """`now`: what is seen by lists read anew, and from then on."""

    now: Observation = field(kw_only=True)

    def forget(self) -> None:
        self.looks = [self.now]


@dataclass
class Remembered:
    """What another process has left: a stop that was refused for a moment, and a pod that never leaves."""

    record: Record

    def recall(self, _record: Record, _now: float) -> Record:
        return self.record

    def keep(self, record: Record) -> None: ...


FAILED = replace(Evicting.begin(STAYS), outcome="failed", refusal="never")
REFUSED = replace(Interrupting.begin(STOP), begun_at=1.0, asked_at=1.0, reason="the server is busy")
WEB = seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm")


def drain_by(scene: Slow, verbs: Any, replan: Any = None) -> NodeDrain:
    """One that another process has left with a stop that waits in vain, and may have left a mark."""
    given, scene.hours = plan(STAYS, STOP), Hours()
    return NodeDrain(
        Means(scene, verbs, lambda _nodes: None, scene, scene.hours),
        Execution("n1", "run-1"),
        given,
        planned=given,
        replan=replan,
        memory=Remembered(Record({STAYS.id: FAILED, STOP.id: REFUSED})),
        retries=0,
    )


def test_a_stop_that_waits_in_vain_is_taken_back_before_its_drain_is_lost() -> None:
    """Its mark would let its VM be started again, also if its owner stops it from then on."""
    drain = drain_by(Slow([look(seen_pod("stays"), WEB)]), asked := Asked())
    drain.run(60.0)
    (command,) = asked.commands
    assert isinstance(command, Interrupt)
    assert (command.action, command.begins) == (STOP.id, False)
    assert (drain.is_lost, drain.record.has_acted) == (True, False)


def test_what_leaves_while_a_stop_is_taken_back_is_seen_before_its_drain_is_lost() -> None:
    """The watch may lag behind the answer."""
    scene = Lagging([look(seen_pod("stays"), WEB)], now=look(seen_pod("stays", ending=True), WEB))
    drain = drain_by(scene, Asked())
    steps = drain.steps(60.0)
    for _step in range(10):
        next(steps)
    assert (drain.is_lost, drain.execution.begins) == (False, True)


def test_something_begins_again_when_another_plan_is_made_after_all() -> None:
    """Each step may make one, as long as something may change by itself and a step takes longer than a plan."""
    new = action(ActionKind.EVICT, pod("new"), "n1")
    waits = Blocked(vm("late"), "n1", ("there is no room for now",), passing=True)
    there = look(seen_pod("stays"), WEB)
    more = look(seen_pod("stays"), seen_pod("new"), WEB, seen_vmi("late"))
    drain = drain_by(
        Slow([there, there, more]), busy := Busy(), lambda *_state: plan(STAYS, STOP, new, blocked=(waits,))
    )
    drain.run(30.0)
    assert new.id in {command.action for command in busy.commands}


@dataclass
class Uncordoned(Lagging):
    """Somebody uncordons the node while it is looked at anew."""

    is_ours: bool = True

    def forget(self) -> None:
        self.is_ours = False

    def guard(self, _nodes: Collection[str]) -> None:
        if not self.is_ours:
            raise TAKEN


def test_a_node_that_is_uncordoned_during_the_last_look_at_it_is_not_called_empty() -> None:
    """Whoever stands still between that look and its end would hear of it late."""
    drain = drain_by(scene := Uncordoned([look()], now=look()), Asked())
    drain.means, drain.memory = replace(drain.means, guard=scene.guard), Remembered(Record({STAYS.id: FAILED}))
    drain.plan = drain.planned = plan(STAYS)
    with pytest.raises(Failure, match="somebody has uncordoned it"):
        drain.run(60.0)
    assert not drain.is_over
