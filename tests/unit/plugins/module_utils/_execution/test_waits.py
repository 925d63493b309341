# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits by way of one that has left out of turn: `web` for `between`, and that for what comes first.

And what nobody knows to have begun, when another plan has it otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Command, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.draining import (
    is_lost,
    remaining,
    under_way,
    unplanned,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import ALREADY_THERE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    SeenPod,
    SeenReplicaSet,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import MigrationCaps
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VM, VMI_REPLICA_SET
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan

from unit.plugins.module_utils._execution.moments import NOW, launcher, look, migration, seen_pod, seen_vmi
from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

N1 = Execution("n1", "run-1")
ROOM = action(ActionKind.MIGRATE, vm("room"), "n2", "n3")
STAYS = action(ActionKind.EVICT, pod("stays"), "n1")
WEB = action(ActionKind.MIGRATE, vm("web"), "n1", "n2")


def test_who_was_moved_by_others_after_an_attempt_that_failed_has_left_out_of_turn() -> None:
    """The attempt was of an earlier plan, by which nothing had to make room."""
    alone = plan(action(ActionKind.MIGRATE, vm("between"), "n1", "n5"))
    record, (command,) = advance(alone, follow(alone, Record(), N1), look(seen_vmi("between")), NOW, N1)
    record = answered(record, [Answer(command)], NOW)
    failed = migration(getattr(command, "name", ""), "Failed", vmi="between", target="n5")
    for seconds in (1.0, 2.0):
        record, _none = advance(alone, record, look(seen_vmi("between"), failed), NOW + seconds, N1)
    between = replace(action(ActionKind.MIGRATE, vm("between"), "n1", "n2"), after=(ROOM.id,))
    chain = plan(ROOM, between, replace(WEB, after=(between.id,)))
    record = follow(chain, record, N1)
    there = look(seen_vmi(), seen_vmi("room", "n2"), seen_vmi("between", "n7"), failed)
    record, commands = advance(chain, record, there, NOW + 10.0, N1)
    assert (record.entries[between.id].outcome, record.entries[between.id].has_acted) == (ALREADY_THERE, True)
    assert [each.action for each in commands] == [ROOM.id]


def halted(first: Action, there: SeenVmi | SeenPod) -> tuple[Plan, Record, Command]:
    """`between`, which is to restart after what comes first, was halted by its owner meanwhile."""
    between = replace(action(ActionKind.RESTART, vm("between"), "n1", "n2"), after=(first.id,))
    chain = plan(first, between, replace(WEB, after=(between.id,)))
    seen = seen_vmi("between", owner_kind=VM, owner="between", owner_uid="uid-vm")
    record, (command,) = advance(chain, follow(chain, Record(), N1), look(seen_vmi(), there, seen), NOW, N1)
    off = look(seen_vmi(), there, vms={"shop/between": SeenVm("uid-vm", "Halted")})
    for seconds in (1.0, 2.0):
        record, _none = advance(chain, record, off, NOW + seconds, N1)
    assert record.entries[between.id].has_failed
    return chain, record, command


def test_who_waits_by_way_of_one_that_is_off_is_planned_anew_with_whom_it_waits_for() -> None:
    """Whoever was to make room could not; nobody else would look at it again."""
    chain, record, command = halted(ROOM, there := seen_vmi("room", "n2"))
    record = answered(record, [Answer(command, "never")], NOW + 3.0)
    seen = look(seen_vmi(), there)
    record, commands = advance(chain, record, seen, NOW + 10.0, N1)
    assert not commands
    assert unplanned(chain, record, remaining("n1", seen, None)) == {"uid-room"}


@pytest.mark.parametrize("refused", [False, True])
def test_a_drain_is_lost_when_who_waits_by_way_of_one_that_is_off_waits_in_vain(refused: bool) -> None:
    chain, record, command = halted(STAYS, there := seen_pod("stays"))
    record = answered(record, [Answer(command, "never" if refused else "")], NOW + 3.0)
    seen = look(seen_vmi(), there)
    record, _commands = advance(chain, record, seen, NOW + 10.0, N1)
    assert is_lost(chain, record, remaining("n1", seen, None)) is refused


@pytest.mark.parametrize("pods", [(), (launcher("between"),)])
def test_a_drain_is_lost_also_while_a_pod_lingers_of_one_in_between_that_was_moved_by_others(
    pods: tuple[SeenPod, ...],
) -> None:
    between = action(ActionKind.MIGRATE, vm("between"), "n1", "n2", STAYS)
    chain = plan(STAYS, between, replace(WEB, after=(between.id,)))
    there = (seen_vmi(), seen_pod("stays"))
    record, (command,) = advance(chain, follow(chain, Record(), N1), look(*there, seen_vmi("between")), NOW, N1)
    record = answered(record, [Answer(command, "never")], NOW)
    seen = look(*there, *pods, seen_vmi("between", "n7"))
    record, _commands = advance(chain, record, seen, NOW + 5.0, N1)
    assert is_lost(chain, record, remaining("n1", seen, None))


@pytest.mark.parametrize("kind", [ActionKind.RESTART, ActionKind.EVICT])
def test_a_drain_is_lost_when_what_it_waits_for_on_another_node_never_leaves(kind: ActionKind) -> None:
    other = action(kind, pod("other") if kind is ActionKind.EVICT else vm("other"), "n2")
    item = seen_pod("other", "n2") if kind is ActionKind.EVICT else seen_vmi("other", "n2", owner_kind=VM)
    chain, there = plan(other, replace(WEB, after=(other.id,))), look(seen_vmi(), item)
    record, (command,) = advance(chain, follow(chain, Record(), N1), there, NOW, N1)
    for words in ("", "never"):
        told = answered(record, [Answer(command, words)], NOW)
        told, _none = advance(chain, told, there, NOW + 0.5, N1)
        assert is_lost(chain, told, remaining("n1", there, None)) is bool(words)
    leaving = look(seen_vmi(), replace(item, ending=True))
    assert not is_lost(chain, told, remaining("n1", leaving, None)), "somebody has it end"
    moving = look(seen_vmi(), item, migration("theirs", "Running", vmi="other"))
    assert is_lost(chain, told, remaining("n1", moving, None)) is (kind is ActionKind.EVICT)


def test_a_drain_is_not_lost_while_one_flies_whom_another_plan_may_still_move() -> None:
    """Its own attempt has failed, and another process has begun one more; it has not left as yet."""
    room = replace(ROOM, after=(STAYS.id,))
    chain = plan(STAYS, room, replace(WEB, after=(room.id,)))
    stays = replace(Evicting.begin(STAYS), outcome="failed")
    failed = replace(Migrating.begin(room), outcome="failed", has_acted=True)
    entries: dict[str, Entry] = {STAYS.id: stays, room.id: failed, WEB.id: Migrating.begin(chain.actions[-1])}
    record = Record(entries)
    there = look(seen_vmi(), seen_vmi("room", "n2"), seen_pod("stays"), migration("theirs", "Running", vmi="room"))
    here = remaining("n1", there, None)
    assert unplanned(chain, record, here) == {"uid-room"}
    assert not is_lost(chain, record, here)


@pytest.mark.parametrize("changes", [{}, {"ending": True}])
def test_a_drain_is_not_lost_while_what_could_not_be_ended_ends(changes: dict[str, Any]) -> None:
    there = look(seen_pod("stays"))
    record, (command,) = advance(plan(STAYS), follow(plan(STAYS), Record(), N1), there, NOW, N1)
    record = answered(record, [Answer(command, "never")], NOW)
    here = remaining("n1", look(seen_pod("stays", **changes)), None)
    assert is_lost(plan(STAYS), record, here) is not bool(changes)


def unsure(given: Action = WEB, there: SeenVmi | None = None, **answer: Any) -> Record:
    """Nothing tells whether what is to be done with `web` has begun."""
    seen = look(there or seen_vmi())
    record, (command,) = advance(plan(given), follow(plan(given), Record(), N1), seen, NOW, N1)
    return answered(record, [Answer(command, **answer or {"lost": True})], NOW)


@pytest.mark.parametrize("kind", [ActionKind.MIGRATE, ActionKind.STOP, ActionKind.RESTART])
@pytest.mark.parametrize("answer", [{"lost": True}, {"refused": "busy", "passing": True}])
def test_what_may_be_on_its_way_waits_for_nobody_in_vain(kind: ActionKind, answer: dict[str, Any]) -> None:
    """Another plan would let it wait for a pod that is refused for good."""
    given = replace(WEB, kind=kind, target=WEB.target if kind is ActionKind.MIGRATE else None)
    owned = seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm")
    later = plan(STAYS, replace(given, after=(STAYS.id,)))
    there = look(owned, seen_pod("stays"))
    record, (command,) = advance(later, follow(later, unsure(given, owned, **answer), N1), there, NOW + 0.5, N1)
    record = answered(record, [Answer(command, "never")], NOW + 0.5)
    assert is_lost(later, record, remaining("n1", there, None)) is not ("lost" in answer)
    still = look(owned, seen_pod("stays"), vms={"shop/web": SeenVm("uid-vm", "Always")})
    record, _none = advance(later, record, still, NOW + 9.0, N1)
    assert is_lost(later, record, remaining("n1", still, None))


def test_who_may_be_on_its_way_is_not_stopped_as_another_plan_has_it() -> None:
    stop = action(ActionKind.STOP, vm("web"), "n1")
    owned = seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm")
    record = follow(plan(stop), unsure(there=owned), N1)
    flying = migration("any", "Running")
    for seconds, there in ((0.5, (owned,)), (1.0, (owned, flying)), (5.0, (owned, flying))):
        record, commands = advance(plan(stop), record, look(*there), NOW + seconds, N1)
        assert not commands
    gone = unsure(there=owned)
    record, _none = advance(plan(stop), follow(plan(stop), gone, N1), look(owned), NOW + 9.0, N1)
    _record, commands = advance(plan(stop), record, look(owned), NOW + 10.0, N1)
    assert [each.action for each in commands] == [stop.id]


def test_who_was_to_migrate_and_is_held_back_by_kubevirt_is_stopped_as_another_plan_has_it() -> None:
    """Nothing may ever come of it; as long as it was not seen, nobody knows whether it is on its way."""
    owned = seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm")
    record, (command,) = advance(plan(WEB), follow(plan(WEB), Record(), N1), look(owned), NOW, N1)
    stop = plan(action(ActionKind.STOP, vm("web"), "n1"))
    record = follow(stop, answered(record, [Answer(command)], NOW), N1)
    record, commands = advance(stop, record, look(owned), NOW + 0.5, N1)
    assert not commands
    queued = migration(getattr(command, "name", ""), "Pending")
    for seconds, there in ((1.0, queued), (1.5, queued), (2.0, held_back := replace(queued, blocked="exceeded quota"))):
        record, commands = advance(stop, record, look(owned, there), NOW + seconds, N1)
        assert not commands
    _record, commands = advance(stop, record, look(owned, held_back), NOW + 2.5, N1)
    assert [each.action for each in commands] == [stop.actions[0].id]


def test_who_has_left_by_itself_and_is_back_is_looked_at_again_before_a_drain_is_lost() -> None:
    between = action(ActionKind.MIGRATE, vm("between"), "n1", "n2", STAYS)
    chain = plan(STAYS, between, replace(WEB, after=(between.id,)))
    there = (seen_vmi(), seen_pod("stays"))
    record, (command,) = advance(chain, follow(chain, Record(), N1), look(*there, seen_vmi("between")), NOW, N1)
    record = answered(record, [Answer(command, "never")], NOW)
    record, _none = advance(chain, record, look(*there, seen_vmi("between", "n7")), NOW + 5.0, N1)
    back = look(*there, seen_vmi("between"))
    record, _none = advance(chain, record, back, NOW + 6.0, N1)
    assert not is_lost(chain, record, remaining("n1", back, None))


def test_what_may_be_on_its_way_is_not_forgotten_with_its_plan() -> None:
    later = plan(STAYS)
    record = follow(later, unsure(), N1)
    assert [entry.title for entry in under_way(record)] == ["shop/web"]
    there = (seen_vmi(), seen_pod("stays"))
    flying, _command = advance(later, record, look(*there, migration("any", "Running")), NOW + 0.5, N1)
    assert [entry.outcome for entry in flying.of(Migrating)] == ["migrating"]
    for seconds in (9.0, 10.0):
        record, commands = advance(later, record, look(*there), NOW + seconds, N1)
        assert WEB.id not in {each.action for each in commands}
    assert WEB.id not in record.entries


@pytest.mark.parametrize("kind", [ActionKind.MIGRATE, ActionKind.STOP])
def test_however_many_have_left_one_behind_the_other(kind: ActionKind) -> None:
    chain: list[Action] = []
    for number in range(1200):
        target = "n3" if kind is ActionKind.MIGRATE else None
        chain.append(action(kind, vm(f"vm-{number}"), "n2", target, *chain[-1:]))
    given = plan(*chain, replace(WEB, after=(chain[-1].id,)))
    record = follow(given, Record(), N1)
    for seconds in range(3):
        record, commands = advance(given, record, look(), NOW + seconds, N1)
        assert not commands


def test_who_waits_for_one_of_a_replica_set_is_not_let_go_by_the_successor_of_another_one() -> None:
    """That one has ended by itself before anything was known of it, as another plan has it restart as well."""
    traits = {"owner_kind": VMI_REPLICA_SET, "owner": "set", "owner_uid": "uid-set"}
    first, second = (action(ActionKind.RESTART, vm(name), "n1", "n2") for name in ("first", "second"))
    alone, both = plan(first), plan(first, second, replace(WEB, after=(second.id,)))
    one, two = (seen_vmi(name, **traits) for name in ("first", "second"))

    def seen(*vmis: SeenVmi) -> Observation:
        wanted = SeenReplicaSet("uid-set", ready=1, wanted={}, replicas=2)
        return look(seen_vmi(), *vmis, siblings={"uid-set": vmis}, replica_sets={"shop/set": wanted})

    record, _none = advance(alone, follow(alone, Record(), N1), seen(one, two), NOW, N1)
    record, (command,) = advance(alone, record, seen(one, two), NOW + 1.0, N1)
    anew = seen_vmi("anew", "n2", phase="Scheduling", **traits)
    record, _none = advance(alone, answered(record, [Answer(command)], NOW), seen(two, anew), NOW + 3.0, N1)
    record, ended = follow(both, record, N1), replace(two, phase="Succeeded")
    for seconds, there in ((4.0, anew), (6.0, replace(anew, phase="Running")), (9.0, replace(anew, phase="Running"))):
        record, commands = advance(both, record, seen(ended, there), NOW + seconds, N1)
        assert not commands
    assert [entry.outcome for entry in record.of(Interrupting)] == ["restarted", "ending"]


def test_nobody_else_is_moved_for_a_vm_that_has_ended_before_its_stop() -> None:
    """Whether it was stopped from here its VM is asked first, and it is not called over as yet."""
    then = replace(action(ActionKind.MIGRATE, vm("then"), "n2", "n6"), after=(ROOM.id,))
    chain = plan(ROOM, then, replace(action(ActionKind.STOP, vm("ends"), "n1"), after=(then.id,)))
    there = (seen_vmi("room", "n2"), seen_vmi("then", "n2"), seen_vmi("ends", ending=True, owner_kind=VM))
    record, (command,) = advance(chain, follow(chain, Record(), N1), look(*there), NOW, N1)
    assert isinstance(command, Migrate)
    record = answered(record, [Answer(command)], NOW)
    done = migration(command.name, "Succeeded", vmi="room", target="n3")
    for seconds in (1.0, 2.0):
        record, asked = advance(
            chain, record, look(seen_vmi("room", "n3"), seen_vmi("then", "n2"), done), NOW + seconds, N1
        )
        assert not asked


@pytest.mark.parametrize("seen_ending", [True, False])
@pytest.mark.parametrize("words", ["", "0/6 nodes are available"])
def test_who_makes_room_for_a_restart_is_moved_when_the_next_vmi_finds_no_node(words: str, seen_ending: bool) -> None:
    """It has ended before its turn, between two looks maybe; as long as it finds one, nobody is moved for it."""
    chain = plan(ROOM, replace(action(ActionKind.RESTART, vm("ends"), "n1", "n2"), after=(ROOM.id,)))
    room = seen_vmi("room", "n2")
    owned = {"owner_kind": VM, "owner": "ends", "owner_uid": "uid-vm"}
    held = look(room, seen_vmi("ends", ending=seen_ending, **owned))
    busy = Execution("n1", "run-1", caps=MigrationCaps(cluster=0, outbound=0))
    record, asked = advance(chain, follow(chain, Record(), busy), held, NOW, busy)
    assert not asked
    anew = replace(seen_vmi("ends", "" if words else "n4", phase="Scheduling", **owned), uid="anew")
    there = look(room, anew, words={"anew": words} if words else {})
    for seconds, seen in ((1.0, look(room)), (2.0, there), (3.0, there)):
        record, asked = advance(chain, record, seen, NOW + seconds, N1)
    assert [command.action for command in asked] == ([ROOM.id] if words else [])


def test_who_makes_room_for_a_restart_is_not_moved_when_the_next_vmi_has_gone_again() -> None:
    chain = plan(ROOM, replace(action(ActionKind.RESTART, vm("ends"), "n1", "n2"), after=(ROOM.id,)))
    room, owned = seen_vmi("room", "n2"), {"owner_kind": VM, "owner": "ends", "owner_uid": "uid-vm"}
    anew = replace(seen_vmi("ends", "", phase="Scheduling", **owned), uid="anew")
    busy = Execution("n1", "run-1", caps=MigrationCaps(cluster=0, outbound=0))
    record, _none = advance(chain, follow(chain, Record(), busy), look(room, seen_vmi("ends", **owned)), NOW, busy)
    for seconds, there in ((1.0, look(room)), (2.0, look(room, anew, words={"anew": "0/6"})), (3.0, look(room))):
        record, asked = advance(chain, record, there, NOW + seconds, N1)
        assert not asked
    (entry,) = record.of(Interrupting)
    assert entry.status() == "restarting"
