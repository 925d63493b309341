# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster during a drain, with each mover where it was, on its way, or where it goes, and what the scheduler says.

The nodes that are drained are cordoned in the state that a board is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray, IntArray, np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant, occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import (
    Mover,
    needs_exact_look,
    pin,
    pinned,
    pinned_anywhere,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Options
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import FilterPlugin, PluginError
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_affinity import NodeAffinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_name import NodeName
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.node_unschedulable import (
    NodeUnschedulable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.taint_toleration import (
    TaintToleration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate, total_scores
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import SCORERS, Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, StateChange
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import domains_of

# What they say depends on no other pod.
_OF_THE_NODE: tuple[FilterPlugin, ...] = (NodeUnschedulable(), NodeName(), TaintToleration(), NodeAffinity())
# No pod can have this name.
_NOBODY = occupant({"metadata": {"name": "/"}, "spec": {"containers": []}})


class Stage(Enum):
    """BEFORE: only at its source. DURING: on its way, at both ends. AFTER: only where it goes."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a mover has no node: the scheduler's message, and its reasons by node."""

    message: str
    reasons: dict[str, list[str]]


class Board:
    def __init__(self, state: ClusterState, draining: frozenset[str], avoid: frozenset[str] = frozenset()) -> None:
        self.state = state
        self.draining = draining
        self.avoid = state.nodes.named(avoid)
        self._changes: dict[str, list[StateChange]] = {}
        self._at: dict[str, tuple[Stage, str | None]] = {}
        self._taken: list[StateChange] = []
        self.pinnable = _pinnable(state) & ~state.nodes.named(draining)

    def put(self, mover: Mover, stage: Stage, node: str | None = None) -> None:
        """Take a mover to a stage, from any other. `node`: where it goes; None: nowhere, or not known.

        Those of its pods that are taken to be gone already stay so.
        """
        for change in reversed(self._changes.pop(mover.id, [])):
            self.state.undo(change)
        self._at[mover.id] = stage, node
        if stage is Stage.BEFORE:
            return
        there = [occupant.key for occupant in mover.leaving if occupant.key in self.state]
        changes = self._changes[mover.id] = [self.state.remove(key) for key in there]
        if stage is Stage.DURING:
            changes += [self.state.add(occupant, mover.source) for occupant in mover.parting if occupant.key in there]
        if node is not None and mover.newcomer is not None:
            changes.append(self.state.add(mover.newcomer.occupant, node))

    def take(self, key: str) -> None:
        """Take a pod off its node until the board is cleared: it is a mover's newcomer, there already."""
        self._taken.append(self.state.remove(key))

    def keep(self) -> None:
        """Leave the state as it is."""
        self._taken.clear()
        self._changes.clear()
        self._at.clear()

    def clear(self) -> None:
        """Leave the state as it was before there was a board."""
        for changes in self._changes.values():
            for change in reversed(changes):
                self.state.undo(change)
        for change in reversed(self._taken):
            self.state.undo(change)
        self._taken.clear()
        self._changes.clear()
        self._at.clear()

    def reset(self, movers: Sequence[Mover]) -> None:
        for mover in movers:
            self.put(mover, Stage.BEFORE)

    def options(self, mover: Mover, profile: Profile) -> Options:
        """Nodes that the newcomer, now nowhere, can go to, the best first; none if there is none.

        Where the scheduler chooses, the best is what it chooses, and the order among equals is that of the nodes.
        """
        if mover.newcomer is None:
            return Options.none()
        return self._choices(mover, mover.newcomer, profile) if mover.chosen else self._guesses(mover, profile)

    def legal(self, mover: Mover, node: str | None) -> bool:
        """Whether the newcomer of a mover, now at its source, could be placed on a node; on none, it always can."""
        if mover.newcomer is None or node is None:
            return node is None
        number = self.state.nodes.index[node]
        if mover.chosen:
            return bool(self._fitting(pinned(mover.newcomer, self._hostname(node)))[number])
        for gone in (False, True):
            with self._parting(mover, gone=gone):
                fits = self._fitting(mover.newcomer)
            if fits.any():
                return bool(fits[number])
        return False

    def admits(self, mover: Mover, node: str | None) -> bool:
        """As `legal`, but where the scheduler chooses only whether the node fits once those that leave are gone."""
        if mover.chosen or mover.newcomer is None or node is None:
            return self.legal(mover, node)
        with self._parting(mover, gone=True):
            return bool(self._fitting(mover.newcomer)[self.state.nodes.index[node]])

    def has_room(self, mover: Mover, node: str) -> bool:
        """Whether a node could take the newcomer of a mover if only others came, as those that it has to be near.

        Who has to be far from it goes by nobody's coming.
        """
        if mover.newcomer is None:
            return False
        newcomer = pinned(mover.newcomer, self._hostname(node)) if mover.chosen else mover.newcomer
        alone = replace(newcomer.occupant, affinity=replace(newcomer.occupant.affinity, required=()))
        return bool(self._fitting(replace(newcomer, occupant=alone, spread=()))[self.state.nodes.index[node]])

    def reach(self, newcomer: Pod | None) -> BoolArray:
        """Nodes that a newcomer may ever come to, whoever else is there."""
        return self.state.nodes.none() if newcomer is None else self._fitting(newcomer, _OF_THE_NODE)

    @contextmanager
    def crowded(self, guests: Sequence[Occupant], node: str | None) -> Iterator[None]:
        """As if the room that guests need were taken on a node, within a `with` statement."""
        if not guests or node is None:
            yield
            return
        needed: Counter[str] = Counter()
        for guest in guests:
            needed.update(guest.requests)
        change = self.state.add(replace(_NOBODY, requests=dict(needed)), node)
        try:
            yield
        finally:
            self.state.undo(change)

    def refusal(self, mover: Mover) -> Refusal:
        """What the scheduler says of the newcomer, now nowhere, pinned if there is only one node it may go to."""
        newcomer = mover.newcomer
        if newcomer is None:
            return Refusal("", {})
        for node in mover.only or ():
            newcomer = pinned(newcomer, self._hostname(node))
        with self._parting(mover, gone=not mover.chosen):
            try:
                found = evaluate(newcomer, self.state, FILTERS)
            except PluginError as error:
                return Refusal(str(error), {})
        return Refusal(found.message, found.reasons())

    def objection(self, mover: Mover, node: str) -> str:
        """What the scheduler says of a node to which a mover cannot be migrated now, a clause."""
        if mover.newcomer is None:
            return "nothing tells what would come there"
        try:
            found = evaluate(pinned(mover.newcomer, self._hostname(node)), self.state, FILTERS)
        except PluginError as error:
            return str(error)
        return f"the scheduler says of {node}: {', '.join(found.reasons_of(self.state.nodes.index[node]))}"

    def _choices(self, mover: Mover, newcomer: Pod, profile: Profile) -> Options:
        nodes = self.state.nodes
        try:
            verdict = evaluate(newcomer, self.state, FILTERS)
            anywhere = pinned_anywhere(newcomer)
            fits = verdict.fits if anywhere is newcomer else evaluate(anywhere, self.state, FILTERS).fits
            fits = fits & self.pinnable
            if mover.only is not None:
                fits = fits & nodes.named(mover.only)
            feasible: IntArray = np.flatnonzero(fits)
            if needs_exact_look(newcomer):
                exact = [self.legal(mover, nodes.names[node]) for node in feasible]
                feasible = feasible[np.array(exact, dtype=np.bool_)]
            scores = total_scores(newcomer, self.state, feasible, SCORERS[profile])
        except PluginError:
            return Options.none()
        even = verdict.fits if anywhere is newcomer else self._even(mover, newcomer)
        return Options(nodes.names, feasible, scores, avoided=self.avoid[feasible], uneven=~even[feasible])

    def _even(self, mover: Mover, newcomer: Pod) -> BoolArray:
        """Nodes on which the newcomer keeps its spread constraints once those that leave are gone."""
        with self._parting(mover, gone=True):
            return evaluate(newcomer, self.state, FILTERS).fits

    def _guesses(self, mover: Mover, profile: Profile) -> Options:
        """The scheduler tries at once, and again when those that leave are gone."""
        for gone in (False, True):
            with self._parting(mover, gone=gone):
                options = Options.none() if mover.newcomer is None else self.ranked(mover.newcomer, profile)
            if options:
                return options
        return Options.none()

    def ranked(self, newcomer: Pod, profile: Profile) -> Options:
        """Nodes among which the scheduler chooses for a pod, as things are, the best first."""
        try:
            feasible = evaluate(newcomer, self.state, FILTERS).feasible
            scores = total_scores(newcomer, self.state, feasible, SCORERS[profile])
        except PluginError:
            return Options.none()
        return Options(self.state.nodes.names, feasible, scores)

    def _hostname(self, node: str) -> str:
        """The value of the label, by which pods are pinned."""
        return self.state.nodes.nodes[self.state.nodes.index[node]].labels.get(HOSTNAME, "")

    def _fitting(self, pod: Pod, filters: Sequence[FilterPlugin] = FILTERS) -> BoolArray:
        """Nodes that a pod fits; none if the scheduler stumbles over it."""
        try:
            return evaluate(pod, self.state, filters).fits
        except PluginError:
            return self.state.nodes.none()

    @contextmanager
    def _parting(self, mover: Mover, *, gone: bool) -> Iterator[None]:
        """As if those that leave were on their way out, or gone, within a `with` statement."""
        before = self._at.get(mover.id, (Stage.BEFORE, None))
        self.put(mover, Stage.AFTER if gone else Stage.DURING)
        try:
            yield
        finally:
            self.put(mover, *before)


def pin_to(state: ClusterState, node: str) -> dict[str, str]:
    """The node selector that pins a migration to a node."""
    return pin(state.nodes.nodes[state.nodes.index[node]].labels)


def _pinnable(state: ClusterState) -> BoolArray:
    """Nodes whose host name label is theirs alone."""
    hosts = domains_of(state.nodes, HOSTNAME)
    alone: BoolArray = hosts.add_up(np.ones(len(state.nodes), dtype=np.int64))[hosts.ids] == 1
    return alone
