# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.draining import (
    failed_machines,
    failures,
    hindrances,
    is_lost,
    off,
    present,
    remaining,
    replaced,
    returned,
    sakes,
    under_way,
    unplanned,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import SeenVmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Blocked

from unit.plugins.module_utils._execution.moments import NOW, launcher, look, seen_pod, seen_vmi
from unit.plugins.module_utils._plan.plans import action, plan, pod, vm
from unit.plugins.module_utils._plan.plans import refused as refused_by_kubevirt

N1 = Execution("n1", "run-1")
MOVE, EVICT = action(ActionKind.MIGRATE, vm("web"), "n1", "n2"), action(ActionKind.EVICT, pod("cache"), "n1")
STOP = action(ActionKind.STOP, vm("db"), "n1")
HERE = remaining("n1", look(seen_vmi(), seen_pod()), None)


def test_what_makes_room_does_so_for_the_node_also_when_the_plan_has_dropped_it() -> None:
    helper = replace(action(ActionKind.MIGRATE, vm("helper"), "n3", "n4"), node="n1")
    record = Record({each.id: Migrating.begin(each) for each in (MOVE, helper)})
    assert sakes(record, plan(MOVE, helper), plan(MOVE)) == {MOVE.id: "n1", helper.id: "n1"}


def refused(*names: str) -> Record:
    """What the server has refused for good."""
    record, commands = advance(plan(MOVE, EVICT), follow(plan(MOVE, EVICT), Record(), N1), _LOOK, NOW, N1)
    return answered(record, [Answer(item, "never") for item in commands if item.action in names], NOW)


_LOOK = look(seen_vmi(), seen_pod())


@pytest.mark.parametrize(
    ("there", "empty"),
    [
        ((), True),
        ((seen_vmi(node="n2"), seen_pod(node="n2")), True),
        ((seen_vmi(phase="Succeeded"),), True),
        ((seen_vmi(),), False),
        ((launcher("web"),), False),
        ((seen_pod(),), False),
        ((seen_pod(stays=True),), True),
        ((seen_pod(tolerates=True),), True),
        ((seen_pod("first", tolerates=True),), False),
    ],
    ids="nothing|others|an ended vm|a vm|its pod|a pod|daemon|newcomer|was there".split("|"),
)
def test_a_node_is_empty_when_nothing_is_left_to_leave(there: tuple[Any, ...], empty: bool) -> None:
    assert remaining("n1", look(*there), frozenset({"uid-first"})).none is empty


def test_what_has_no_action_needs_another_plan() -> None:
    record = follow(plan(MOVE), Record(), N1)
    assert unplanned(plan(MOVE), record, HERE) == {"uid-cache"}


@pytest.mark.parametrize(("passing", "needed"), [(True, {"uid-cache"}), (False, set())], ids=["passing", "for good"])
def test_of_what_is_blocked_only_what_passes_is_planned_again(passing: bool, needed: set[str]) -> None:
    blocked = plan(MOVE, blocked=(Blocked(pod("cache"), "n1", ("it has no owner",), passing),))
    assert unplanned(blocked, follow(blocked, Record(), N1), HERE) == needed


ROOM = replace(action(ActionKind.MIGRATE, vm("small"), "n1", "n3"), source="n2")
AFTER = replace(MOVE, after=(ROOM.id,))


def test_who_makes_room_elsewhere_is_looked_at_where_it_is() -> None:
    assert N1.places(plan(ROOM, AFTER)) == ("n1", "n2")
    assert N1.sources(plan(ROOM, AFTER)) == ("n1", "n2")
    assert N1.nodes(plan(ROOM, AFTER)) == ("n1",)  # the only one that has to be ours


def test_who_waits_for_room_begins_when_it_is_there() -> None:
    begun, at = plan(ROOM, AFTER), seen_vmi("small", "n2")
    record, (first,) = advance(begun, follow(begun, Record(), N1), look(seen_vmi(), at), NOW, N1)
    assert isinstance(first, Migrate)
    assert (first.action, first.source) == (ROOM.id, "n2")
    gone = look(seen_vmi(), seen_vmi("small", "n3"), launcher("small", "n2"))
    record, commands = advance(begun, record, gone, NOW + 5, N1)
    assert commands == ()  # its pod is there still
    _record, (second,) = advance(begun, record, look(seen_vmi(), seen_vmi("small", "n3")), NOW + 9, N1)
    assert second.action == MOVE.id


def test_who_fails_to_make_room_needs_another_plan() -> None:
    begun, seen = plan(ROOM, AFTER), look(seen_vmi(), seen_vmi("small", "n2"))
    record, commands = advance(begun, follow(begun, Record(), N1), seen, NOW, N1)
    here = remaining("n1", seen, None)
    assert unplanned(begun, record, here) == set()
    record = answered(record, [Answer(item, "never") for item in commands], NOW)
    assert unplanned(begun, record, here) == {"uid-small"}
    assert unplanned(plan(MOVE), follow(plan(MOVE), record, N1), here) == set()


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_who_is_to_be_interrupted_and_can_be_migrated_by_now_needs_another_plan(node: str) -> None:
    """Also on another node, where it is waited for; there is a plan that has it migrate, or stop for another reason."""
    stop = refused_by_kubevirt(action(ActionKind.STOP, vm("db"), node))
    begun, asleep = plan(stop, replace(MOVE, after=(stop.id,))), seen_vmi("db", node, is_refused=True)
    for can, needed in ((False, set[str]()), (True, {"uid-db"})):
        seen = look(seen_vmi(), replace(asleep, is_refused=not can))
        record, commands = advance(begun, follow(begun, Record(), N1), seen, NOW, N1)
        assert bool(commands) is not can
        assert unplanned(begun, record, remaining("n1", seen, None)) == needed
    again = plan(replace(stop, why="It is shut down. Why: no node can take it."), replace(MOVE, after=(stop.id,)))
    record, commands = advance(again, follow(again, record, N1), seen, NOW, N1)
    assert [command.action for command in commands] == [stop.id]
    assert unplanned(again, record, remaining("n1", seen, None)) == set()


def test_who_is_waited_for_on_another_node_and_is_there_again_needs_another_plan() -> None:
    """Somebody has brought it back; as long as nobody waits for it that is nobody's concern."""
    other = action(ActionKind.MIGRATE, vm("other"), "n2", "n3")
    begun = plan(other, replace(MOVE, after=(other.id,)))
    record = follow(begun, Record(), N1)
    away = look(seen_vmi(), seen_vmi("other", "n3"), launcher("other", "n2"))
    record, commands = advance(begun, record, away, NOW, N1)
    assert commands == ()  # its pod is there still
    here = remaining("n1", look(seen_vmi(), seen_vmi("other", "n2")), None)
    assert unplanned(begun, record, here) == returned(begun, record, here) == {"uid-other"}
    assert follow(begun, record, N1, frozenset({"uid-other"})).entries[other.id].outcome == "waiting"
    assert unplanned(plan(other, MOVE), record, here) == returned(plan(other, MOVE), record, here) == set()


def test_who_is_waited_for_by_way_of_one_that_has_left_by_itself_counts_as_well() -> None:
    """Also what fails so that no plan mends it: who waits for it like that does so in vain."""
    makes_room = action(ActionKind.MIGRATE, vm("other"), "n2", "n3")
    between = action(ActionKind.MIGRATE, vm("between"), "n1", "n2", makes_room)
    begun = plan(makes_room, between, replace(MOVE, after=(between.id,)))
    seen = look(seen_vmi(), seen_vmi("other", "n2"), seen_vmi("between", "n7"))
    record, commands = advance(begun, follow(begun, Record(), N1), seen, NOW, N1)
    assert [command.action for command in commands] == [makes_room.id]
    record = answered(record, [Answer(item, "never") for item in commands], NOW)
    assert unplanned(begun, record, remaining("n1", seen, None)) == {"uid-other"}
    stays = action(ActionKind.EVICT, pod("stays"), "n1")
    begun = plan(stays, replace(between, after=(stays.id,)), replace(MOVE, after=(between.id,)))
    seen = look(seen_vmi(), seen_pod("stays"), seen_vmi("between", "n7"))
    record, commands = advance(begun, follow(begun, Record(), N1), seen, NOW, N1)
    record = answered(record, [Answer(item, "never") for item in commands], NOW)
    assert is_lost(begun, record, remaining("n1", seen, None))


def test_who_is_waited_for_on_another_node_and_fails_needs_another_plan_until_it_has_left() -> None:
    """The process that empties that node may be over, or not there at all."""
    other = action(ActionKind.MIGRATE, vm("other"), "n2", "n3")
    begun, seen = plan(other, replace(MOVE, after=(other.id,))), look(seen_vmi(), seen_vmi("other", "n2"))
    record, commands = advance(begun, follow(begun, Record(), N1), seen, NOW, N1)
    record = answered(record, [Answer(item, "never") for item in commands], NOW)
    assert unplanned(begun, record, remaining("n1", seen, None)) == {"uid-other"}
    left = look(seen_vmi(), seen_vmi("other", "n4"))
    assert unplanned(begun, record, remaining("n1", left, None)) == set()


def test_a_failed_migration_is_planned_anew_and_a_refused_eviction_is_not() -> None:
    assert unplanned(plan(MOVE, EVICT), refused(MOVE.id, EVICT.id), HERE) == {"uid-web"}


def test_what_has_left_and_is_here_again_is_planned_anew() -> None:
    record = follow(plan(MOVE), Record(), N1)
    record, _commands = advance(plan(MOVE), record, look(seen_vmi(node="n2")), NOW, N1)
    assert record.entries[MOVE.id].outcome == "already_there"
    back = remaining("n1", look(seen_vmi()), None)
    assert unplanned(plan(MOVE), record, back) == returned(plan(MOVE), record, back) == {"uid-web"}
    assert follow(plan(MOVE), record, N1, returned(plan(MOVE), record, back)).unfinished
    assert not follow(plan(MOVE), record, N1).unfinished


def test_who_has_come_under_the_name_of_one_that_had_gone_is_planned_anew() -> None:
    """As long as nothing was done: who is stopped, and comes again all the same, would be stopped again and again."""
    moves = plan(MOVE, EVICT, STOP)
    db = seen_vmi("db", uid="uid-4", owner_kind=VM, owner="db", owner_uid="uid-of-db")
    anew = look(seen_vmi(uid="uid-2"), seen_pod(uid="uid-3"), db)
    record, _none = advance(moves, follow(moves, Record(), N1), anew, NOW, N1)
    assert replaced(record, remaining("n1", anew, None)) == {MOVE.id, EVICT.id, STOP.id}
    there = look(seen_vmi(), seen_pod(), seen_vmi("db"))
    assert replaced(record, remaining("n1", there, None)) == set()
    record, commands = advance(moves, follow(moves, Record(), N1), there, NOW, N1)
    record, _none = advance(moves, answered(record, map(Answer, commands), NOW), anew, NOW + 1.0, N1)
    assert replaced(record, remaining("n1", anew, None)) == {EVICT.id}


def test_a_drain_is_lost_when_nothing_is_under_way_and_the_rest_will_never_leave() -> None:
    blocked = plan(EVICT, blocked=(Blocked(vm("web"), "n1", ("it cannot migrate",)),))
    assert not is_lost(blocked, follow(blocked, Record(), N1), HERE)
    assert is_lost(blocked, follow(blocked, refused(EVICT.id), N1), HERE)


def test_what_waits_for_what_will_never_leave_is_not_waited_for() -> None:
    after, last = replace(MOVE, after=(EVICT.id,)), action(ActionKind.EVICT, pod("last"), "n1")
    waiting = plan(EVICT, after, replace(last, after=(after.id,)))
    seen = look(seen_vmi(), seen_pod(), seen_pod("last"))
    record, (command,) = advance(waiting, follow(waiting, Record(), N1), seen, NOW, N1)
    assert not is_lost(waiting, record, remaining("n1", seen, None))
    record = answered(record, [Answer(command, "never")], NOW)
    assert is_lost(waiting, record, remaining("n1", seen, None))
    # Somebody has deleted it after all.
    assert not is_lost(waiting, record, remaining("n1", look(seen_vmi(), seen_pod("last")), None))


def test_hindrances_are_what_is_there() -> None:
    gone, here = Blocked(vm("gone"), "n1", ("a",)), Blocked(pod("cache"), "n1", ("it has no owner", "it has data"))
    assert list(hindrances(plan(blocked=(gone, here)), HERE)) == [here]


def test_what_is_present_has_a_reason_whatever_is_known_of_it() -> None:
    again, ending = seen_vmi("db", uid="uid-db-2"), seen_pod("old", ending=True)
    record = Record({STOP.id: replace(Interrupting.begin(STOP), outcome="stopped")})
    found = present(record, remaining("n1", look(again, seen_vmi(), ending), None))
    assert {item.name: (kind, why) for kind, item, why in found} == {
        "db": ("vm", "it runs here again after it was stopped, and nothing is interrupted twice"),
        "web": ("vm", "it is on the node, and nothing of the plan is about it"),
        "old": ("pod", "it is ending"),
    }


def test_failures_name_the_nodes_to_which_a_vm_could_not_go() -> None:
    assert failures(refused(MOVE.id, EVICT.id)) == {"shop/web": ("n2",)}


def test_a_vm_has_failed_for_good_when_it_was_tried_and_no_plan_helps() -> None:
    blocked = plan(MOVE, EVICT, blocked=(Blocked(vm("web"), "n1", ("its migration failed",)),))
    record = refused(MOVE.id, EVICT.id)
    assert failed_machines(plan(MOVE, EVICT), record, HERE) == frozenset(), "another plan may help"
    assert failed_machines(blocked, record, HERE) == {"uid-web"}
    assert failed_machines(blocked, refused(EVICT.id), HERE) == frozenset(), "nobody has tried"
    assert failed_machines(blocked, record, remaining("n1", look(seen_pod()), None)) == frozenset()


def test_a_vm_that_could_not_be_ended_has_failed_for_good() -> None:
    stop = action(ActionKind.STOP, vm("web"), "n1")
    seen = look(seen_vmi())
    record, (command,) = advance(plan(stop), follow(plan(stop), Record(), N1), seen, NOW, N1)
    record = answered(record, [Answer(command, "never")], NOW)
    assert failed_machines(plan(stop), record, remaining("n1", seen, None)) == {"uid-web"}


def test_what_has_begun_goes_on_and_nothing_else_begins() -> None:
    closed = Execution("n1", "run-1", begins=False)
    record, commands = advance(plan(MOVE, EVICT), follow(plan(MOVE, EVICT), Record(), closed), _LOOK, NOW, closed)
    assert (commands, under_way(record)) == ((), [])
    record, commands = advance(plan(MOVE, EVICT), record, _LOOK, NOW, N1)
    record = answered(record, [Answer(command) for command in commands], NOW)
    record, commands = advance(plan(MOVE, EVICT), record, _LOOK, NOW + 9, closed)
    assert (commands, [entry.title for entry in under_way(record)]) == ((), ["shop/web", "shop/cache"])


def test_what_no_answer_tells_of_is_under_way_until_a_look_does() -> None:
    """A drain that gives up would leave a migration behind that is on its way."""
    given, closed = plan(MOVE, EVICT), Execution("n1", "run-1", begins=False)
    record, commands = advance(given, follow(given, Record(), N1), _LOOK, NOW, N1)
    record = answered(record, [Answer(command, lost=True) for command in commands], NOW)
    assert [entry.title for entry in under_way(record)] == ["shop/web", "shop/cache"]
    record, commands = advance(given, record, _LOOK, NOW + 9, closed)
    assert (commands, under_way(record)) == ((), [])


@pytest.mark.parametrize(
    ("found", "is_off"),
    [
        ((), True),
        ((seen_vmi("db", owner_kind=VM),), False),
        ((seen_vmi("db", owner_kind=VM, phase="Failed"),), True),
        ((seen_vmi("db"),), True),
    ],
    ids=["gone", "runs", "failed", "made by others"],
)
def test_who_was_to_be_restarted_is_off_unless_it_is_seen_to_run(found: tuple[SeenVmi, ...], is_off: bool) -> None:
    restart = Interrupting.begin(action(ActionKind.RESTART, vm("db"), "n1", "n2"))
    failed = replace(restart, outcome="failed", owner_kind=VM, owner_uid="uid-vm")
    assert off(Record({restart.action: failed}), look(*found)) == (("shop/db",) if is_off else ())
