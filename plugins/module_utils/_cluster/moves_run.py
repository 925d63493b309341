# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out what only moves: each action when all that it waits for is over.

What leads to a move is over when it has left its node, and where it was a pod when there is another one in its place:
who follows it would find nobody to be near. What fails stops nothing but what waits for it. Each action is looked at
when it has its turn, so what waits costs no request, and the same actions can be given again at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import (
    MigrationLooks,
    read_prospects,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.move_looks import MoveLooks
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means, PlanRun, Teller
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import Verbs
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import telling
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import ALREADY_THERE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING, Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution, follow
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.replacement import Replacement, is_going, is_ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    plan_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import ready

_Kind = TypeVar("_Kind", bound=Entry)


@dataclass(frozen=True, slots=True)
class Moves:
    """What is to move. `actions`: MIGRATE and EVICT; an object without a uid is whichever has the name.

    run: a name by which migrations are known again. retries: of a failed migration. check: raises InvalidRequest unless
    VMIs can be migrated. patience: seconds in which something has to come to its end, where each end gives what is left
    as much time again; None if all has one time. spares_last: whether a pod stays that has come to be the only one of
    its controller that serves.
    """

    actions: Sequence[Action]
    check: Callable[[Iterable[Prospect]], None]
    run: str = ""
    retries: int = 0
    patience: float | None = None
    spares_last: bool = False


@dataclass(kw_only=True)
class MovesRun(PlanRun):
    """`plan`: what of the moves has had its turn, and is to go elsewhere.

    replacements: what is to come instead of pods, by controller. gone: ids of evictions whose pods were not there.
    refused: why actions were not begun when they had their turn, a clause each. instead: what is to come instead, by
    ids of evictions.
    """

    client: Client
    looks: MoveLooks
    moves: Moves
    replacements: list[Replacement] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    instead: dict[str, Replacement] = field(default_factory=dict)
    _turns: set[str] = field(default_factory=set)
    _ended: int = 0

    @classmethod
    def begin(
        cls,
        client: Client,
        moves: Moves,
        prospects: Iterable[Prospect],
        settings: VerbSettings,
        teller: Teller,
        may: May,
    ) -> MovesRun:
        """What waits for nothing has its turn, and in a dry run everything. Nothing is done yet.

        prospects: of all VMIs, which can be migrated. may: raises Failure when nothing may be done any more.
        Raises Failure, InvalidRequest.
        """
        looks = MoveLooks(client, MigrationLooks(client, settings.run, settings.unschedulable_timeout))
        means = Means(looks, Verbs(client, settings), lambda _nodes: may(), teller)
        return cls.by(means, client, looks, moves, prospects, rehearses=settings.dry_run)

    @classmethod
    def by(
        cls,
        means: Means,
        client: Client,
        looks: MoveLooks,
        moves: Moves,
        prospects: Iterable[Prospect],
        *,
        rehearses: bool = False,
    ) -> MovesRun:
        """As `begin`, by means that are given; rehearses: it is a dry run. Raises Failure, InvalidRequest."""
        run = cls(
            means,
            Execution(node="", run=moves.run, retries=moves.retries, binding=True),
            plan_of(()),
            client=client,
            looks=looks,
            moves=moves,
        )
        known = list(prospects)
        run._take(ready(moves.actions, ()), known)
        if rehearses:
            run._take(list(run._would_follow()), known, spares_last=False)
        if run.refused and not moves.spares_last:
            raise InvalidRequest(
                "evict the pods",
                run.refused,
                "Migrate virtual machines by vmi_migration, and plan anew what has changed; nothing was evicted.",
            )
        return run

    def carry_out(self, seconds: float | None, *, dry_run: bool) -> None:
        """Until it is over, or for so long; None to take only the first step. Then `trouble` says why it is not over.

        Raises Failure as long as nothing was changed.
        """
        if dry_run:
            self.rehearse()
            return
        try:
            if seconds is None:
                self.start()
            else:
                self.run(seconds)
        except Failure as error:
            if not self.record.has_acted:
                raise
            self.trouble = error

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """What has had its turn, in the order of the moves."""
        found = (self.record.entries.get(action.id) for action in self.moves.actions)
        return [entry for entry in found if isinstance(entry, kind)]

    @property
    def awaited(self) -> list[Replacement]:
        """What has yet to come instead of pods."""
        return [replacement for replacement in self.replacements if not replacement.done]

    def _conclude(self) -> None:
        evicting = {entry.action for entry in self.of(Evicting) if entry.unfinished}
        for replacement in self.awaited:
            if not any(self.instead.get(name) is replacement for name in evicting):
                replacement.look(self.looks.pods)
        ended = len(self.record.entries) - len(self.record.unfinished) + len(self.replacements) - len(self.awaited)
        if self.moves.patience is not None and ended > self._ended:
            self.ends_at = self.means.clock.steady() + self.moves.patience
        self._ended = ended
        while due := self._due():
            self._take(due)
        self.is_over = not (self.record.unfinished or self.awaited)

    def _tell_totals(self) -> None:
        later = len(self.moves.actions) - len(self._turns)
        self.means.teller.totals(telling.counts(self.record, later))

    def _look(self, seconds: float) -> Observation:
        evicting = {entry.namespace for entry in self.record.unfinished if isinstance(entry, Evicting)}
        replacing = {replacement.title.partition("/")[0] for replacement in self.awaited}
        migrating = any(isinstance(entry, Migrating) for entry in self.record.unfinished)
        self.looks.turn_to(evicting | replacing, migrating=migrating)
        found = super()._look(seconds)
        self._count_again()
        return found

    def _count_again(self) -> None:
        """Of controllers that have a pod which is still to be evicted: a budget may have kept it until others serve."""
        # Also of one whose eviction got no answer, as long as it is there.
        there = {pod["metadata"]["uid"] for pod in self.looks.pods if not is_going(pod)}
        evicting = self.of(Evicting)
        held = {entry.action for entry in evicting if entry.outcome == WAITING and entry.uid in there}
        replacements = [self.instead[name] for name in held if name in self.instead]
        touched = {id(self.instead.get(entry.action)) for entry in evicting if entry.action not in held}
        for replacement in {id(found): found for found in replacements}.values():
            replacement.count_again(self.looks.pods, untouched=id(replacement) not in touched)

    def _is_idle(self) -> bool:
        # No watch tells of pods.
        return not self.awaited and super()._is_idle()

    def _due(self) -> list[Action]:
        """What has its turn now, and has not had it."""
        entries, awaited = self.record.entries, {id(replacement) for replacement in self.awaited}
        over = {name for name, entry in entries.items() if not (entry.unfinished or entry.has_failed)}
        over = {name for name in over.union(self.gone) if id(self.instead.get(name)) not in awaited}
        return [action for action in ready(self.moves.actions, over) if action.id not in self._turns]

    def _would_follow(self) -> Iterator[Action]:
        """What has not had its turn, without what waits for what was refused."""
        stuck = self._turns.difference(self.record.entries, self.gone)
        for action in self.moves.actions:
            if not stuck.isdisjoint(action.after):
                stuck.add(action.id)
            elif action.id not in self._turns:
                yield action

    def _take(
        self, actions: Collection[Action], known: Iterable[Prospect] | None = None, *, spares_last: bool = True
    ) -> None:
        """Let actions have their turn, by a fresh look at what they are about. Raises Failure, and nothing is taken.

        known: of VMIs, by a fresh look; None to read them. spares_last: whether those who are the last ones now stay,
        if they are to stay at all; who leaves later may not be by then.
        """
        requests = [request_of(action) for action in actions if action.kind is ActionKind.MIGRATE]
        found = read_prospects(self.client, requests) if known is None else list(known)
        namespaces = [action.object.namespace for action in actions if action.kind is ActionKind.EVICT]
        pods = self.looks.read_pods(namespaces) if namespaces else []
        prospects = {prospect.request.title: prospect for prospect in found}
        by_name = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in pods}
        refused, taken = len(self.refused), list[Action]()
        entries = dict[str, Entry]()
        following = list[Prospect]()
        for action in actions:
            if action.kind is ActionKind.EVICT:
                pod = self._pod(action, by_name)
                if pod is not None and (not spares_last or self._is_spare(pod, pods, taken)):
                    taken.append(_of_pod(action, pod))
                    self._await(action, self._replacement(action, pod, pods))
                elif action.id in self.gone and action.object.uid:
                    self._await(action, self._replacement(action, None, pods))
                continue
            prospect = prospects[action.object.title]
            if known is None and not self._is_admitted(prospect):
                continue
            move = _of_vmi(action, prospect)
            entries[action.id] = _entry(move, prospect)
            if prospect.is_moving:
                taken.append(move)
                following.append(prospect)
        self._turns.update(action.id for action in actions)
        self.looks.migrations.follow(following)
        self.looks.hasten()
        plan = plan_of((*self.plan.actions, *taken))
        before = follow(plan, self.record, self.execution)
        self.record = replace(self.record, entries={**self.record.entries, **entries})
        self._follow(plan)
        if known is None:
            self._tell(before)
            for problem in self.refused[refused:]:
                self.means.teller.tell(f"{problem}. What waits for it stays as well")

    def _pod(self, action: Action, pods: Mapping[str, JsonObject]) -> JsonObject | None:
        """That an action is about; None if it is gone, or not to be evicted."""
        pod = pods.get(action.object.title)
        if pod is None or action.object.uid not in ("", pod["metadata"]["uid"]):
            self.gone.append(action.id)
            return None
        if of_a_machine(pod):
            self.refused.append(f"pod {action.object.title} belongs to a virtual machine")
            return None
        return pod

    def _is_spare(self, pod: JsonObject, pods: Iterable[JsonObject], taken: Iterable[Action]) -> bool:
        """Whether another one of its controller serves while it is away, if that matters; who serves not is missed not.

        taken: what else begins now.
        """
        owner = controller(pod)
        if not self.moves.spares_last or owner is None or not is_ready(pod):
            return True
        leaving = {entry.uid for entry in self.of(Evicting) if entry.unfinished}
        leaving |= {pod["metadata"]["uid"], *(action.object.uid for action in taken)}
        others = (other for other in pods if other["metadata"]["uid"] not in leaving and is_ready(other))
        if any((controller(other) or {}).get("uid") == owner["uid"] for other in others):
            return True
        title = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.refused.append(f"pod {title} is the only one of {owner['kind']} {owner['name']} that serves by now")
        return False

    def _replacement(self, action: Action, pod: JsonObject | None, pods: Sequence[JsonObject]) -> Replacement | None:
        """What has yet to come in place of a pod; None if nothing does, or nobody knows.

        pod: None of one that an earlier process may have evicted, as others may be, too.
        """
        namespace, entries = action.object.namespace, self.record.entries
        settled = self._turns.union(entries)
        beside = [entry for entry in pods if entry["metadata"]["namespace"] == namespace]
        there = {entry["metadata"]["uid"] for entry in beside}
        former = {other.object.uid: other for other in self.moves.actions if other.kind is ActionKind.EVICT}
        gone = [
            other.object.name
            for uid, other in former.items()
            if uid and uid not in there and other.object.namespace == namespace and other.id not in settled
        ]
        if pod is not None:
            return Replacement.of(pod, beside, gone, former)
        return Replacement.of_gone(action.object.name, gone, beside, former)

    def _await(self, action: Action, replacement: Replacement | None) -> None:
        """Wait for what comes instead. A controller that has yet to replace earlier pods replaces all of them."""
        if replacement is None:
            return
        known = next((entry for entry in self.awaited if entry.controller == replacement.controller), None)
        if known is None:
            self.replacements.append(replacement)
        else:
            known.take_over(replacement)
        self.instead[action.id] = known or replacement

    def _is_admitted(self, prospect: Prospect) -> bool:
        """Whether it can still be migrated: others had their turn before."""
        try:
            self.moves.check([prospect])
        except InvalidRequest as error:
            self.refused += error.problems
            return False
        return True


def request_of(action: Action) -> MigrationRequest:
    """What an action of MIGRATE asks for."""
    return MigrationRequest(
        namespace=action.object.namespace,
        name=action.object.name,
        target_node=action.target,
        added_node_selector={} if action.target else dict(action.selector),
        uid=action.object.uid,
        source_node=action.source or "",
    )


def _of_pod(action: Action, pod: JsonObject) -> Action:
    """What it waited for is over."""
    metadata, node = pod["metadata"], str(pod["spec"].get("nodeName") or "")
    reference = ObjectReference("Pod", metadata["namespace"], metadata["name"], metadata["uid"])
    return replace(action, object=reference, node=node, source=node, after=())


def _of_vmi(action: Action, prospect: Prospect) -> Action:
    """What it waited for is over."""
    return replace(
        action,
        object=replace(action.object, uid=prospect.uid),
        source=prospect.source_node,
        selector=dict(prospect.node_selector),
        after=(),
    )


def _entry(action: Action, prospect: Prospect) -> Migrating:
    """Where a VMI stands before anything is done."""
    entry = Migrating.begin(action)
    if prospect.in_flight is not None:
        return entry.following(prospect.in_flight)
    return replace(entry, outcome=ALREADY_THERE) if prospect.fulfilled else entry
