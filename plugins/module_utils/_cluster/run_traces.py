# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has left in the cluster, and how it is undone: only what is the run's, and as often as it may take.

Evacuations are KubeVirt's answer to somebody's eviction, and nobody's to withdraw here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    find_again,
    find_vmi,
    listed,
    migrations_path,
    node_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import start_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import maintenance
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import Leases
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.migrations import cancel
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import (
    FIELD_MANAGER,
    read_nodes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import VM
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import (
    ANNOTATION,
    KEPT,
    MAINTAINED,
    find_mark,
    nodes_done,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import lease_name, parse_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    Migration,
    read_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks, find_notes

_INTERVAL = 0.5
# What appears while the rest is undone is undone as well, so often; more of it is no straggler's any more.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RunTraces:
    """migrations: unfinished ones. nodes: that carry its mark. leases: of nodes. stopped_for: nodes.

    done: nodes that it is done with, by name. There is nothing to be undone of them.
    """

    migrations: tuple[Migration, ...]
    nodes: tuple[str, ...]
    leases: tuple[JsonObject, ...]
    stopped_for: tuple[str, ...]
    done: tuple[str, ...]

    def lines(self) -> list[str]:
        """What is to be undone, one line each."""
        held = {lease_name(node) for node in self.nodes}
        return [
            *map(_of_migration, self.migrations),
            *map(_of_cordon, self.nodes),
            *(_of_lease(lease) for lease in self.leases if lease["metadata"]["name"] not in held),
            *map(_of_stopped, self.stopped_for),
        ]

    def without(self, lines: Container[str]) -> RunTraces:
        """What is to be undone besides."""
        return replace(
            self,
            migrations=tuple(migration for migration in self.migrations if _of_migration(migration) not in lines),
            nodes=tuple(node for node in self.nodes if _of_cordon(node) not in lines),
            leases=tuple(lease for lease in self.leases if _of_lease(lease) not in lines),
            stopped_for=tuple(node for node in self.stopped_for if _of_stopped(node) not in lines),
        )


@dataclass(frozen=True, slots=True, order=True)
class Stopped:
    """What a run has stopped and what does not run again yet: a VM or replica set, and the node that it is for."""

    kind: str
    namespace: str
    name: str
    node: str


@dataclass(frozen=True, slots=True)
class RunLeft:
    """What a run that ends has not brought back. stopped: in order. taken: nodes that carry its mark, by name.

    leases: of nodes without any mark of it, which it has given back, though it was kept from releasing them.
    """

    stopped: tuple[Stopped, ...]
    taken: tuple[str, ...]
    leases: tuple[JsonObject, ...]

    def lines(self) -> list[str]:
        """A clause each."""
        return [
            *(f"{item.kind} {item.namespace}/{item.name}, stopped for node {item.node}" for item in self.stopped),
            *(f"node {node}, not given back" for node in self.taken),
        ]


@dataclass
class Undone:
    """What came of it. done: nodes that the run was done with. problems: what could not be undone, a clause each."""

    done: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    started: list[JsonObject] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Nobody:
    """Hears of VMs that start: the result tells of them."""

    def tell(self, line: str) -> None: ...

    def detail(self, line: str) -> None: ...

    def totals(self, text: str) -> None: ...

    def stands(self, standing: Standing) -> None: ...


def find_traces(client: Client, run: str, namespace: str) -> RunTraces:
    """Raises Failure."""
    labelled = {"labelSelector": f"{RUN_LABEL}={run}"}
    migrations = map(
        read_migration, listed(client, migrations_path(None), "list the migrations of the run", **labelled)
    )
    leases, nodes = _leases(client, run, namespace), read_nodes(client)
    return RunTraces(
        migrations=tuple(migration for migration in migrations if migration.unfinished),
        nodes=_taken(nodes, run),
        leases=leases,
        stopped_for=tuple(_nodes_waiting(client, run, nodes)),
        done=tuple(sorted(nodes_done(nodes, run))),
    )


def find_left(client: Client, run: str, namespace: str) -> RunLeft:
    """Raises Failure."""
    leases, nodes = _leases(client, run, namespace), read_nodes(client)
    taken = _taken(nodes, run)
    held = {lease_name(node) for node in (*taken, *_taken(nodes, run, KEPT))}
    return RunLeft(
        stopped=tuple(sorted(_stopped(client, run, nodes))),
        taken=taken,
        leases=tuple(lease for lease in leases if lease["metadata"]["name"] not in held),
    )


def release(client: Client, leases: Iterable[JsonObject], namespace: str, require: Callable[[], None]) -> None:
    """Let go of nodes that were given back. Raises Failure, as `require` does unless the run is still ours."""
    found = Leases(client, namespace, {"fieldManager": FIELD_MANAGER})
    for lease in leases:
        require()
        found.release(lease)


def stopped_for(client: Client, owner: str) -> list[str]:
    """Nodes for which the owner has stopped what does not run again yet. Raises Failure."""
    return _nodes_waiting(client, owner, read_nodes(client))


def maintained(client: Client, run: str, nodes: Iterable[str]) -> list[str]:
    """Those of these nodes that the run is done with, in order. Raises Failure."""
    wanted = set(nodes)
    found = read_nodes(client, labels=f"{MAINTAINED}={run}") if wanted else []
    return sorted(wanted.intersection(node["metadata"]["name"] for node in found))


class Undoing:
    """Undoes the traces of a run. `require`: raises Failure unless the run is still ours."""

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
        self._client = client
        self._run = run
        self._namespace = namespace
        self._clock = clock or Clock()
        self._deadline = Deadline(seconds, self._clock)
        self._require = _about_all(require)
        # By their lines.
        self._given_up: set[str] = set()

    def undo(self) -> Undone:
        """Until nothing is left but what cannot be undone. Raises Failure.

        A task that has lost the run may hear of it a moment later, and what it asked for shows after that.
        """
        rounds = 0
        while lines := (traces := self._find().without(self._given_up)).lines():
            if rounds == _ROUNDS:
                self.undone.problems += [f"{line} is there again" for line in lines]
                break
            self._undo(traces)
            rounds += 1
        return self.undone

    def _find(self) -> RunTraces:
        found = find_traces(self._client, self._run, self._namespace)
        self.undone.done = list(found.done)
        return found

    def _undo(self, traces: RunTraces) -> None:
        """One thing after the other, so that nothing moves to a node that is about to be free. Raises Failure."""
        self._cancel(traces.migrations)
        for node in sorted({*traces.nodes, *_nodes_of(traces.leases)}):
            self._give_back(node)
        # Those that are left, as their nodes are gone.
        for lease in traces.leases:
            self._can(_of_lease(lease), partial(release, self._client, [lease], self._namespace, self._require))
        for node in traces.stopped_for:
            self._start(node)

    def _cancel(self, migrations: tuple[Migration, ...]) -> None:
        """One that has ended since it was found stays, and one whose VM arrives all the same was not cancelled."""
        sources = list[tuple[Migration, str]]()
        for migration in migrations:
            source = self._node_of(migration)
            if self._is_under_way(migration):
                self._require()
                if self._can(_of_migration(migration), partial(cancel, self._client, migration)):
                    sources.append((migration, source))
        waiting = [migration for migration, _source in sources]
        while waiting and self._deadline.left:
            waiting = [migration for migration in waiting if self._is_under_way(migration)]
            if waiting:
                self._clock.sleep(_INTERVAL)
        for migration, source in sources:
            title = f"{migration.namespace}/{migration.name}"
            if migration in waiting:
                problem = f"migration {title} is cancelled, but KubeVirt has not undone it yet"
                self._give_up(_of_migration(migration), problem)
            elif self._node_of(migration) in ("", source):
                self.undone.cancelled.append(title)

    def _node_of(self, migration: Migration) -> str:
        """Where its VM runs."""
        return node_of(find_vmi(self._client, migration.namespace, migration.vmi))

    def _is_under_way(self, migration: Migration) -> bool:
        again = find_again(self._client, migration)
        return again is not None and again.unfinished

    def _give_back(self, node: str) -> None:
        """A cordon of somebody else stays, and so does a node that somebody else holds."""
        self._require()
        wanted = maintenance.Request(
            node=node,
            owner=self._run,
            reason=None,
            keep_foreign=True,
            lease_namespace=self._namespace,
            lease_seconds=1,
            dry_run=False,
        )
        if self._can(_of_cordon(node), partial(maintenance.end, self._client, wanted, may=self._require)):
            self.undone.given_back.append(node)

    def _start(self, node: str) -> None:
        going = start_run(self._client, node, self._run, lambda _nodes: self._require(), _Nobody())
        going.run(max(1.0, self._deadline.left))
        for entry in going.record.entries.values():
            result = entry.result()
            self.undone.started.append(result)
            if entry.unfinished or entry.has_failed:
                problem = f"{result['kind']} {entry.title} does not run again: {entry.status()}"
                self._give_up(_of_stopped(node), problem)

    def _can(self, line: str, act: Callable[[], object]) -> bool:
        """Whether that was done. Raises Failure if that is not about this one alone."""
        try:
            act()
        except Failure as error:
            if error.passing or error.concerns_all or error.unasked:
                raise
            if not error.gone:
                self._give_up(line, f"{error.attempted}: {error.message}")
            return False
        return True

    def _give_up(self, line: str, problem: str) -> None:
        """Told with the rest, and not tried again."""
        self._given_up.add(line)
        if problem not in self.undone.problems:  # a node is given back with its Lease
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


def _of_migration(migration: Migration) -> str:
    return f"migration {migration.namespace}/{migration.name}"


def _of_cordon(node: str) -> str:
    return f"cordon of node {node}"


def _of_lease(lease: JsonObject) -> str:
    return f"lease {lease['metadata']['name']}"


def _of_stopped(node: str) -> str:
    return f"VMs stopped for node {node}"


def _leases(client: Client, run: str, namespace: str) -> tuple[JsonObject, ...]:
    """Of nodes that it holds."""
    labelled = Leases(client, namespace, {}).labelled(RUN_LABEL, run)
    return tuple(lease for lease in labelled if parse_lease(lease).holder == run)


def _taken(nodes: Iterable[JsonObject], run: str, annotation: str = ANNOTATION) -> tuple[str, ...]:
    marks = ((node["metadata"]["name"], find_mark(node, annotation)) for node in nodes)
    return tuple(name for name, mark in marks if mark and mark.owner == run)


def _nodes_waiting(client: Client, owner: str, nodes: Iterable[JsonObject]) -> list[str]:
    return sorted({item.node for item in _stopped(client, owner, nodes)})


def _stopped(client: Client, owner: str, nodes: Iterable[JsonObject]) -> set[Stopped]:
    """By their marks, and by the notes of these nodes on VMs without any: who replaces one takes its mark away."""
    items = list(_marked(client))
    known = {item["metadata"]["uid"] for _kind, item in items}
    found = {
        Stopped(kind, item["metadata"]["namespace"], item["metadata"]["name"], node)
        for kind, item in items
        for node, mark in find_marks(item).items()
        if mark.owner == owner
    }
    notes = ((node["metadata"]["name"], note) for node in nodes for note in find_notes(node))
    own = ((node, note) for node, note in notes if note.owner == owner and note.uid not in known)
    return found.union(Stopped(VM, note.namespace, note.name, node) for node, note in own)


def _marked(client: Client) -> Iterator[tuple[str, JsonObject]]:
    """What carries a mark, each with its kind."""
    for kind in objects.RESOURCES:
        try:
            items = objects.stopped(client, kind)
        except Failure as error:
            if not error.unserved:  # a cluster without KubeVirt
                raise
            items = []
        yield from ((kind, item) for item in items)


def _nodes_of(leases: tuple[JsonObject, ...]) -> Iterator[str]:
    for lease in leases:
        for owner in lease["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Node":
                yield str(owner["name"])
