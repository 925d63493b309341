# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Answer,
    Command,
    Interrupt,
    Migrate,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.draining import under_way
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, SeenVm
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import FailedAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
    questions,
    rehearsal,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import PATIENCE, MigrationCaps
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    Plan,
)

from unit.plugins.module_utils._execution.moments import NOW, launcher, look, migration, seen_pod, seen_vmi
from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

N1 = Execution("n1", "run-1")
X = action(ActionKind.MIGRATE, vm("x"), "n1", "n4")
Y = action(ActionKind.MIGRATE, vm("y"), "n2", "n5", X)
HALT = action(ActionKind.STOP, vm("h"), "n1")
Z = action(ActionKind.MIGRATE, vm("z"), "n1", "n6", HALT)
RESET = action(ActionKind.RESTART, vm("r"), "n1")
POD = action(ActionKind.EVICT, pod("p"), "n1")
START = action(ActionKind.START, ObjectReference(VM, "shop", "s", "uid-s"), "n1")
STARTS = Execution("n1", "run-1", kinds=frozenset({ActionKind.START}))
BINDING = replace(N1, binding=True)
SPARED = partial(Answer, refused="it is not to end any more", passing=True, needless=True, spared=True)


def commands(given: Plan, *there: Any, execution: Execution = N1, record: Record | None = None) -> list[str]:
    """Ids of the actions of which something is asked."""
    _record, found = _advance(given, *there, execution=execution, record=record)
    return [command.action for command in found]


def _advance(
    given: Plan, *there: Any, execution: Execution = N1, record: Record | None = None
) -> tuple[Record, tuple[Command, ...]]:
    known = follow(given, Record(), execution) if record is None else record
    return advance(given, known, look(*there), NOW, execution)


def test_a_process_carries_out_its_node_and_what_that_waits_for() -> None:
    there = (seen_vmi("x"), seen_vmi("y", "n2"))
    assert commands(plan(X, Y), *there) == [X.id]
    assert list(follow(plan(X, Y), Record(), N1).entries) == [X.id]
    assert list(follow(plan(X, Y), Record(), Execution("n2", "run-1")).entries) == [X.id, Y.id]


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ((seen_vmi("x"), seen_vmi("y", "n2")), [X.id]),
        ((seen_vmi("x", "n4"), launcher("x"), seen_vmi("y", "n2")), []),
        ((seen_vmi("x", "n4"), launcher("x", "n4"), seen_vmi("y", "n2")), [Y.id]),
    ],
    ids=["still there", "its pod ends", "has left"],
)
def test_an_action_waits_until_others_have_left_altogether(there: tuple[Any, ...], asked: list[str]) -> None:
    assert commands(plan(X, Y), *there, execution=Execution("n2", "run-1")) == asked


@pytest.mark.parametrize("has_acted", [True, False])
def test_what_is_there_again_begins_anew_and_what_was_done_stays_done(has_acted: bool) -> None:
    """Or its leaving has not been seen yet."""
    there = replace(Migrating.begin(X), outcome="migrated", node="n4", migration="m-1", has_acted=has_acted)
    left = follow(plan(X), Record({X.id: there}), N1)
    again = follow(plan(X), left, N1, frozenset({there.uid}))
    assert not again.entries[X.id].has_acted
    assert (left.entries[X.id].outcome, again.entries[X.id].outcome) == ("migrated", "waiting")
    assert again.has_acted == left.has_acted == has_acted


def test_what_was_done_stays_done_when_the_plan_drops_it_or_means_another_one() -> None:
    """As it has left, came back, and is blocked now; or was made anew."""
    there = replace(Migrating.begin(X), outcome="migrated", node="n4", migration="m-1", has_acted=True)
    again = follow(plan(X), Record({X.id: there}), N1, frozenset({there.uid}))
    assert (dict(follow(plan(), again, N1).entries), follow(plan(), again, N1).has_acted) == ({}, True)
    another = replace(X, object=replace(X.object, uid="another"))
    anew = follow(plan(another), Record({X.id: there}), N1)
    assert (anew.entries[X.id].outcome, anew.has_acted) == ("waiting", True)


PETS = action(ActionKind.STOP, vm("pets"), "n2")
CRON = action(ActionKind.EVICT, pod("cron"), "n2", "", PETS)
B = action(ActionKind.MIGRATE, vm("b"), "n2", "n5", CRON)
WEB = action(ActionKind.MIGRATE, vm("web"), "n1", "n2", B)
CHAIN = plan(PETS, CRON, B, WEB)
ON_N2 = (seen_vmi("pets", "n2", owner_kind=VM), seen_pod("cron", "n2"), seen_vmi("b", "n2"))


def test_what_only_waits_for_others_is_begun_for_nobody_when_those_have_gone() -> None:
    """Web has ended by itself: whom it has waited for on another node, directly or not, is left to that node."""
    there, _commands = _advance(CHAIN, seen_vmi("web"), *ON_N2)
    assert list(there.entries) == [PETS.id, CRON.id, B.id, WEB.id]
    gone, _commands = _advance(CHAIN, *ON_N2, record=follow(CHAIN, Record(), N1))
    over, asked = _advance(CHAIN, *ON_N2, record=gone)
    assert ({name: entry.outcome for name, entry in over.entries.items()}, asked) == ({WEB.id: "ended"}, ())


def test_who_makes_room_is_moved_also_if_the_one_in_between_has_left_by_itself() -> None:
    """Web waits for it as well, for its room: a plan names only the last of those that come one after the other."""
    makes_room = action(ActionKind.MIGRATE, vm("r"), "n5", "n6")
    chain = plan(makes_room, replace(B, after=(makes_room.id,)), replace(WEB, target="n5"))
    there = (seen_vmi("web"), seen_vmi("r", "n5"), seen_vmi("b", "n7"))
    assert commands(chain, *there) == [makes_room.id]


@pytest.mark.parametrize("words", ["", "the server fails"])
@pytest.mark.parametrize("given", [CRON, B], ids=["eviction", "migration"])
def test_what_may_have_begun_is_followed_for_nobody_and_not_begun_once_more(given: Action, words: str) -> None:
    """As long as no look tells what became of a request that had no answer."""
    alone = replace(given, after=())
    chain = plan(alone, replace(WEB, after=(alone.id,)))
    record, (command,) = _advance(chain, seen_vmi("web"), *ON_N2)
    record = answered(record, [Answer(command, words, passing=bool(words), lost=True)], NOW)
    for seconds in (0.0, 5.0, 6.0):
        record, asked = advance(chain, record, look(*ON_N2), NOW + seconds, N1)
        assert asked == ()
    assert (list(record.entries), record.has_acted) == ([WEB.id], False)


def test_a_stop_for_who_has_gone_since_is_taken_back_unless_it_was_asked_for() -> None:
    """The server has refused it for a moment, and its mark may be there."""
    chain = plan(PETS, replace(WEB, after=(PETS.id,)))
    record, (command,) = _advance(chain, seen_vmi("web"), *ON_N2)
    assert isinstance(command, Interrupt)
    record = answered(record, [Answer(command, "the server is busy", passing=True)], NOW)
    record, (again,) = advance(chain, record, look(*ON_N2), NOW + 5.0, N1)
    assert again == replace(command, begins=False)
    record = answered(record, [SPARED(again)], NOW + 5.0)
    record, asked = advance(chain, record, look(*ON_N2), NOW + 6.0, N1)
    assert (list(record.entries), record.has_acted, asked) == ([WEB.id], False, ())


@pytest.mark.parametrize("spared", [False, True])
def test_whether_a_stop_was_asked_for_is_known_before_another_plan_migrates_its_vm(spared: bool) -> None:
    """The plan has forgotten it since, as another VM has come and this one can be migrated by now."""
    stop, move = plan(HALT), plan(given := action(ActionKind.MIGRATE, vm("h"), "n1", "n4"))
    there = seen_vmi("h", owner_kind=VM)
    record, (command,) = _advance(stop, there)
    assert isinstance(command, Interrupt)
    record = follow(move, answered(record, [Answer(command, "the server is busy", passing=True)], NOW), N1)
    record, (again,) = advance(move, record, look(there), NOW + 5.0, N1)
    assert again == replace(command, begins=False)
    record = answered(record, [SPARED(again) if spared else Answer(again)], NOW + 5.0)
    record, asked = advance(move, record, look(there), NOW + 6.0, N1)
    assert [each.action for each in asked] == ([given.id] if spared else [])
    assert (HALT.id in record.entries, record.has_acted) == (not spared, not spared)


def test_a_restart_that_another_plan_has_forgotten_is_waited_for_when_its_vm_has_ended() -> None:
    """Maybe by what was asked for: whoever asks whether it was can only see that it is gone."""
    restart, move = plan(RESET), plan(action(ActionKind.MIGRATE, vm("r"), "n1", "n4"))
    there = seen_vmi("r", owner_kind=VM, owner="r", owner_uid="uid-vm")
    record, (command,) = _advance(restart, there)
    record = follow(move, answered(record, [Answer(command)], NOW), N1)
    record, (again,) = advance(move, record, look(there), NOW + 5.0, N1)
    record = answered(record, [Answer(again, "it has just ended", passing=True, needless=True)], NOW + 5.0)
    record, _none = advance(move, record, look(), NOW + 6.0, N1)
    assert record.entries[RESET.id].outcome == "ending"


def test_whether_a_stop_was_asked_for_is_known_before_a_drain_gives_up() -> None:
    """Its mark would let its VM be started again, also if its owner stops it from then on."""
    given, there = plan(HALT), seen_vmi("h", owner_kind=VM)
    record, (command,) = _advance(given, there)
    assert isinstance(command, Interrupt)
    record = answered(record, [Answer(command, "the server is busy", passing=True)], NOW)
    given_up = replace(N1, begins=False)
    record, (again,) = advance(given, record, look(there), NOW + 5.0, given_up)
    assert again == replace(command, begins=False)
    assert under_way(record)
    record = answered(record, [SPARED(again)], NOW + 5.0)
    record, asked = advance(given, record, look(there), NOW + 9.0, given_up)
    assert (under_way(record), asked) == ([], ())


def test_what_has_failed_for_who_has_gone_since_is_told() -> None:
    chain = plan(alone := replace(B, after=()), replace(WEB, after=(alone.id,)))
    failed = FailedAttempt("uid-m", "no node could take it", "n5")
    known = replace(Migrating.begin(alone), failed=(failed,), has_acted=True)
    record = replace(follow(chain, Record(), N1), entries={alone.id: known, WEB.id: Migrating.begin(WEB)})
    for _look in range(2):
        record, asked = advance(chain, record, look(*ON_N2), NOW, N1)
        assert asked == ()
    assert (record.entries[alone.id].status(), record.has_acted) == ("failed, no node could take it", True)


def test_an_action_waits_for_the_pod_of_what_was_stopped() -> None:
    there = (seen_vmi("h", phase="Failed"), seen_vmi("z"))
    assert commands(plan(HALT, Z), *there, launcher("h")) == []
    assert commands(plan(HALT, Z), *there) == [Z.id]


def test_nothing_waits_for_a_cordon() -> None:
    cordon = action(ActionKind.CORDON, vm("n1"), "n1")
    move = action(ActionKind.MIGRATE, vm("x"), "n1", "n4", cordon)
    assert commands(plan(cordon, move), seen_vmi("x")) == [move.id]


@pytest.mark.parametrize(
    ("caps", "asked"),
    [(None, 3), (MigrationCaps(2, 9), 2), (MigrationCaps(9, 1), 1)],
    ids=["left to KubeVirt", "cluster", "node"],
)
def test_no_more_migrations_are_begun_than_the_caps_allow(caps: MigrationCaps | None, asked: int) -> None:
    moves = [action(ActionKind.MIGRATE, vm(name), "n1", "n4") for name in "abc"]
    there = [seen_vmi(name) for name in "abc"]
    assert len(commands(plan(*moves), *there, execution=Execution("n1", "run-1", caps=caps))) == asked


def test_migrations_that_the_record_does_not_know_count_too() -> None:
    """As after a crash, before any of them was looked at."""
    moves = [action(ActionKind.MIGRATE, vm(name), "n1", "n4") for name in "ab"]
    flying = migration("b-0-1", "Running", vmi="b", target="n4")
    capped = Execution("n1", "run-1", caps=MigrationCaps(9, 1))
    assert commands(plan(*moves), seen_vmi("a"), seen_vmi("b"), flying, execution=capped) == []
    assert commands(plan(moves[0]), seen_vmi("a"), seen_vmi("b"), flying, execution=capped) == []


@pytest.mark.parametrize("words", ["", "the server fails"])
def test_a_migration_counts_whose_answer_was_lost(words: str) -> None:
    """It may be there, though watches do not show it yet; who waits for that answer keeps its own place."""
    moves = [action(ActionKind.MIGRATE, vm(name), "n1", "n4") for name in "ab"]
    capped, given, there = Execution("n1", "run-1", caps=MigrationCaps(1, 1)), plan(*moves), look(*map(seen_vmi, "ab"))
    record, (first,) = advance(given, follow(given, Record(), capped), there, NOW, capped)
    record = answered(record, [Answer(first, words, passing=bool(words), lost=True)], NOW)
    begun = []
    for later in (1.0, 2.0):
        record, found = advance(given, record, there, NOW + later, capped)
        begun.append(found)
    assert begun == [(), (first,)]
    changed = follow(plan(moves[1]), record, capped)
    assert [each.action for each in advance(plan(moves[1]), changed, there, NOW, capped)[1]] == [moves[1].id]


FIRST = action(ActionKind.MIGRATE, vm("first"), "n2", "n5")
SECOND = action(ActionKind.MIGRATE, vm("second"), "n1", "n5")
ONE_AT_A_TIME = Execution("n1", "run-1", caps=MigrationCaps(1, 1))


def test_a_place_is_left_to_whose_turn_it_is_on_another_node() -> None:
    there = seen_vmi("second")
    assert commands(plan(FIRST, SECOND), there, execution=ONE_AT_A_TIME) == []
    assert commands(plan(SECOND, FIRST), there, execution=ONE_AT_A_TIME) == [SECOND.id]
    flying = migration("first-0-1", "Running", vmi="first", target="n5")
    assert commands(plan(FIRST, SECOND), there, flying, execution=ONE_AT_A_TIME) == []
    over = migration("first-0-1", "Succeeded", vmi="first", target="n5")
    assert commands(plan(FIRST, SECOND), there, over, execution=ONE_AT_A_TIME) == [SECOND.id]


def test_a_place_is_not_left_to_who_cannot_begin_yet() -> None:
    waiting = action(ActionKind.MIGRATE, vm("third"), "n2", "n5", SECOND)
    assert commands(plan(waiting, SECOND), seen_vmi("second"), execution=ONE_AT_A_TIME) == [SECOND.id]
    two = Execution("n1", "run-1", caps=MigrationCaps(2, 1))
    assert commands(plan(FIRST, SECOND), seen_vmi("second"), execution=two) == [SECOND.id]


def test_a_place_that_nobody_takes_is_left_to_others_but_once() -> None:
    """The process of the other node is gone, or its VM has left by itself."""
    given, there = plan(FIRST, SECOND, action(ActionKind.MIGRATE, vm("third"), "n1", "n5")), look(seen_vmi("second"))
    record = follow(given, Record(), ONE_AT_A_TIME)
    begun = []
    for later in (0.0, 1.0, PATIENCE, PATIENCE + 0.5):
        record, found = advance(given, record, there, NOW + later, ONE_AT_A_TIME)
        begun.append([command.action for command in found])
    assert begun == [[], [], [], [SECOND.id]]


def _migrating(record: Record, given: Action) -> Migrating:
    entry = record.entries[given.id]
    assert isinstance(entry, Migrating)
    return entry


def test_what_a_plan_forgets_is_followed_to_its_end_and_not_begun_again() -> None:
    execution = Execution("n1", "run-1", {"n1": "e"}, retries=5)
    record, found = _advance(plan(X), seen_vmi("x"), execution=execution)
    record = answered(record, map(Answer, found), NOW)
    forgotten = follow(plan(HALT), record, execution)
    over = migration(_migrating(record, X).migration, "Failed", vmi="x", target="n4")
    for _look in range(2):
        forgotten, found = _advance(plan(HALT), seen_vmi("x"), over, execution=execution, record=forgotten)
    assert found == ()
    assert _migrating(forgotten, X).failure_reason == "KubeVirt gives no reason"


def test_another_vm_of_the_name_begins_anew() -> None:
    record = answered(*_answers(_advance(plan(X), seen_vmi("x"))), NOW)
    other = action(ActionKind.MIGRATE, vm("x", "uid-of-another"), "n1", "n4")
    assert _migrating(record, X).in_flight
    assert _migrating(follow(plan(other), record, N1), other) == Migrating.begin(other)


def _answers(advanced: tuple[Record, tuple[Command, ...]]) -> tuple[Record, list[Answer]]:
    record, found = advanced
    return record, [Answer(command) for command in found]


def test_a_look_answers_the_questions_of_all() -> None:
    assert questions(follow(plan(X, HALT), Record(), N1)).known == {"shop/x", "shop/h"}


def attempt(phase: str, **changes: Any) -> Any:
    """The first migration of X by run-1."""
    _record, (command,) = _advance(plan(X), seen_vmi("x"))
    assert isinstance(command, Migrate)
    return migration(command.name, phase, vmi="x", target="n4", **changes)


def surveyed(given: Plan, shown: Observation, execution: Execution) -> Record:
    """After a look at which nothing begins, as a rehearsal comes after one."""
    return advance(given, follow(given, Record(), execution), shown, NOW, replace(execution, begins=False))[0]


@pytest.mark.parametrize(
    ("given", "shown", "execution", "why"),
    [
        (X, look(), BINDING, "the VM ended during its migration"),
        (X, look(seen_vmi("x", "n9")), BINDING, "somebody has moved it to n9 meanwhile"),
        (X, look(seen_vmi("x"), attempt("Failed")), N1, "KubeVirt gives no reason"),
        (X, look(attempt("Failed")), N1, "the VM ended during its migration"),
        (X, look(seen_vmi("x"), attempt("Failed", cancelled=True)), N1, "somebody deleted"),
        (X, look(attempt("Succeeded")), N1, "the VM ended right after its migration"),
        (X, look(seen_vmi("x", "n9"), attempt("Succeeded")), N1, "KubeVirt reports success, but the VM runs on n9"),
        (
            RESET,
            look(vms={"shop/r": SeenVm("uid-vm", "Always", ending=True)}),
            N1,
            "it has ended, and nothing starts it again, as its VM is gone",
        ),
        (RESET, look(vms={"shop/r": SeenVm("uid-vm", "Halted")}), N1, "nothing starts it again, as its VM has run"),
        (START, look(vms={"shop/s": SeenVm("uid-s", "Manual")}), STARTS, "it was stopped for the node, and nothing"),
    ],
)
def test_a_rehearsal_tells_what_fails_without_a_command(
    given: Action, shown: Observation, execution: Execution, why: str
) -> None:
    """Just as it fails when it is carried out."""
    record = surveyed(plan(given), shown, execution)
    rehearsed, commands = rehearsal(plan(given), record, shown, NOW, execution)
    assert (commands, [why in entry.status() for entry in rehearsed.failed]) == ((), [True])
    assert advance(plan(given), record, shown, NOW, execution)[0].failed == rehearsed.failed


@pytest.mark.parametrize(("retries", "asked"), [(0, 0), (1, 1)])
def test_a_rehearsal_tries_again_what_would_be_tried_again(retries: int, asked: int) -> None:
    shown, execution = look(seen_vmi("x"), attempt("Failed")), replace(N1, retries=retries)
    record = surveyed(plan(X), shown, execution)
    rehearsed, commands = rehearsal(plan(X), record, shown, NOW, execution)
    assert (len(commands), len(rehearsed.failed)) == (asked, 1 - asked)
    assert advance(plan(X), record, shown, NOW, execution)[0].failed == rehearsed.failed


@pytest.mark.parametrize("shown", [look(), look(seen_pod("p", "n1", ending=True))])
def test_a_pod_that_leaves_by_itself_is_no_failure_of_a_rehearsal(shown: Observation) -> None:
    record = surveyed(plan(POD), shown, N1)
    rehearsed, commands = rehearsal(plan(POD), record, shown, NOW, N1)
    assert (rehearsed.failed, commands) == ([], ())
