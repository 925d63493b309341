# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold at every moment, whatever happens: each method compares a deed or a word with the truth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Command,
    Evict,
    Interrupt,
    Migrate,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.draining import (
    Remaining,
    hindrances,
    under_way,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import EVICTED, Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    ENDING,
    RESTARTED,
    STOP,
    STOPPED,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import (
    ALREADY_THERE,
    MIGRATED,
    NOT_MIGRATED,
    Migrating,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    ENDED,
    WAITING,
    Entry,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

from simulation import rules
from simulation.fates import PASSING
from simulation.world import (
    CAP_CLUSTER,
    FRESH,
    OURS,
    REPLICA_SET,
    Vmi,
    World,
)

_KINDS = {
    Migrate: {ActionKind.MIGRATE},
    Evict: {ActionKind.EVICT},
    Interrupt: {ActionKind.RESTART, ActionKind.STOP},
}


class Judge:
    """alone: there is one process, so that it can keep KubeVirt's caps whatever it sees. budget: attempts of a VM.

    Whom somebody has asked to end is asked once more where no answer came, whether it can be migrated by now or not.
    """

    def __init__(self, world: World, *, alone: bool, budget: int) -> None:
        self._world = world
        self._alone = alone
        self._budget = budget
        self._actions: dict[str, Action] = {}
        self._asked: set[tuple[type[Command], str]] = set()
        self._broken = rules.broken(world)
        # What the run knows from the beginning, if a reserve is kept when all of it has come to other nodes.
        foreseen = {vmi.name: vmi.size for vmi in world.vmis.values()}
        kept = rules.reserve(replace(world, pods={}), {}) >= sum(foreseen.values()) + CAP_CLUSTER
        self._foreseen = foreseen if kept else {}
        world.happened["a reserve is there to be kept"] += kept

    def of(self, world: World) -> Judge:
        """The judge of a copy of the model, who knows as much."""
        other = Judge(world, alone=self._alone, budget=self._budget)
        other._actions, other._foreseen = dict(self._actions), self._foreseen
        other._asked = set(self._asked)
        return other

    def knows(self, plan: Plan) -> None:
        """Whatever any plan has said of an action; the last word counts."""
        self._actions |= {action.id: action for action in plan.actions}

    def moment(self) -> None:
        """Whenever something has happened: no hard rule is broken that was not, whoever should have seen to it.

        And for what the run knows there is room elsewhere if one more zone fails, where that was so by its plan: who is
        on the way takes room twice, as many as KubeVirt lets go at a time.
        """
        broken = rules.broken(self._world)
        assert broken <= self._broken, f"{broken - self._broken}, which was not so before"
        self._broken = broken
        reserve = rules.reserve(self._world, self._foreseen)
        assert not self._foreseen or reserve >= 0, f"room for {-reserve} is missing if one more zone fails"

    def commands(
        self, commands: Iterable[Command], plan: Plan, record: Record, execution: Execution, *, fresh: bool
    ) -> None:
        actions = {action.id: action for action in execution.actions(plan)}
        seen: set[str] = set()
        for command in commands:
            assert isinstance(command, (Migrate, Evict, Interrupt)), f"{command} is for who gives a node back"
            action = actions.get(command.action)
            if isinstance(command, Interrupt) and not command.begins:
                assert (Interrupt, command.uid) in self._asked, f"{command} was begun by nobody"
                action = replace(self._actions[command.action], after=())
            assert action is not None, f"{command} is not in the plan in force"
            assert action.kind in _KINDS[type(command)], f"{command} is not what {action} asks for"
            assert action.object.uid == command.uid, f"{command} is not {action}"
            assert command.uid not in seen, f"two commands about {command.uid} at a time"
            seen.add(command.uid)
            for name in action.after:
                self._has_ended(name, command)
            if isinstance(command, Migrate):
                self._migrate(command, action, fresh=fresh, again=record.entries[command.action].is_unsure)
            if isinstance(command, Interrupt):
                self._interrupt(command, action, plan, fresh=fresh)
            if isinstance(command, Evict) and fresh:
                pod = self._world.pods.get(command.uid)
                assert pod is not None, f"{command} asks for a pod that is gone"
                assert not pod.ending, f"{command} asks for a pod that is ending already"
            elsewhere = fresh and (action.source or action.node) != execution.node
            if elsewhere and (type(command), command.uid) not in self._asked:
                awaited = self._is_awaited(execution.node, action, actions, record)
                assert awaited, f"{command} is for nobody"
            self._asked.add((type(command), command.uid))

    def created(self, command: Command, execution: Execution, plan: Plan, sources: Collection[str] | None) -> None:
        """A migration has come into being by a command, of this plan in force.

        sources: nodes of whose migrations who asks has just seen all there are; None if there may be others by now.
        """
        assert isinstance(command, Migrate)
        world = self._world
        hindrance = rules.hindrance(world, command, plan)
        assert not hindrance, f"{command}, and yet {hindrance}"
        own = [entry for entry in world.migrations.values() if entry.ours and entry.vmi.uid == command.uid]
        tries = sum(entry.name.rpartition("-")[0] == command.name.rpartition("-")[0] for entry in own)
        tries -= sum(entry.phase == "Succeeded" for entry in own)
        # Who was on the way by somebody else when the plan was made goes on as planned also if that has failed.
        last = self._budget + (command.uid in world.snapshots[plan.snapshot.sha256].moving)
        assert tries <= last, f"attempt {tries}: {command}"
        ours = [entry for entry in world.migrations.values() if entry.ours and entry.unfinished]
        assert len({entry.vmi.uid for entry in ours}) == len(ours), f"two migrations of a VM: {command}"
        vmi = world.vmi(command.vmi)
        assert vmi is not None
        assert (vmi.uid, vmi.node) == (command.uid, command.source), f"{command} meets {vmi}"
        if execution.caps is not None and (self._alone or sources is not None):
            seen = [entry for entry in ours if sources is None or entry.home in sources]
            # Of a node KubeVirt counts VMIs, of the cluster migrations, also those whose VMI is gone.
            there = [entry for entry in seen if entry.vmi.uid in world.vmis]
            going = sum(entry in there or entry.phase != "Pending" for entry in seen)
            outbound = sum(entry.source == command.source for entry in there)
            assert going <= execution.caps.cluster, f"beyond the cluster's cap: {command}"
            assert outbound <= execution.caps.outbound, f"beyond its node's cap: {command}"

    def carries_out(self, command: Command, invocation: int) -> None:
        """Of the cluster as it is, whatever the process has seen of it. Not asked of what it was let through to do."""
        self._may(invocation)
        if isinstance(command, Interrupt):
            self._will_be_known(command, invocation)
        world, node = self._world, self._actions[command.action].node
        whose = world.cordons.get(node)
        recent = whose is None and world.now - world.uncordoned_at.get(node, float("-inf")) < FRESH
        assert whose == OURS or recent, f"{command}, and yet {node} is cordoned by {whose or 'nobody'}"

    def maintained(self, node: str, first: frozenset[str] | None, invocation: int) -> None:
        """The maintenance of a node begins."""
        self._may(invocation)
        whose = self._world.cordons.get(node)
        assert whose == OURS, f"{node} is maintained, but cordoned by {whose or 'nobody'}"
        assert self._world.is_empty(node, first), f"{node} is maintained, but not empty"

    def residents(self, node: str, here: Remaining, first: frozenset[str] | None) -> None:
        """Of a look that is as of now."""
        assert here.none == self._world.is_empty(node, first), f"{node} is {'' if here.none else 'not '}called empty"

    def results(self, before: Record, after: Record, *, fresh: bool) -> None:
        for name, entry in after.entries.items():
            old = before.entries.get(name)
            if old is None or old.outcome != entry.outcome:
                self._result(entry, fresh=fresh)

    def has_acted(self, record: Record, done: Iterable[Command]) -> None:
        """done: what a process has changed something by, though it may not have heard of it; it says so all the same.

        Of a migration it is seen in the cluster.
        """
        names = {command.name for command in done if isinstance(command, Migrate)}
        others = {command.uid for command in done if not isinstance(command, Migrate)}
        migrated = {command.uid for command in done if isinstance(command, Migrate)}
        for entry in record.entries.values():
            if isinstance(entry, Migrating):
                known = entry.outcome == MIGRATED and entry.migration in names
            else:
                known = entry.uid in others
            assert entry.has_acted or not known, f"{entry} has changed nothing?"
            if isinstance(entry, Evicting) and entry.outcome == WAITING and not entry.is_unsure:
                assert entry.uid in others or not entry.has_acted, f"{entry} has changed something?"
            if isinstance(entry, Migrating) and entry.outcome == WAITING and not (entry.is_unsure or entry.failed):
                assert entry.uid in migrated or not entry.has_acted, f"{entry} has migrated something?"

    def lost(self, drain: NodeDrain) -> None:
        """Of a drain that ends though its node is not empty: what is there has a reason, and nothing is under way.

        One that gives up, as too many have failed, waits for nobody who is ending already, and plans for nobody who has
        just come, or come back, or was still on its way to the node when the plan was made.
        """
        assert not under_way(drain.record), f"{drain.record} is left alone"
        names = {(entry.object.namespace, entry.object.name) for entry in hindrances(drain.plan, drain.here)}
        told = _and_behind(drain.plan, {entry.uid for entry in drain.record.failed})
        if drain.failed:
            told |= {action.object.uid for action in drain.plan.actions}
            told |= {entry.uid for entry in drain.record.entries.values() if not entry.unfinished}
            told |= {item.uid for item in drain.here.all if item.ending}
            known = self._world.snapshots[drain.plan.snapshot.sha256].homes
            told |= {vmi.uid for vmi in drain.here.vmis if (vmi.uid, drain.execution.node) not in known}
        for item in drain.here.all:
            assert item.uid in told or (item.namespace, item.name) in names, f"{item} is left without a reason"

    def end(self, drain: NodeDrain) -> None:
        """Of a drain that would end now, when nothing can happen any more."""
        here, record = drain.here, drain.record
        if not drain.is_lost:
            self.residents(drain.execution.node, here, drain.first)
        names = {(entry.object.namespace, entry.object.name) for entry in hindrances(drain.plan, here)}
        failed = _and_behind(drain.plan, {entry.uid for entry in record.failed})
        if not drain.failed:
            named = {entry.object.uid for entry in drain.plan.blocked} | failed
            assert named.issuperset(item.uid for item in here.all), f"{here} is not all named by {named}"
        for item in here.all if not drain.failed else ():
            assert item.uid in failed or (item.namespace, item.name) in names, f"{item} is left without a reason"
        for entry in record.unfinished:
            if isinstance(entry, Interrupting) and entry.outcome == ENDING:
                successor = self._world.vmis.get(entry.successor_uid)
                is_there = successor is not None and successor.alive
                assert is_there or self._comes_back(entry), f"{entry} is waited for in vain"

    def _will_be_known(self, command: Interrupt, invocation: int) -> None:
        """Whoever goes on has to know which VMs ran before; who has lost the run can leave nothing any more."""
        known = {entry.uid for saved in self._world.saved.values() for entry in saved.interruptions}
        assert command.uid in known or invocation != self._world.holder, f"{command}, and the next process won't know"

    def _may(self, invocation: int) -> None:
        lost = self._world.lost_at.get(invocation, float("inf"))
        assert self._world.now - lost < FRESH, f"invocation {invocation} goes on, though it could know that it may not"

    def _is_awaited(self, node: str, action: Action, actions: Mapping[str, Action], record: Record) -> bool:
        """Whether who is to leave the node, and is there, waits for it, directly or by way of others.

        Or who has ended before its restart, and finds no node again as long as these are there.
        """
        waiting = [other for other in actions.values() if action.id in other.after]
        own = [other for other in waiting if (other.source or other.node) == node]
        there = any(not self._world.has_left(other.object.uid, node) for other in own)
        lost = any(self._finds_no_node(record.entries[other.id]) for other in own)
        return there or lost or any(self._is_awaited(node, other, actions, record) for other in waiting)

    def _finds_no_node(self, entry: Entry) -> bool:
        """Of who restarts, whether what came in its place has none yet."""
        successor = self._world.vmis.get(entry.successor_uid) if isinstance(entry, Interrupting) else None
        return successor is not None and not successor.node

    def _has_ended(self, name: str, command: Command) -> None:
        action = self._actions[name]
        world, uid, node = self._world, action.object.uid, action.source or action.node
        if action.kind not in LEAVING:
            return  # of nodes, who are cordoned before anything begins
        assert world.had_left(uid, node), f"{command} does not wait for {name}"
        if action.kind is ActionKind.STOP:
            assert not any(world.pods_of(uid)), f"{command} does not wait for the pod of {name}"

    def _migrate(self, command: Migrate, action: Action, *, fresh: bool, again: bool) -> None:
        """again: no answer has told of it, so that only asking once more does, wherever its VM is by now."""
        assert (command.source, command.target) == (action.source, action.target), f"{command} is not {action}"
        assert dict(command.selector) == dict(action.selector), f"{command} is not {action}"
        namesakes = [entry for entry in self._world.migrations.values() if entry.vmi.uid == command.uid and entry.ours]
        # Another node's drain, which this one has not seen yet, may send it, too: then it is refused.
        others = [entry for entry in namesakes if entry.unfinished and entry.name != command.name]
        assert not (fresh and others), f"{command} while {others[0].name} is not over"
        if fresh:
            vmi = self._world.vmis.get(command.uid)
            assert vmi is not None, f"{command} for a VM that is gone"
            assert vmi.alive, f"{command} for {vmi}"
            assert again or vmi.node == command.source, f"{command} for {vmi}"
            settled = [entry for entry in namesakes if entry.name == command.name]
            assert not settled, f"{command} has the name of a migration that is there"

    def _interrupt(self, command: Interrupt, action: Action, plan: Plan, *, fresh: bool) -> None:
        assert command.stop == (action.kind is ActionKind.STOP), f"{command} is not {action}"
        for other in plan.actions if command.begins else ():
            if other.object.uid == command.uid:
                assert other.kind is not ActionKind.MIGRATE, f"{command} while the plan migrates it"
        vmi = self._world.vmis.get(command.uid)
        if fresh:
            assert vmi is not None, f"{command} for a VM that is gone"
            assert not vmi.ending, f"{command} for a VM that is ending"
            assert vmi.node == command.node, f"{command} for {vmi}"
            can_migrate = vmi.migratable and (Interrupt, vmi.uid) not in self._asked
            assert not can_migrate, f"{command} although it can migrate"

    def _result(self, entry: Entry, *, fresh: bool) -> None:
        world = self._world
        mended = [words for words in PASSING if entry.has_failed and words in entry.status()]
        assert not mended, f"{entry} is given up, though time mends that"
        if isinstance(entry, Migrating):
            self._migration_result(entry, fresh=fresh)
        elif entry.outcome == EVICTED:
            assert entry.uid not in world.pods, f"{entry} is called evicted"
        elif entry.outcome == STOPPED:
            vmi = world.vmis.get(entry.uid)
            assert vmi is None or not vmi.alive, f"{entry} is called stopped"
            owner = world.owners.get(entry.owner_uid) if isinstance(entry, Interrupting) else None
            # Whoever has taken the run may have started it again before the one that stopped it looks.
            again = owner is not None and bool(world.lost_at) and bool(owner.ran - {entry.uid})
            assert owner is None or again or entry.source_node in owner.stopped_for, f"{entry} was stopped by nobody"
        elif isinstance(entry, Interrupting) and entry.kind == STOP and entry.outcome == ENDED:
            marks = (world.owners[entry.owner_uid].stopped_for if entry.owner_uid in world.owners else {}).values()
            assert not any(entry.uid in mark.vmis for mark in marks), f"{entry}, but it was stopped"
        elif isinstance(entry, Interrupting) and entry.outcome == RESTARTED:
            successor = world.vmis.get(entry.successor_uid)
            assert entry.successor_uid != entry.uid, f"{entry} is its own successor"
            assert entry.uid in world.gone or not world.vmis[entry.uid].alive, f"{entry} is called restarted"
            assert entry.target_node in world.places[entry.successor_uid], f"{entry} is not where it says"
            if fresh and successor is not None:
                assert successor.node == entry.target_node, f"{entry} is not where it says"
                assert successor.owner is not None or not entry.owner_kind, f"{entry} is nobody's"
        elif isinstance(entry, Interrupting) and (
            entry.reason.startswith("it has ended") or (entry.outcome == ENDED and entry.owner_kind == REPLICA_SET)
        ):
            assert not self._comes_back(entry), f"{entry}, and yet it comes back"

    def _comes_back(self, entry: Interrupting) -> bool:
        """Whether there is a VMI of its name that lives, or its VM or replica set makes one."""
        if entry.owner_kind == REPLICA_SET:
            owner = self._world.owners.get(entry.owner_uid)
            own = sum(vmi.owner is owner and vmi.alive and not vmi.ending for vmi in self._world.vmis.values())
            return owner is not None and own < self._world.wanted(owner)
        owners = [owner for owner in self._world.owners.values() if owner.name == entry.name]
        vmi = self._world.vmi(entry.name)
        if vmi is not None and vmi.alive:
            is_adopted = not vmi.ending and any(owner.strategy != "Halted" for owner in owners)
            if vmi.owner is not None or not entry.owner_kind or is_adopted:
                return True
        return any(owner.strategy == "Always" or owner.asked for owner in owners)

    def _migration_result(self, entry: Migrating, *, fresh: bool) -> None:
        vmi = self._world.vmis.get(entry.uid)
        if entry.outcome == MIGRATED and entry.node == entry.source_node != entry.target_node:
            assert entry.target_node in self._world.places[entry.uid], f"{entry} was not brought back"
        elif entry.outcome in (MIGRATED, ALREADY_THERE):
            assert self._world.had_left(entry.uid, entry.source_node) or vmi is None or vmi.node != entry.source_node
            assert entry.node in self._world.places[entry.uid], f"{entry} has never been there"
            if fresh and vmi is not None:
                assert vmi.node == entry.node, f"{entry} is on {vmi.node}"
        if entry.outcome == MIGRATED:
            assert entry.node in (entry.target_node, entry.source_node), f"{entry} went elsewhere"
        if entry.outcome == NOT_MIGRATED:
            self._reason(entry, vmi)

    def _reason(self, entry: Migrating, vmi: Vmi | None) -> None:
        reason = entry.failure_reason
        if reason.startswith("the VM ended"):
            assert vmi is None or not vmi.alive, f"{entry}, and yet it runs"
        if reason.startswith("KubeVirt reports success"):
            assert vmi is None or vmi.node == entry.node, f"{entry}, and yet it is on {vmi.node}"
        if reason.startswith("somebody deleted"):
            moving = self._world.migrations.get(entry.failed[-1].uid)
            assert moving is None or moving.cancelled, f"{entry}, and yet {moving} is there"


def _and_behind(plan: Plan, uids: Collection[str]) -> set[str]:
    """With uids of what waits for these in vain, directly or not."""
    found, names = set(uids), set[str]()
    for action in plan.actions:  # whoever waits comes later than what it waits for
        if action.object.uid in uids or not names.isdisjoint(action.after):
            names.add(action.id)
            found.add(action.object.uid)
    return found
