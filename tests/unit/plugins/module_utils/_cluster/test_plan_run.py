# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look has shown is told, whatever becomes of the step after it; and time is that of the clock that is given."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import Verbs
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command, Evict
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import look, seen_pod, seen_vmi
from unit.plugins.module_utils._plan.plans import action, plan, pod, refused, vm

EVICT = action(ActionKind.EVICT, pod("cache"), "n1")
STAYS = seen_pod("cache", ending=True)
AWAY = Failure("read node n1", "server", "no answer came", "Wait.", unanswered=True)
TAKEN = Failure("drain node n1", "server", "somebody has uncordoned it", "Find out who.", reason="NotCordoned")


@dataclass
class Scene:
    """One that looks and tells for a run. `looks`: what is seen, one after the other; the last one stays."""

    looks: list[Observation]
    told: list[str] = field(default_factory=list)

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None: ...

    def look(self, questions: Questions, seconds: float) -> Observation:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def forget(self) -> None: ...

    def tell(self, line: str) -> None:
        self.told.append(line)

    def detail(self, line: str) -> None: ...

    def totals(self, text: str) -> None: ...

    def stands(self, standing: Standing) -> None: ...


@pytest.mark.parametrize("trouble", [AWAY, TAKEN])
def test_what_was_seen_is_told_also_when_nothing_more_may_be_done(
    monkeypatch: pytest.MonkeyPatch, trouble: Failure
) -> None:
    monkeypatch.setattr(plan_run, "_PAUSE_AFTER_TROUBLE", 0.01)
    scene, troubles = Scene([look(STAYS), look()]), [None, trouble]
    verbs: Any = None

    def guard(_nodes: Collection[str]) -> None:
        if error := troubles.pop(0) if troubles else None:
            raise error

    run = PlanRun(Means(scene, verbs, guard, scene), Execution(node="n1", run="run-1"), plan(EVICT))
    monkeypatch.setattr(plan_run, "_QUIET", 0.0)  # each step asks the guard
    ends: Any = nullcontext() if trouble.passing else pytest.raises(Failure, match="somebody has uncordoned it")
    with ends:
        run.run(10)
    assert scene.told == ["pod shop/cache: gone already"]


class Hours(Clock):
    """A clock on which time passes in sleep only."""

    def __init__(self) -> None:
        self.passed = 0.0

    def since_epoch(self) -> float:
        return self.passed

    def steady(self) -> float:
        return self.passed

    def now(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


def test_it_goes_by_the_clock_that_it_is_given() -> None:
    scene, hours = Scene([look(STAYS)]), Hours()
    verbs: Any = None

    def guard(_nodes: Collection[str]) -> None:
        raise AWAY

    run = PlanRun(Means(scene, verbs, guard, scene, hours), Execution(node="n1", run="run-1"), plan(EVICT))
    run.run(100)
    assert (hours.passed, run.is_over, run.trouble) == (100.0, False, AWAY)


class Skipping:
    """Asks for nothing, as something else had no answer."""

    server = "server"

    def carry_out(
        self, commands: Collection[Command], may: Callable[[], None], *, once: bool
    ) -> tuple[list[Answer], Failure]:
        return [Answer(command, unasked=True) for command in commands], AWAY


@pytest.mark.parametrize("troubles", [[AWAY], []], ids=["the guard has no answer", "another command has none"])
def test_what_nobody_was_asked_for_has_not_begun(troubles: list[Failure]) -> None:
    """A stop was decided on; at the next look its VM can be migrated."""
    fixed = seen_vmi("db", owner_kind=VM, owner="db", owner_uid="uid-vm", is_refused=True)
    scene, hours = Scene([look(fixed), look(replace(fixed, is_refused=False))]), Hours()
    left = list(troubles)
    hours.sleep(1000.0)

    def guard(_nodes: Collection[str]) -> None:
        if left:
            raise left.pop()

    stop = refused(action(ActionKind.STOP, vm("db"), "n1"))
    verbs: Any = Skipping()
    run = PlanRun(Means(scene, verbs, guard, scene, hours), Execution(node="n1", run="run-1"), plan(stop))
    steps = run.steps(30)
    for _step in range(3):
        next(steps)
    entry = run.record.entries[stop.id]
    assert isinstance(entry, Interrupting)
    assert (entry.outcome, entry.begun_at, entry.is_doubtful) == ("waiting", 0.0, True)


def test_what_may_not_be_done_any_more_was_asked_for_by_nobody() -> None:
    asking: Any = SimpleNamespace(server="server", guarded=lambda _may: asking, briefly=lambda _may=None: asking)

    def may() -> None:
        raise AWAY

    command = Evict("1.evict.shop/cache", "shop", "cache", "uid-cache")
    answers, trouble = Verbs(asking, VerbSettings(run="run-1", unschedulable_timeout=5)).carry_out([command], may)
    assert (answers, trouble) == ([Answer(command, unasked=True)], AWAY)


class Counting(Scene):
    """Notes how long each look may take, and shows what there is at that time."""

    def __init__(self, clock: Hours, ending_at: float) -> None:
        super().__init__([])
        self.clock, self.ending_at, self.waits = clock, ending_at, list[float]()

    def look(self, questions: Questions, seconds: float) -> Observation:
        self.waits.append(seconds)
        self.clock.sleep(seconds)
        return look(seen_pod("cache", ending=self.clock.passed >= self.ending_at))


def test_what_takes_long_is_looked_at_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice a second at first and whenever something has happened, every five seconds in the end."""
    hours = Hours()
    scene = Counting(hours, ending_at=60.0)

    class Deaf:
        server = "server"

        def carry_out(self, commands: Collection[Command], may: object, *, once: bool) -> tuple[list[Answer], None]:
            return [Answer(command, refused="a budget", passing=True) for command in commands], None

    means = Means(scene, cast(Any, Deaf()), lambda _nodes: None, scene, hours)
    PlanRun(means, Execution(node="n1", run="run-1"), plan(EVICT)).run(100)
    assert scene.waits[:3] == [0.5, 0.5, 0.75]
    *waits, _rest = scene.waits
    (anew,) = (number for number in range(1, len(waits)) if waits[number] < waits[number - 1])
    assert (sum(waits[:anew]) >= 60.0, waits[anew], max(waits)) == (True, 0.5, 5.0)
    assert len(waits) < 40, "it would be 200 by two a second"


class Restless(Hours):
    """A clock on which a second passes whenever it is looked at."""

    def steady(self) -> float:
        self.passed += 1.0
        return self.passed

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0.0
        super().sleep(seconds)


class Sleeping(Scene):
    """Each look takes as long as it may."""

    clock = Restless()

    def look(self, questions: Questions, seconds: float) -> Observation:
        self.clock.sleep(seconds)
        return super().look(questions, seconds)


@pytest.mark.parametrize("seconds", [1.5, 2.5, 3.5, 4.5])
def test_a_look_is_not_to_take_less_than_no_time(seconds: float) -> None:
    """As the time may be over right after it was seen that it is not."""
    scene, verbs = Sleeping([look(STAYS)]), cast(Any, None)
    scene.clock = Restless()
    means = Means(scene, verbs, lambda _nodes: None, scene, scene.clock)
    PlanRun(means, Execution(node="n1", run="run-1"), plan(EVICT)).run(seconds)


def lost(**more: Any) -> Failure:
    return Failure("read node n1", "server", "no answer came", "Wait.", unanswered=True, **more)


class Slow(Scene):
    """Each look takes a second."""

    hours = Hours()

    def look(self, questions: Questions, seconds: float) -> Observation:
        self.hours.sleep(1.0)
        return super().look(questions, seconds)


def enduring(troubles: Callable[[float], Failure | None]) -> tuple[PlanRun, list[str]]:
    """What has gone on for 100 seconds, and was told of trouble. troubles: of which moment."""
    scene, verbs = Slow([look(STAYS)]), cast(Any, None)
    scene.hours = Hours()

    def guard(_nodes: Collection[str]) -> None:
        if error := troubles(scene.hours.passed):
            raise error

    run = PlanRun(Means(scene, verbs, guard, scene, scene.hours), Execution(node="n1", run="run-1"), plan(EVICT))
    run.run(100)
    return run, [line for line in scene.told if "Trying again" in line]


def test_a_server_that_stays_away_is_told_once_and_in_the_end_how_often() -> None:
    run, told = enduring(lambda _now: lost(since="02:14:07", tries=3))
    assert told == [f"{AWAY} Trying again since 02:14:07."]
    assert run.trouble is not None
    assert run.trouble.at_the_end == "no answer came, tried 150 times since 02:14:07"


def test_lost_answers_now_and_then_are_no_news() -> None:
    run, told = enduring(lambda now: lost() if now % 20 < 8 else None)
    assert (told, run.trouble) == ([], None)


def test_what_is_told_by_who_sends_it_again_is_not_told_twice() -> None:
    _run, told = enduring(lambda _now: lost(announced=True))
    assert told == []
