# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a drain that was planned before: what is still right goes as planned, the others find places anew.

Others' places are kept as long as that leaves one for everybody; only then are they found anew, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import reference_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Stage, pin_to
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import (
    Scene,
    Solution,
    course_of,
    finish,
    movers,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Option
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.order import all_ahead
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.prospects import prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import (
    Attempt,
    Step,
    by_difficulty,
    go,
    search,
    step_to_best,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import (
    interruption,
    vain_restart,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

HARMFUL = (ActionKind.RESTART, ActionKind.STOP)


@dataclass(frozen=True, slots=True)
class Planned:
    """What was planned for somebody on the nodes. id: its mover's.

    fixed: it is not asked whether it is still right. trusted: it need not be yet but for its room, as it waits for what
    has begun and whose end nobody can foretell.
    """

    id: str
    action: Action
    fixed: bool = False
    trusted: bool = False


class PlannedCourse:
    """`kept`: ids of movers that go as planned, `unasked`: those of them of which it was not asked whether they can.

    objections: why migrations were not right as they were planned, by ids of movers, a clause each.
    The board of the scene is at the start before.
    """

    def __init__(
        self,
        scene: Scene,
        planned: Sequence[Planned],
        *,
        known: Collection[str],
        ignored: Collection[str],
        profile: Profile,
    ) -> None:
        """planned: in the order of the plan. known: ids of those who had no place then either.

        ignored: ids of those for whom nothing is planned: they neither leave nor are interrupted.
        """
        policies = {name: Policy.FAIL if name in ignored else policy for name, policy in scene.policies.items()}
        self._scene, self._board, self._profile = replace(scene, policies=policies), scene.board, profile
        self._planned = planned
        self._actions = {entry.action.id: entry.action for entry in planned}
        self._going: set[str] = set()
        self._known = known
        self._machines = {machine.id: machine for machine in scene.residents.machines}
        self._movers = {mover.id: mover for mover in movers(scene) if mover.id not in ignored}
        self._course = course_of(scene, profile)
        self._harmed: set[str] = set()
        self.kept: set[str] = set()
        self.unasked: set[str] = set()
        self.objections: dict[str, str] = {}

    def solve(self) -> Solution:
        left = list(self._planned)
        while left:
            before, left = len(left), self._keep_all(left)
            if len(left) == before:
                break
        late = [entry for entry in left if self._comes_late(entry)]
        later = {entry.id for entry in late}
        free = [mover for name, mover in self._movers.items() if name not in self.kept | later]
        disturbed = bool(left) or any(mover.id not in self._known for mover in free)
        hindered = self._take_back_hindered(free)
        if hindered:
            free = self._placed_beside(hindered, free)
        self._place(free, disturbed=disturbed)
        moved = {step.mover.id for wave in self._course.waves for step in wave}
        for step in hindered:
            if step.mover.id not in moved:  # else there was another place for all
                self._keep_unasked(step)
        self._going = {step.mover.id for wave in self._course.waves for step in wave}
        staying = dict.fromkeys((entry.id for entry in self._keep_all(late)), Policy.FAIL)
        return finish(replace(self._scene, policies={**self._scene.policies, **staying}), self._course)

    def _take_back_hindered(self, free: Sequence[Mover]) -> list[Step]:
        """Of those that are kept though they cannot go now, whom only free ones hinder: none of these waits for one.

        With those that are kept as they go after these.
        """
        steps = [step for wave in self._course.waves for step in wave]
        unasked = [step for step in steps if step.mover.id in self.unasked]
        if not unasked:
            return []
        self._board.reset([step.mover for step in unasked])
        barred = [step for step in unasked if not self._board.legal(step.mover, step.node)]
        for mover in free:
            self._board.put(mover, Stage.AFTER)
        hindered = {step.mover.id for step in barred if self._board.legal(step.mover, step.node)}
        self._board.reset(free)
        hindered = self._with_those_behind(hindered)
        for step in steps:
            if step.mover.id in hindered:
                self._board.put(step.mover, Stage.BEFORE)
            elif step.mover.id in self.unasked:
                self._board.put(step.mover, Stage.AFTER, step.node)
        self._course.waves = [
            wave for wave in self._course.waves if hindered.isdisjoint(step.mover.id for step in wave)
        ]
        self.kept -= hindered
        self.unasked -= hindered
        return [step for step in steps if step.mover.id in hindered]

    def _with_those_behind(self, names: Collection[str]) -> set[str]:
        """Also whoever is kept and waits for one of them by the plan, directly or not."""
        actions = {entry.action.id for entry in self._planned if entry.id in names}
        waiting = (
            entry.id
            for entry in self._planned
            if entry.id in self.kept and not actions.isdisjoint(all_ahead(self._actions, entry.action.id))
        )
        return {*names, *waiting}

    def _placed_beside(self, hindered: Sequence[Step], free: Sequence[Mover]) -> list[Mover]:
        """Who has found no place that leaves the hindered ones theirs, both where they are and where they go."""
        for step in hindered:
            self._board.put(step.mover, Stage.DURING, step.node)
        self._place(free, disturbed=False)
        self._board.reset([step.mover for step in hindered])
        return self._course.stuck

    def _keep_unasked(self, step: Step) -> None:
        """It goes as planned when it can, or its own drain finds it another place."""
        self._board.put(step.mover, Stage.AFTER, step.node)
        self._course.waves.append([step])
        self.kept.add(step.mover.id)
        self.unasked.add(step.mover.id)

    def _keep_all(self, planned: Sequence[Planned]) -> list[Planned]:
        """Let those go that can go as planned; the others are returned."""
        left: list[Planned] = []
        for harmful, group in groupby(planned, key=lambda entry: entry.action.kind in HARMFUL):
            entries = list(group)
            if harmful:
                spared = self._spared([entry for entry in entries if not entry.fixed])
                left += (entry for entry in entries if entry.id in spared)
                entries = [entry for entry in entries if entry.id not in spared]
            for entry in entries:
                step = self._harmful(entry) if harmful else self._harmless(entry)
                if step is None:
                    left.append(entry)
                    continue
                self._board.put(step.mover, Stage.AFTER, step.node)
                self._course.waves.append([step])
                self.kept.add(entry.id)
                if harmful:
                    self._harmed.add(entry.id)
        return left

    def _spared(self, entries: Sequence[Planned]) -> set[str]:
        """Ids of those that are not interrupted, as they can leave unharmed or only have to wait for that.

        Unless the others' places are all that they could take, which is seen when all are placed.
        """
        movers = [self._movers[entry.id] for entry in entries if entry.id in self._movers]
        ways = [mover for mover in movers if mover.chosen]
        free = {way.id for way in ways if self._board.options(way, Profile.NO_SCORING)}
        return free.union(prospects(self._board, [way for way in ways if way.id not in free], self._scene.cluster))

    def _harmless(self, entry: Planned) -> Step | None:
        mover, node = self._movers.get(entry.id), entry.action.target
        if mover is None:
            return None
        if not mover.chosen:
            step = self._evicted(mover, node)
            # Who finds no node any more is to leave after the others, as in a plan that is made now.
            return None if step.node is None and node is not None and not entry.fixed else step
        if node is None or node not in self._board.state.nodes.index:
            self.objections[entry.id] = f"node {node} is gone"
            return None
        objection = self._objection(mover, node, entry.action)
        # Who comes elsewhere meanwhile may be the company that it needs, but makes no room.
        if objection and not (entry.fixed or (entry.trusted and self._board.has_room(mover, node))):
            self.objections[entry.id] = objection
            return None
        if self._comes_late(entry):
            return None
        if objection:
            self.unasked.add(entry.id)
        return _to(mover, node)

    def _objection(self, mover: Mover, node: str, action: Action) -> str:
        """Why a migration is not right as it was planned; empty if it is."""
        if mover.only is not None and node not in mover.only:
            return f"{node} is none of the nodes that it may go to"
        pin = pin_to_or_none(self._scene, node)
        if pin != action.selector:
            has = "another label by which" if pin is not None else "no label any more by which"
            return f"{node} has {has} a migration is pinned to it"
        return "" if self._board.legal(mover, node) else self._board.objection(mover, node)

    def _comes_late(self, entry: Planned) -> bool:
        """Whether it waits for somebody for whom there is no place yet, and who gets none where it is itself so far."""
        if not entry.fixed or entry.action.kind in HARMFUL:
            return False
        ahead = all_ahead(self._actions, entry.action.id)
        others = (other for other in self._planned if other.action.id in ahead and not other.fixed)
        return any(other.id not in self._going and other.id not in self.kept for other in others)

    def _evicted(self, mover: Mover, node: str | None) -> Step:
        """It leaves in any case; where its replacement is expected changes only if that has become impossible."""
        if mover.newcomer is not None and node is not None and self._fits(mover, node):
            return _to(mover, node)
        options = self._board.options(mover, self._profile)
        return step_to_best(mover, options) if options else Step(mover, None)

    def _harmful(self, entry: Planned) -> Step | None:
        machine, scene = self._machines.get(entry.id), self._scene
        if machine is None or scene.policies[machine.id] is Policy.FAIL:
            return None
        found = interruption(machine, scene.policies[machine.id], scene.cluster, self._board.state)
        if not isinstance(found, Mover):
            return None
        node = entry.action.target
        if entry.action.kind is ActionKind.STOP:
            return (
                Step(found, None) if found.newcomer is None or not self._board.options(found, self._profile) else None
            )
        return _to(found, node) if found.newcomer is not None and node is not None and self._fits(found, node) else None

    def _fits(self, mover: Mover, node: str) -> bool:
        return node in self._board.state.nodes.index and self._board.admits(mover, node)

    def _place(self, free: Sequence[Mover], *, disturbed: bool) -> None:
        """Places for the others, first beside those who go as planned. Without a disturbance these stay in any case."""
        attempt = go(self._board, by_difficulty(free, {}), self._profile)
        self._board.reset([step.mover for step in attempt.steps])
        missing = sum(mover.chosen for mover in attempt.stuck)
        if missing and disturbed:
            better = self._search(missing + sum(name in self._movers for name in self._harmed))
            if better is not None:
                attempt = better
        for step in attempt.steps:
            self._board.put(step.mover, Stage.AFTER, step.node)
            self._course.waves.append([replace(step, follows=not self._board.legal(step.mover, step.node))])
        self._course.stuck = list(attempt.stuck)

    def _search(self, missing: int) -> Attempt | None:
        """A better attempt, with everybody back at the start; None, and all as before, if there is none."""
        begun = {step.mover.id for step in self._scene.under_way} | {entry.id for entry in self._planned if entry.fixed}
        waves, kept = self._course.waves, self.kept
        taken_back = [step for wave in waves for step in wave if step.mover.id not in begun]
        self._board.reset([step.mover for step in taken_back])
        targets = {step.mover.id: step.node for step in taken_back if step.mover.chosen and step.node is not None}
        everybody = [mover for name, mover in self._movers.items() if name not in begun]
        held = [
            replace(mover, only=frozenset({targets[mover.id]})) if mover.id in targets else mover for mover in everybody
        ]
        for among in (held, everybody):
            attempt = search(self._board, among, self._profile)
            if attempt.cost[0] < missing:
                self._course.waves = [wave for wave in waves if all(step.mover.id in begun for step in wave)]
                self.kept = kept & begun
                self.unasked &= begun
                self._harmed &= begun
                self.objections.update(dict.fromkeys(targets, "places were found anew for all, as somebody had none"))
                return attempt
        for step in taken_back:
            self._board.put(step.mover, Stage.AFTER, step.node)
        return None


def ways_left(
    scene: Scene, failures: Mapping[str, Sequence[str]], hopeless: Collection[str], *, sparing: bool
) -> Iterator[tuple[str, Mover | tuple[Blocker, ...]]]:
    """Ways out by migration; sparing: not to nodes where it has failed. What stands against one anyway is told."""
    for machine in scene.residents.machines:
        way, nodes = scene.ways[machine.id], failures.get(machine.key, ())
        if machine.key in hopeless and isinstance(way, Mover):
            where = f" to {', '.join(dict.fromkeys(nodes))}" if nodes else ""
            advice = "find out why, and migrate it yourself"
            yield machine.id, (Blocker("failed", Effect.REFUSED, machine.key, f"its migration{where} failed", advice),)
        elif nodes and isinstance(way, Mover):
            allowed = frozenset(scene.board.state.nodes.names) if way.only is None else way.only
            yield machine.id, replace(way, only=allowed - set(nodes)) if sparing else way
        else:
            yield machine.id, way


def sparing_restarted(scene: Scene, begun: Iterable[Action]) -> tuple[Scene, frozenset[str]]:
    """Without a further restart of VMs that were restarted, and may come back as often as they start; with their ids.

    begun: what was planned for other nodes of the batch, whose drains have begun. Who can be migrated still is.
    """
    known = {action.object.title: action for action in begun if action.kind in (ActionKind.MIGRATE, ActionKind.RESTART)}
    kept: dict[str, tuple[Blocker, ...]] = {}
    for machine in scene.residents.machines:
        action, uid = known.get(machine.key), reference_of(VMI, machine.vmi).uid
        if action is None or action.node == machine.node or action.object.uid in ("", uid):
            continue
        may_restart = scene.policies[machine.id] is Policy.RESTART
        if may_restart and (why := vain_restart(machine, scene.cluster, scene.board.state)):
            kept[machine.id] = why
    ways = {name: way if isinstance(way := scene.ways[name], Mover) else why for name, why in kept.items()}
    policies = {**scene.policies, **dict.fromkeys(kept, Policy.FAIL)}
    return replace(scene, ways={**scene.ways, **ways}, policies=policies), frozenset(kept)


def pin_to_or_none(scene: Scene, node: str) -> dict[str, str] | None:
    """The selector for a node; None if it has no label to pin a pod by."""
    try:
        return pin_to(scene.board.state, node)
    except KeyError:
        return None


def _to(mover: Mover, node: str) -> Step:
    return Step(mover, Option(node, 0), 1, (node,))
