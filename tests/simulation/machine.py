# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives drains and model through random interleavings, and judges every moment of them."""

from __future__ import annotations

import copy

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan import remainder

from simulation import controllers, requests
from simulation.calm import come_to_rest
from simulation.chances import Chances
from simulation.driven import BYTES, SMALL, Disturbed, happens
from simulation.fates import BITS, DRAWN
from simulation.judge import Judge
from simulation.planning import ByModel, ByProduct, Planning
from simulation.process import BUDGET, Process, Ways
from simulation.scene import MOST, add, build
from simulation.world import (
    OURS,
    REPLICA_SET,
    ROOM,
    THEIRS,
    VM,
    ZONES,
    Owner,
    Vmi,
    World,
)


class Simulation(Disturbed):
    """batch: the nodes that are out of service. drained: those that are emptied, each by a process of its own.

    alone: there is never another process at a time. planning: who makes the plans.
    """

    batch: tuple[str, ...]
    drained: tuple[str, ...] = ("n1", "n2")
    alone = False
    judge: Judge
    planning: Planning = ByModel()

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.processes: list[Process] = []

    @initialize(shape=st.binary(min_size=24, max_size=24))
    def begin(self, shape: bytes) -> None:
        world = self.world = build(shape, self.batch)
        self.judge = Judge(world, alone=self.alone, budget=BUDGET)
        plan, ways = self.planning.made(world, self.batch), Ways.of(shape[0])
        self.processes = [
            Process(world, self.judge, node, self.batch, plan, self.planning, ways)
            for node in self.batch
            if node in self.drained
        ]

    @happens(choices=BYTES, fates=DRAWN)
    def time_goes_by(self, choices: bytes, fates: int = 0) -> None:
        """The everyday course: looks, sometimes late ones, and things that happen in between."""
        for choice in choices:
            self.world.now += (choice >> 6) * 0.7
            if choice & 1:
                controllers.take(self.world, choice >> 1)
            else:
                self._process(choice >> 1).tick(Chances(choice >> 2 & 7, fates=fates))
                fates >>= BITS
            self.judge.moment()
        self._count(len(choices))

    @happens(which=SMALL, lagging=st.integers(0, 7), cut=st.integers(0, 7), fates=DRAWN, failing=st.none() | SMALL)
    def looks(self, which: int, lagging: int, cut: int, fates: int, failing: int | None) -> None:
        self._process(which).tick(Chances(lagging, cut, fates, failing))
        self._count()

    @happens(seconds=st.integers(1, 40))
    def time_passes(self, seconds: int) -> None:
        self.world.now += seconds
        self._count()

    @happens(then=BYTES, which=SMALL, remembering=st.booleans())
    def dies(self, then: bytes, which: int, remembering: bool) -> None:
        self._process(which).die(remembering=remembering)
        self._disturbed(then)

    @happens(then=BYTES, which=SMALL)
    def saves(self, then: bytes, which: int) -> None:
        self._process(which).notes.write()
        self._disturbed(then)

    @happens(then=BYTES, node=st.sampled_from(sorted(ZONES)))
    def somebody_cordons_or_uncordons(self, then: bytes, node: str) -> None:
        """A node of the batch is taken back by whoever drains it when somebody has uncordoned it, with a new start."""
        cordons = self.world.cordons
        if node in self.drained and node in self.batch:
            if cordons.pop(node, "") == OURS:
                self.world.uncordoned_at[node] = self.world.now
            else:
                cordons[node] = OURS
                self.world.epochs[node] += "+"
                next(each for each in reversed(self.processes) if each.node == node).die(remembering=True)
        elif node not in self.batch and cordons.pop(node, "") == "":
            cordons[node] = THEIRS
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, how=st.integers(0, 3))
    def a_vm_ends(self, then: bytes, which: int, how: int) -> None:
        """By itself, by its deletion, together with its owner, or halted."""
        vmi = self._pick(list(self.world.vmis.values()), which)
        owner = vmi.owner
        if how == 0 and vmi.phase == "Running":
            controllers.end_guest(self.world, vmi)
        elif how == 1 or owner is None:
            vmi.ending = True
        elif how == 2:
            self.world.owners.pop(owner.uid, None)
            vmi.ending = True
        elif owner.uid in self.world.owners:
            owner.halt()
            vmi.ending = True
        self._disturbed(then)

    @precondition(lambda self: self._ending())
    @happens(then=BYTES, which=SMALL, gone=st.booleans())
    def somebody_wants_a_vm_off_that_is_ending(self, then: bytes, which: int, gone: bool) -> None:
        owner = self._pick(self._ending(), which)
        owner.halt()
        owner.asked = False
        if gone:
            self.world.owners.pop(owner.uid, None)
        self._disturbed(then)

    @precondition(lambda self: self._sets())
    @happens(then=BYTES, which=SMALL, replicas=st.integers(0, 2))
    def somebody_scales_a_replica_set(self, then: bytes, which: int, replicas: int) -> None:
        owner = self._pick(self._sets(), which)
        owner.replicas = replicas
        own = [vmi for vmi in self.world.vmis.values() if vmi.owner is owner and vmi.alive and not vmi.ending]
        for vmi in own[replicas:]:
            vmi.ending = True
        self._disturbed(then)

    @happens(then=BYTES, which=SMALL, byte=st.integers(0, 255), lagging=st.integers(0, 7))
    def a_vm_comes(self, then: bytes, which: int, byte: int, lagging: int) -> None:
        """One of a new name, or of one that is free again; to a node of the batch it was sent before the cordon.

        lagging: of who looks right then, as the watches may know nothing of it yet.
        """
        name = f"vm{which}"
        if self.world.vmi(name) is None and len(self.world.vmis) < MOST:
            add(self.world, name, byte, self.batch)
        self._process(which).tick(Chances(lagging))
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, itself=st.booleans())
    def a_vm_grows(self, then: bytes, which: int, itself: bool) -> None:
        """By hot-plug, for which KubeVirt may migrate it itself; without that it is larger when it starts again."""
        vmi = self._pick(list(self.world.vmis.values()), which)
        size = min(vmi.size + 1, ROOM)
        if vmi.owner is not None:
            vmi.owner.size = size
        if vmi.migratable:
            vmi.size = size
            to = next((node for node in ZONES if node != vmi.node and self.world.fits(vmi, node)), None)
            if itself and to and vmi.phase == "Running" and not self.world.moving(vmi):
                requests.create(self.world, vmi, self.world.uid("theirs"), to, ours=False)
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, lagging=st.integers(0, 7))
    def a_vm_can_be_migrated_or_no_longer(self, then: bytes, which: int, lagging: int) -> None:
        """As when a disk of it is unplugged, or plugged in. lagging: of who looks right then."""
        vmi = self._pick(list(self.world.vmis.values()), which)
        vmi.migratable = not vmi.migratable
        self._process(which).tick(Chances(lagging))
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, to=st.sampled_from(sorted(ZONES)))
    def somebody_migrates(self, then: bytes, which: int, to: str) -> None:
        vmi = self._pick(list(self.world.vmis.values()), which)
        if vmi.migratable and vmi.phase == "Running" and vmi.node != to and not self.world.moving(vmi):
            requests.create(self.world, vmi, self.world.uid("theirs"), to, ours=False)
        self._disturbed(then)

    @precondition(lambda self: self._gone_elsewhere())
    @happens(then=BYTES, which=SMALL)
    def somebody_brings_a_vm_back(self, then: bytes, which: int) -> None:
        """To a node that it has left; if that is cordoned, it tolerates that."""
        vmi, node = self._pick(self._gone_elsewhere(), which)
        vmi.tolerant = vmi.tolerant or node in self.world.cordons
        requests.create(self.world, vmi, self.world.uid("theirs"), node, ours=False)
        self._disturbed(then)

    def _gone_elsewhere(self) -> list[tuple[Vmi, str]]:
        """VMs that can be migrated and have left nodes, with these; of the batch, those that are cordoned."""
        return [
            (vmi, node)
            for vmi in self.world.vmis.values()
            for node in ZONES
            if vmi.migratable and vmi.phase == "Running" and not (vmi.ending or self.world.moving(vmi))
            if vmi.node != node and (vmi.uid, node) in self.world.left
            if node not in self.batch or node in self.world.cordons
        ]

    def teardown(self) -> None:
        """What comes of it when nobody disturbs any more, also if every process dies once more before.

        It comes to no worse an end. It may try once more what was refused for good, or what somebody cancelled just
        then; of several nodes another one may then get the last room, and one that gives up early may do so at another
        moment. Whether a pod that tolerates the cordon goes, or stands in the way, depends on where the scheduler would
        put the next one then.
        """
        super().teardown()
        if not (self.processes and self.holds):
            return
        remembering = bool(self.world.number & 1)
        for process in self.processes:
            process.notes.write()
        world = copy.deepcopy(self.world)
        judge = self.judge.of(world)
        processes = [
            process.heir(world, judge, process.invocation, remembering=remembering) for process in self.processes
        ]
        ends, others = come_to_rest(self.world, self.processes), come_to_rest(world, processes)
        if len(ends) == 1 and not self.processes[-1].ways.gives_up_early:
            spared = self.planning.spares_who_returns
            fine = {node: others[node] or (spared and world.is_empty(node, frozenset())) for node in ends}
            assert all(fine[node] for node in ends if ends[node]), f"{ends}, but {others} after a resume"

    def _process(self, which: int) -> Process:
        return self.processes[which % len(self.processes)]

    def _ending(self) -> list[Owner]:
        """Those that are about to start their VM again, or have stopped it."""
        owners = (vmi.owner for vmi in self.world.vmis.values() if vmi.ending)
        return [owner for owner in owners if owner is not None and owner.kind == VM]

    def _sets(self) -> list[Owner]:
        return [owner for owner in self.world.owners.values() if owner.kind == REPLICA_SET]


class OneNode(Simulation):
    """Its process can keep KubeVirt's caps."""

    batch: tuple[str, ...] = ("n1",)
    alone = True


class TwoNodes(Simulation):
    """Their VMs may wait for one another."""

    batch = ("n1", "n2")


class OneOfTwo(TwoNodes):
    """The drain of the other node has yet to come, or is over: whom this one waits for there, it moves itself."""

    drained = ("n1",)


class TwoBatches(OneNode):
    """One node after the other, each a batch: the second one has its turn when the first one is back."""

    batches = (("n1",), ("n2",))
    alone = False

    @precondition(lambda self: self.processes[-1].node == "n1")
    @happens(then=BYTES)
    def the_next_batch_asks_for_its_turn(self, then: bytes) -> None:
        """A node that is done is given back first; what it has sent away stays there."""
        first = self.processes[-1]
        done = {"n1"} if first.drain.is_done and not first.is_running and self.world.is_empty("n1", None) else set()
        if remainder.turn_of(self.batches[1], self.batches, done).is_open:
            self._begin_the_next(first, is_back=bool(done))
        self._disturbed(then)

    @happens(then=BYTES, node=st.sampled_from(sorted({*ZONES} - {"n1", "n2"})))
    def somebody_cordons_or_uncordons(self, then: bytes, node: str) -> None:
        """No node of a batch, which would not be back then, or not out of service."""
        super().somebody_cordons_or_uncordons(then=then, node=node)

    def _begin_the_next(self, first: Process, *, is_back: bool) -> None:
        world, (node,) = self.world, self.batches[1]
        world.happened["a second batch begins"] += 1
        world.happened["a second batch begins after another invocation has taken over"] += world.holder > 0
        if is_back:
            first.leave()
            del world.cordons["n1"]
            world.given_back.add("n1")
            self.processes.remove(first)
        world.cordons[node], world.epochs[node] = OURS, "2"
        plan = self.planning.made(world, self.batches[1])
        self.processes.append(
            Process(world, self.judge, node, self.batches[1], plan, self.planning, first.ways, first.invocation)
        )


class OneNodeAsPlanned(OneNode):
    """Planned and mended by the product."""

    planning = ByProduct([OneNode.batch])


class TwoNodesAsPlanned(TwoNodes):
    """Each has a plan that is mended for it alone."""

    planning = ByProduct([TwoNodes.batch])


class OneOfTwoAsPlanned(OneOfTwo):
    """Its plan is that of both."""

    planning = ByProduct([TwoNodes.batch])


class TwoBatchesAsPlanned(TwoBatches):
    """Both are in one plan, which is held against a fresh look when the second one begins."""

    planning = ByProduct(TwoBatches.batches)
