# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives what starts VMs again that were stopped for nodes, while others start, stop, end and delete them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import (
    Answer,
    Command,
    Start,
    TakeMarkOff,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Interrupt as Stop
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation, Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import OTHERS_FIRST, Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    plan_of,
)

from simulation import controllers, requests
from simulation.chances import Chances, Died
from simulation.deeds import Deeds
from simulation.driven import Driven, happens
from simulation.fates import BITS, DRAWN, FORBIDDEN, Fate
from simulation.process import ModelClock, Silent
from simulation.scene import build
from simulation.sight import see_replica_sets, see_vmi, see_vms
from simulation.world import (
    NAMESPACE,
    REPLICA_SET,
    ROOM,
    THEIRS,
    VM,
    Owner,
    Vmi,
    World,
)

_NODES = ("n1", "n2")
_STARTS = Execution(node="", run="", kinds=frozenset({ActionKind.START}))
_BYTES = st.binary(min_size=8, max_size=8)
_SMALL = st.integers(0, 15)
_UNSEEN = "it ended before it was seen running"


class Return:
    """A task that gives one node back. It may die at any moment, or fail; the next one begins with what it finds."""

    def __init__(self, world: World, node: str) -> None:
        self.world = world
        self.node = node
        self._chances = Chances()
        self._between = 0
        self.begin()

    def begin(self) -> None:
        deeds = Deeds(self.world, self._chances, self._judge, self._carry_out)
        means = Means(self, deeds, lambda _nodes: None, Silent(), ModelClock(self.world))
        self._run = PlanRun(means, _STARTS, plan_of(self._actions()))
        self._steps = self._run.steps(float("inf"))

    @property
    def record(self) -> Record:
        return self._run.record

    @property
    def is_complete(self) -> bool:
        """Whether it knows of all that was stopped for the node; it may have begun before some of that."""
        known = {entry.uid for entry in self.record.entries.values()}
        return all(owner.uid in known for owner in self.world.owners.values() if self.node in owner.stopped_for)

    def tick(self, between: int = 0, fates: int = 0, failing: int | None = None) -> None:
        """between: what happens after VMs were looked at, and before their VMIs are; nothing if 0."""
        if self._run.is_over:
            return
        self._chances.take(Chances(fates=fates, failing=failing))
        self._between = between
        marks, before = self._marks_of_others(), self.record
        try:
            next(self._steps)
        except (Died, Failure):
            self.begin()
        else:
            if not between:
                self._judge_failures(before)
        assert self._marks_of_others() == marks, f"what was done was not for {self.node} alone"

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """What was stopped is on no node."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        self._chances.asks()
        vms, sets = see_vms(self.world, questions.vms), see_replica_sets(self.world, questions.replica_sets)
        if self._between:
            controllers.take(self.world, self._between)
        vmis = self.world.vmis.values()
        return Observation(
            vmis={vmi.title: see_vmi(vmi) for vmi in vmis if vmi.title in questions.vmis},
            words={vmi.uid: "0/6 nodes" for vmi in vmis if vmi.uid in questions.unplaced and not vmi.node},
            vms=vms,
            replica_sets=sets,
        )

    def forget(self) -> None:
        """It remembers nothing."""

    def end(self) -> None:
        """When nothing can happen any more: who has still a mark is named, with a reason that is true."""
        for owner in self.world.owners.values():
            if self.node not in owner.stopped_for:
                continue
            entry = next((entry for entry in self.record.entries.values() if entry.uid == owner.uid), None)
            assert entry is not None, f"{owner} is forgotten"
            if entry.has_failed:
                assert FORBIDDEN in entry.status() or _UNSEEN in entry.status(), f"{entry} and {owner}"
            else:
                assert not self._has_failed(owner), f"{entry} leaves {owner} off"
                assert "," in entry.status(), f"{entry} waits without a reason"
                assert OTHERS_FIRST not in entry.status(), f"{entry} waits for nobody"
                assert not self.world.ready(owner) or owner.kind == REPLICA_SET, f"{entry} and {owner}"

    def _judge(self, commands: Collection[Command]) -> None:
        for command in commands:
            self._judge_command(command, fresh=not self._between)

    def _judge_command(self, command: Command, *, fresh: bool) -> None:
        assert isinstance(command, (Start, TakeMarkOff)), f"{command} is for a drain"
        action = next(action for action in self._run.plan.actions if action.id == command.action)
        assert command.uid == action.object.uid, f"{command} is about another one than {action}"
        owner = self.world.owners.get(command.uid)
        if fresh:
            assert owner is not None or isinstance(command, TakeMarkOff), f"{command} is about what is gone"
            if owner is not None and owner.kind == REPLICA_SET:
                wanted = see_replica_sets(self.world, frozenset({action.object.title}))[action.object.title].wanted
                assert self.world.ready(owner) >= wanted.get(self.node, 0), f"{command} comes too early for {owner}"
            if isinstance(command, Start) and owner is not None and self._takes_its_turn(owner):
                for name in action.after:
                    self._judge_turn(name)

    def _takes_its_turn(self, owner: Owner) -> bool:
        """Not what somebody else has started, which has its place without it, nor what had it and has failed since."""
        vmi, mark = self.world.vmi(owner.name), owner.stopped_for.get(self.node)
        runs = vmi is not None and vmi.alive and not (vmi.ending or vmi.uid in owner.stops)
        return mark is not None and mark.before != "" and not runs

    def _judge_turn(self, before: str) -> None:
        """Of a VM for which another one of its node waits: the scheduler has yet to place what it was started for.

        Once it has, nobody waits any more, whatever becomes of it.
        """
        entry = self.record.entries[before]
        owner = self.world.owners.get(entry.uid)
        mark = owner.stopped_for.get(self.node) if owner is not None else None
        if owner is None or mark is None or entry.has_failed or _is_hindered(entry) or owner.placed - mark.vmis:
            return
        assert mark.before == "", f"{owner} has its turn before it"
        if self.world.vmi(owner.name) is None and not owner.unwanted:
            is_coming = owner.strategy == "Always" or owner.asked
            assert not is_coming, f"{owner} has yet to come"

    def _judge_failures(self, before: Record) -> None:
        """Of what has just failed: nothing brings it back, and nobody was seen to have stopped it."""
        for name, entry in self.record.entries.items():
            known = before.entries.get(name)
            if entry.has_failed and not (known and known.has_failed) and _UNSEEN in entry.status():
                owner = self.world.owners[entry.uid]
                assert (owner.strategy, owner.asked) == ("Manual", False), f"{entry} and {owner}"
                assert self.world.vmi(owner.name) is None, f"{entry} and {owner}"

    def _has_failed(self, owner: Owner) -> bool:
        """Whether its VMI has, and nothing brings another one."""
        vmi = self.world.vmi(owner.name)
        return owner.strategy == "Manual" and not owner.asked and vmi is not None and vmi.phase == "Failed"

    def _actions(self) -> Iterator[Action]:
        """One VM after the other; nobody starts replica sets."""
        before: tuple[str, ...] = ()
        for owner in self.world.owners.values():
            if self.node in owner.stopped_for:
                reference = ObjectReference(owner.kind, NAMESPACE, owner.name, owner.uid)
                name = f"start.{owner.kind}.{owner.name}"
                yield Action(name, ActionKind.START, 1, self.node, reference, after=before)
                before = (name,) if owner.kind == VM else before

    def _carry_out(self, command: Command, fate: Fate, _late: bool) -> Answer:
        """Who dies, or hears that the server fails, may have got only half of what a start takes."""
        if fate in (Fate.FAILED, Fate.DIES_AFTER) and isinstance(command, Start):
            return requests.start(self.world, command, half=True)
        return requests.carry_out(self.world, command)

    def _marks_of_others(self) -> list[tuple[str, str]]:
        return [
            (owner.uid, f"{node}: {mark}")
            for owner in self.world.owners.values()
            for node, mark in owner.stopped_for.items()
            if node != self.node
        ]


def _is_hindered(entry: Entry) -> bool:
    """Whether something has come in the way of its start."""
    return isinstance(entry, Starting) and entry.message not in ("", OTHERS_FIRST)


class Returns(Driven):
    """Both nodes of a batch are given back at the same time, each by a task of its own.

    given_back: the nodes of the tasks.
    """

    given_back: tuple[str, ...] = _NODES

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.tasks: list[Return] = []

    @initialize(shape=st.binary(min_size=24, max_size=24), then=_BYTES)
    def begin(self, shape: bytes, then: bytes) -> None:
        """Everything was stopped that something starts again, and not all of it has ended yet."""
        world = self.world = build(shape, _NODES)
        for vmi in list(world.vmis.values()):
            if vmi.owner is not None and vmi.node in _NODES:
                owner = vmi.owner
                identity = (owner.kind, owner.name, owner.uid)
                requests.carry_out(world, Stop("stop", NAMESPACE, vmi.name, vmi.uid, *identity, vmi.node, stop=True))
        for choice in then:
            controllers.take(world, choice)
        world.cordons.clear()
        world.frail = True
        self.tasks = [Return(world, node) for node in self.given_back]

    @happens(choices=_BYTES, fates=DRAWN)
    def time_goes_by(self, choices: bytes, fates: int = 0) -> None:
        for choice in choices:
            self.world.now += (choice >> 6) * 0.7
            if choice & 1:
                controllers.take(self.world, choice >> 1)
            else:
                self._task(choice >> 1).tick(choice >> 2, fates)
                fates >>= BITS
        self._count(len(choices))

    @happens(then=_BYTES, which=_SMALL)
    def a_look_gets_no_answer(self, then: bytes, which: int) -> None:
        self._task(which).tick(failing=0)
        self.time_goes_by(choices=then)

    @happens(then=_BYTES, which=_SMALL)
    def dies(self, then: bytes, which: int) -> None:
        self._task(which).begin()
        self.time_goes_by(choices=then)

    @precondition(lambda self: self._vms())
    @happens(then=_BYTES, which=_SMALL)
    def somebody_stops_a_vm(self, then: bytes, which: int) -> None:
        """One that has yet to get back what it ran with is off already, for all that anybody can see.

        Of one that runs by request virt-api stops nothing that does not run.
        """
        owner = self._pick(self._vms(), which)
        own = {vmi.uid for vmi in self.world.vmis.values() if vmi.owner is owner and vmi.alive}
        can = owner.strategy == "Always" or (owner.strategy == "Manual" and own)
        if can and not any(mark.before for mark in owner.stopped_for.values()):
            owner.unwanted, owner.asked = True, False
            owner.stops |= own
            owner.strategy = "Halted" if owner.strategy == "Always" else owner.strategy
        self.time_goes_by(choices=then)

    @precondition(lambda self: self._vms())
    @happens(then=_BYTES, which=_SMALL)
    def somebody_starts_a_vm(self, then: bytes, which: int) -> None:
        owner = self._pick(self._vms(), which)
        if owner.strategy == "Halted":
            owner.strategy, owner.unwanted = "Always", False
        elif owner.strategy == "Manual" and self.world.vmi(owner.name) is None:
            owner.asked, owner.unwanted = True, False
        self.time_goes_by(choices=then)

    @precondition(lambda self: self._vms())
    @happens(then=_BYTES, which=_SMALL)
    def a_vm_grows(self, then: bytes, which: int) -> None:
        """When it starts again it is larger, and may find no node."""
        owner = self._pick(self._vms(), which)
        owner.size = min(owner.size + 1, ROOM)
        self.time_goes_by(choices=then)

    @precondition(lambda self: self._vms())
    @happens(then=_BYTES, which=_SMALL, anew=st.booleans())
    def somebody_deletes_a_vm(self, then: bytes, which: int, anew: bool) -> None:
        """Or makes another one of its name in its place."""
        owner = self._pick(self._vms(), which)
        del self.world.owners[owner.uid]
        for vmi in self.world.vmis.values():
            vmi.ending = vmi.ending or vmi.owner is owner
        if anew:
            other = Owner(self.world.uid("owner"), VM, owner.name, "Halted", unwanted=True)
            self.world.owners[other.uid] = other
        self.time_goes_by(choices=then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=_BYTES, which=_SMALL, phase=st.sampled_from(["", "Failed", "Succeeded"]))
    def a_vmi_ends(self, then: bytes, which: int, phase: str) -> None:
        """By itself; or by its deletion, if there is no phase."""
        vmi = self._pick(list(self.world.vmis.values()), which)
        if not phase:
            vmi.ending = True
        elif vmi.phase == "Running":
            controllers.end_guest(self.world, vmi, phase)
        self.time_goes_by(choices=then)

    @precondition(lambda self: self._new())
    @happens(then=_BYTES, which=_SMALL)
    def a_vmi_is_deleted_before_it_runs(self, then: bytes, which: int) -> None:
        self._pick(self._new(), which).ending = True
        self.time_goes_by(choices=then)

    @happens(then=_BYTES, which=_SMALL, replicas=st.integers(0, 2))
    def somebody_scales_a_replica_set(self, then: bytes, which: int, replicas: int) -> None:
        sets = [owner for owner in self.world.owners.values() if owner.kind == REPLICA_SET]
        if sets:
            owner = self._pick(sets, which)
            owner.replicas = replicas
            own = [vmi for vmi in self.world.vmis.values() if vmi.owner is owner and vmi.alive and not vmi.ending]
            for vmi in own[replicas:]:
                vmi.ending = True
        self.time_goes_by(choices=then)

    @happens(then=_BYTES, node=st.sampled_from(["n1", "n2", "n3", "n4", "n5", "n6"]))
    def somebody_cordons_or_uncordons(self, then: bytes, node: str) -> None:
        if self.world.cordons.pop(node, "") != THEIRS:
            self.world.cordons[node] = THEIRS
        self.time_goes_by(choices=then)

    def teardown(self) -> None:
        super().teardown()
        if not self.holds:
            return
        self.world.frail = False
        for _round in range(30):
            for _step in range(40):
                if not controllers.take(self.world, 0):
                    break
            self.world.now += 3.0
            for task in self.tasks:
                task.tick()
        for task in self.tasks:
            task.end()

    def _task(self, which: int) -> Return:
        return self.tasks[which % len(self.tasks)]

    def _new(self) -> list[Vmi]:
        """VMIs that have yet to run."""
        return [vmi for vmi in self.world.vmis.values() if vmi.phase in ("Pending", "Scheduled")]

    def _vms(self) -> list[Owner]:
        return [owner for owner in self.world.owners.values() if owner.kind == VM]


class ReturnsTwice(Returns):
    """One of the nodes by two tasks at the same time, of which neither knows of the other."""

    given_back = ("n1", "n1", "n2")
