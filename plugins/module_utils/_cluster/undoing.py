# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo what a run has left in the cluster: only what is the run's, and as often as it may take.

What cannot be undone keeps nothing else from it. Evacuations are KubeVirt's answer to somebody's eviction, and nobody's
to withdraw here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    find_again,
    find_vmi,
    node_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline, PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.run_traces import (
    RunTraces,
    find_traces,
    line_of_cordon,
    line_of_lease,
    line_of_migration,
    line_of_stopped,
    nodes_of,
    release,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import start_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import maintenance
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import cancel
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_INTERVAL, _A_MOMENT = 0.5, 1.0
# In seconds. What was stopped has so long at least to start, however long the rest has taken.
TO_START = 120.0
# What appears while the rest is undone is undone as well, so often; more of it is no straggler's any more.
_ROUNDS = 3


@dataclass
class Undone:
    """What came of it. done: nodes that the run was done with. problems: what could not be undone, a clause each.

    started: by the node that it was stopped for, and the action.
    """

    done: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    started: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class _Nobody:
    """Hears of VMs that start: the result tells of them."""

    def tell(self, line: str) -> None: ...

    def detail(self, line: str) -> None: ...

    def totals(self, text: str) -> None: ...

    def stands(self, standing: Standing) -> None: ...


class Undoing:
    """Undoes the traces of a run. `require`: raises Failure unless the run is still ours.

    `undone`: what has come of it so far, also where it ends early.
    """

    def __init__(
        self,
        client: Client,
        run: str,
        namespace: str,
        seconds: float,
        require: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        self.undone = Undone()
        self._require = _about_all(require)
        self._patient = client.guarded(self._require)
        # What no webhook can be asked about would take all the time there is: in the first round it is set aside.
        self._client = self._patient.setting_aside()
        self._run = run
        self._namespace = namespace
        self._clock = clock or Clock()
        self._deadline = Deadline(seconds, self._clock)
        # By their lines.
        self._given_up: set[str] = set()
        self._set_aside: set[str] = set()

    def undo(self) -> Undone:
        """Until nothing is left but what cannot be undone. Raises Failure where nothing at all can be done any more.

        A task that has lost the run may hear of it a moment later, and what it asked for shows after that.
        """
        rounds = 0
        while lines := (traces := self._find().without(self._given_up)).lines():
            if rounds == _ROUNDS:
                self.undone.problems += [f"{line} is there again" for line in lines]
                break
            self._undo(traces)
            self._client, rounds = self._patient, rounds + 1
        return self.undone

    def _find(self) -> RunTraces:
        found = find_traces(self._client, self._run, self._namespace)
        self.undone.done = list(found.done)
        return found

    def _undo(self, traces: RunTraces) -> None:
        """One thing after the other, so that nothing moves to a node that is about to be free. Raises Failure."""
        self._set_aside.clear()
        self._cancel(traces.migrations)
        for node in sorted({*traces.nodes, *traces.kept, *nodes_of(traces.leases)}):
            self._give_back(node)
        # Those that are left, as their nodes are gone. A node that is not given back keeps its Lease beside its mark:
        # without it another operator would take the node for free.
        for lease in traces.without(self._given_up | self._set_aside).leases:
            with self._apart(line_of_lease(lease)):
                release(self._client, [lease], self._namespace, self._require)
        # What may have to wait for its node comes last, and is no more than asked for as yet.
        aside = [node for node in traces.stopped_for if self._is_set_aside(node)]
        self._start([node for node in traces.stopped_for if node not in aside], max(TO_START, self._deadline.left))
        self._start(aside, _A_MOMENT)

    def _cancel(self, migrations: tuple[Migration, ...]) -> None:
        """One that has ended since it was found stays, and one whose VM arrives all the same was not cancelled."""
        waiting = list[tuple[Migration, str]]()
        try:
            for migration in migrations:
                with self._apart(line_of_migration(migration)):
                    source = self._node_of(migration)
                    if self._is_under_way(migration):
                        self._require()
                        cancel(self._client, migration)
                        waiting.append((migration, source))
            while waiting and self._deadline.left:
                for one in list(waiting):
                    if not self._goes_on(*one):
                        waiting.remove(one)
                if waiting:
                    self._clock.sleep(_INTERVAL)
        finally:
            for migration, _source in waiting:
                problem = f"migration {_title(migration)} is cancelled, but KubeVirt has not undone it yet"
                self._give_up(line_of_migration(migration), problem)

    def _goes_on(self, migration: Migration, source: str) -> bool:
        """Whether it is not undone yet, as far as that can be seen."""
        with self._apart(line_of_migration(migration)):
            if self._is_under_way(migration):
                return True
            if self._node_of(migration) in ("", source):
                self.undone.cancelled.append(_title(migration))
        return False

    def _node_of(self, migration: Migration) -> str:
        """Where its VM runs."""
        return node_of(find_vmi(self._client, migration.namespace, migration.vmi))

    def _is_under_way(self, migration: Migration) -> bool:
        again = find_again(self._client, migration)
        return again is not None and again.unfinished

    def _give_back(self, node: str) -> None:
        """A cordon of somebody else stays, and so does a node that somebody else holds."""
        wanted = maintenance.Request(
            node=node,
            owner=self._run,
            reason=None,
            keep_foreign=True,
            lease_namespace=self._namespace,
            lease_seconds=1,
            dry_run=False,
        )
        with self._apart(line_of_cordon(node)):
            self._require()
            maintenance.end(self._client, wanted, may=self._require)
            self.undone.given_back.append(node)

    def _is_set_aside(self, node: str) -> bool:
        return line_of_cordon(node) in self._set_aside

    def _start(self, nodes: Collection[str], seconds: float) -> None:
        """A step of each node's in turn, with one pause for all: none waits until another one's VMs run, or do not."""
        going = dict[str, PlanRun]()
        waiting = dict[str, Iterator[None]]()
        for node in nodes:
            with self._apart(line_of_stopped(node)):
                going[node] = start_run(self._client, node, self._run, lambda _nodes: self._require(), _Nobody())
                waiting[node] = going[node].steps(seconds)
        end = self._clock.steady() + seconds
        try:
            while waiting:
                for node in [*waiting]:
                    going[node].means.looks.forget()  # so that it looks at once
                    if not self._goes_a_step(node, waiting[node]):
                        del waiting[node]
                    going[node].ends_at = end
                if waiting:
                    self._clock.sleep(_INTERVAL)
        finally:
            for node, run in going.items():
                self._note(node, run)

    def _goes_a_step(self, node: str, steps: Iterator[None]) -> bool:
        """Whether there is more to do for a node's VMs, and time for it."""
        with self._apart(line_of_stopped(node)):
            return next(steps, self) is None
        return False

    def _note(self, node: str, going: PlanRun) -> None:
        """What has come of its VMs. One that waits while its node is set aside is looked at again after that."""
        for name, entry in going.record.entries.items():
            result = entry.result()
            self.undone.started[node, name] = result
            if entry.has_failed or (entry.unfinished and not self._is_set_aside(node)):
                problem = f"{result['kind']} {entry.title} does not run again: {entry.status()}"
                self._give_up(line_of_stopped(node), problem)

    @contextmanager
    def _apart(self, line: str) -> Iterator[None]:
        """What fails in here is told, and keeps nothing else from being undone. Raises Failure if it concerns all."""
        try:
            yield
        except Failure as error:
            if _concerns_all(error):
                raise
            if error.unadmitted and self._client is not self._patient:
                self._set_aside.add(line)
            elif not error.gone:
                self._give_up(line, f"{error.attempted}: {error.message}")

    def _give_up(self, line: str, problem: str) -> None:
        """Told with the rest, and not tried again."""
        self._given_up.add(line)
        self.undone.problems.append(problem)


def _about_all(require: Callable[[], None]) -> Callable[[], None]:
    """What it raises is no refusal of what was to be undone, whatever asks it."""

    def required() -> None:
        try:
            require()
        except Failure as error:
            error.unasked = True
            raise

    return required


def _concerns_all(error: Failure) -> bool:
    """Whether there is nothing that could be done: no answer, nobody to tell whose the run is, or void credentials.

    Or a proxy that lets nothing through. A server that answers may well do so for the next object, and a right may be
    missing in one namespace alone.
    """
    return error.unanswered or error.unasked or error.unsent or error.status == HTTPStatus.UNAUTHORIZED


def _title(migration: Migration) -> str:
    return f"{migration.namespace}/{migration.name}"
