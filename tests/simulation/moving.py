# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives what only moves, as rebalancing does: VMs and pods, each when what it waits for is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    action_id,
)

from simulation import controllers, requests
from simulation.chances import Chances
from simulation.driven import BYTES, SMALL, Disturbed, happens
from simulation.fates import BITS, DRAWN
from simulation.mover import SECONDS, Mover
from simulation.moves_judge import MovesJudge
from simulation.planner import HOSTNAME
from simulation.scene import add
from simulation.world import NAMESPACE, THEIRS, ZONES, Pod, PodSet, Vmi, World

_VMS, _ROUNDS, _TASKS = 5, 120, 4
_WHILE = 6.0
_WHERE = ("n1", "n2")


class Moved(Disturbed):
    """One plan, carried out by a task that is run again until all has come about; planned anew if it is outdated."""

    judge: MovesJudge

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(shape=st.binary(min_size=12, max_size=12), order=st.binary(min_size=8, max_size=8))
    def begin(self, shape: bytes, order: bytes) -> None:
        """order: which wave each belongs to, and where it goes."""
        world, what = self.world, shape[0]
        for number, (kind, name) in enumerate((("ReplicaSet", "web"), ("StatefulSet", "store"))):
            replicas = 2 + (what >> number & 1)
            made = world.sets[f"uid-of-{name}"] = PodSet(f"uid-of-{name}", kind, name, replicas)
            for which in range(replicas):
                controllers.add_pod(world, made, _WHERE[which % 2], ready=True)
        for number, byte in enumerate(shape[1:]):
            if len(world.vmis) < _VMS:
                add(world, f"vm{number}", byte, _WHERE)
        self.order, self.is_named = order, what >> 2 & 3 == 3
        actions = list(_moves(world, order, is_named=self.is_named))
        retries, patience = what >> 4 & 1, SECONDS if what >> 5 & 1 else None
        self.judge = MovesJudge(world, actions, retries)
        self.mover = Mover(world, self.judge, actions, retries, patience, spares_last=bool(what >> 6 & 1))

    @happens(choices=BYTES, fates=DRAWN)
    def time_goes_by(self, choices: bytes, fates: int = 0) -> None:
        for choice in choices:
            if choice & 1:
                controllers.take(self.world, choice >> 1)
                self.judge.moment()
            else:
                self._tick(Chances(choice >> 2 & 3, fates=fates), choice >> 4)
                fates >>= BITS
        self._count(len(choices))

    @happens(then=BYTES)
    def a_while_goes_by(self, then: bytes) -> None:
        """Long enough for pods to be looked at anew."""
        self.world.now += _WHILE
        self._disturbed(then)

    @happens(lagging=st.integers(0, 3), cut=st.booleans(), fates=DRAWN, failing=st.none() | SMALL, between=SMALL)
    def looks(self, lagging: int, cut: bool, fates: int, failing: int | None, between: int) -> None:
        self._tick(Chances(lagging, int(cut), fates, failing), between)
        self._count()

    @happens(then=BYTES)
    def dies(self, then: bytes) -> None:
        self.mover.die()
        self._disturbed(then)

    @happens(then=BYTES, which=st.sampled_from(("uid-of-web", "uid-of-store")))
    def a_controller_stands_still_or_goes_on(self, then: bytes, which: str) -> None:
        made = self.world.sets[which]
        made.is_paused = not made.is_paused
        self._disturbed(then)

    @precondition(lambda self: any(not pod.machine for pod in self.world.pods.values()))
    @happens(then=BYTES, which=SMALL)
    def somebody_deletes_a_pod(self, then: bytes, which: int) -> None:
        pod = self._pick([pod for pod in self.world.pods.values() if not pod.machine], which)
        pod.ending = True
        self.judge.disturbed.add(pod.owner_uid)
        self._disturbed(then)

    @precondition(lambda self: any(pod.ready and not pod.machine for pod in self.world.pods.values()))
    @happens(then=BYTES, which=SMALL)
    def a_pod_does_not_serve_for_a_moment(self, then: bytes, which: int) -> None:
        pod = self._pick([pod for pod in self.world.pods.values() if pod.ready and not pod.machine], which)
        pod.ready = False
        self.judge.shaken.add(pod.owner_uid)
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, itself=st.booleans())
    def a_vm_ends(self, then: bytes, which: int, itself: bool) -> None:
        vmi = self._pick(list(self.world.vmis.values()), which)
        if itself and vmi.phase == "Running":
            controllers.end_guest(self.world, vmi)
        else:
            vmi.ending = True
        self._disturbed(then)

    @happens(then=BYTES, which=SMALL, byte=st.integers(0, 255))
    def a_vm_comes(self, then: bytes, which: int, byte: int) -> None:
        if self.world.vmi(f"vm{which}") is None and len(self.world.vmis) < _VMS:
            add(self.world, f"vm{which}", byte, _WHERE)
        self._disturbed(then)

    @precondition(lambda self: self.world.vmis)
    @happens(then=BYTES, which=SMALL, to=st.sampled_from(sorted(ZONES)), run=st.sampled_from(("", "run-2")))
    def somebody_migrates(self, then: bytes, which: int, to: str, run: str) -> None:
        """run: of another run, that may want the same."""
        vmi = self._pick(list(self.world.vmis.values()), which)
        if vmi.migratable and vmi.phase == "Running" and vmi.node != to and not self.world.moving(vmi):
            requests.create(self.world, vmi, self.world.uid("theirs"), to, ours=False).run = run
        self._disturbed(then)

    @happens(then=BYTES, node=st.sampled_from(sorted(ZONES)))
    def somebody_cordons_or_uncordons(self, then: bytes, node: str) -> None:
        if self.world.cordons.pop(node, None) is None:
            self.world.cordons[node] = THEIRS
        self._disturbed(then)

    def teardown(self) -> None:
        """It ends, also while a controller stands still; and when nobody disturbs any more, with all that can move.

        What has come about is not done again by another task.
        """
        super().teardown()
        if not (self.holds and hasattr(self, "mover")):
            return
        world, mover = self.world, self.mover
        world.calm, world.tight = True, False
        if any(made.is_paused for made in world.sets.values()):
            self._come_to_an_end()
            for made in world.sets.values():
                made.is_paused = False
        self._come_to_an_end()
        for _task in range(_TASKS):
            self._come_to_an_end()
            assert not mover.is_late, f"{mover.actions} are waited for in vain"
            if mover.is_done:
                break
        for entry in mover.failed:
            vmi = world.vmis[entry.uid]
            assert isinstance(entry, Migrating), f"{entry} fails for ever"
            assert not world.fits(vmi, entry.target_node or ""), f"{entry} fails for ever"
        if mover.is_done and not self.is_named:
            asked = mover.asked
            self._come_to_an_end()
            assert mover.is_done, "what has come about is not done"
            assert mover.asked == asked, "what has come about is done again"

    def _come_to_an_end(self) -> None:
        mover = self.mover
        for _round in range(_ROUNDS):
            for _step in range(40):
                if not controllers.take(self.world, 0):
                    break
            self.world.now += 3.0
            self._tick(Chances())
            if mover.run is None:
                return
        raise AssertionError(f"this does not come to an end: {mover.run}")

    def _tick(self, chances: Chances, between: int = 0) -> None:
        """between: how often something happens when the task knows what to do next, and what."""

        def happen() -> None:
            for _step in range(between & 3):
                controllers.take(self.world, between >> 2)
                self.judge.moment()

        self.judge.moment()
        self.mover.tick(chances, happen)
        if self.mover.refused:
            self.world.happened["a plan is made anew"] += 1
            self.mover.actions = list(_moves(self.world, self.order, is_named=self.is_named))
            self.judge.follows(self.mover.actions)
            self.mover.refused = False


def _moves(world: World, order: bytes, *, is_named: bool) -> Iterator[Action]:
    """Waves, of which each waits for the one before and leaves a pod to serve of each set, as rebalance_plan has them.

    is_named: as pod_eviction does it, one wave of whichever pods have the names.
    """
    waves: list[list[Action]] = [[], [], []]
    going = [Counter[str]() for _wave in waves]
    bits = int.from_bytes(order, "big")
    for vmi in world.vmis.values():
        nodes = [node for node in ZONES if world.fits(vmi, node)] or sorted(ZONES)
        node, bits = nodes[bits % len(nodes)], bits >> 3
        free = vmi.migratable and vmi.phase == "Running" and not (vmi.ending or world.moving(vmi))
        if free and node != vmi.node and not is_named:
            waves[bits % 3].append(_migrate(vmi, node))
        bits >>= 2
    for pod in world.pods.values():
        wave, bits = bits % 4, bits >> 2
        if wave == 3 or pod.machine or pod.ending or not pod.ready:
            continue
        serving = world.serving(pod.owner_uid)
        number = next((n for n in range(wave, 3) if going[n][pod.owner_uid] < serving - 1), None)
        if number is not None:
            going[number][pod.owner_uid] += 1
            waves[number].append(_evict(pod, is_named=is_named))
    after: tuple[str, ...] = ()
    for part in waves:
        yield from (replace(action, after=() if is_named else after) for action in part)
        after = tuple(action.id for action in part) or after


def _migrate(vmi: Vmi, node: str) -> Action:
    reference = ObjectReference("VirtualMachineInstance", NAMESPACE, vmi.name, vmi.uid)
    name = action_id(1, ActionKind.MIGRATE, reference)
    return Action(name, ActionKind.MIGRATE, 1, vmi.node, reference, vmi.node, node, {HOSTNAME: node})


def _evict(pod: Pod, *, is_named: bool) -> Action:
    reference = ObjectReference("Pod", NAMESPACE, pod.name, "" if is_named else pod.uid)
    node = "" if is_named else pod.node
    return Action(action_id(1, ActionKind.EVICT, reference), ActionKind.EVICT, 1, node, reference, node or None)
