# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has left in the cluster, by its marks and labels: only what is the run's."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import objects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import Leases
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import (
    FIELD_MANAGER,
    read_nodes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import (
    CORDON_NOTE,
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
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks, find_notes


@dataclass(frozen=True, slots=True)
class RunTraces:
    """migrations: unfinished ones. nodes: that it has cordoned. leases: of nodes. stopped_for: nodes.

    kept: nodes that it has taken beside a cordon of somebody else. done: nodes that it is done with, by name. There is
    nothing to be undone of them.
    """

    migrations: tuple[Migration, ...]
    nodes: tuple[str, ...]
    kept: tuple[str, ...]
    leases: tuple[JsonObject, ...]
    stopped_for: tuple[str, ...]
    done: tuple[str, ...]

    def lines(self) -> list[str]:
        """What is to be undone, one line each."""
        held = {lease_name(node) for node in (*self.nodes, *self.kept)}
        return [
            *map(line_of_migration, self.migrations),
            *map(line_of_cordon, self.nodes),
            *(f"mark on node {node}, beside a cordon of somebody else" for node in self.kept),
            *(line_of_lease(lease) for lease in self.leases if lease["metadata"]["name"] not in held),
            *map(line_of_stopped, self.stopped_for),
        ]

    def without(self, lines: Container[str]) -> RunTraces:
        """What is to be undone besides. Where a cordon is left out, so are mark and Lease of its node."""
        out = {lease_name(node) for node in (*self.nodes, *nodes_of(self.leases)) if line_of_cordon(node) in lines}
        leases = (lease for lease in self.leases if lease["metadata"]["name"] not in out)
        return replace(
            self,
            migrations=tuple(migration for migration in self.migrations if line_of_migration(migration) not in lines),
            nodes=tuple(node for node in self.nodes if line_of_cordon(node) not in lines),
            kept=tuple(node for node in self.kept if line_of_cordon(node) not in lines),
            leases=tuple(lease for lease in leases if line_of_lease(lease) not in lines),
            stopped_for=tuple(node for node in self.stopped_for if line_of_stopped(node) not in lines),
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
    """What a run that ends has not brought back. stopped: in order. taken: nodes that carry a mark of it, by name.

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


def find_traces(client: Client, run: str, namespace: str) -> RunTraces:
    """Raises Failure."""
    labelled = {"labelSelector": f"{RUN_LABEL}={run}"}
    migrations = map(
        read_migration,
        objects.listed(client, objects.migrations_path(None), "list the migrations of the run", **labelled),
    )
    leases, nodes = _leases(client, run, namespace), read_nodes(client)
    cordoned = _taken(nodes, run, CORDON_NOTE)
    return RunTraces(
        migrations=tuple(migration for migration in migrations if migration.unfinished),
        nodes=cordoned,
        kept=tuple(node for node in _taken(nodes, run, KEPT) if node not in cordoned),
        leases=leases,
        stopped_for=tuple(_nodes_waiting(client, run, nodes)),
        done=tuple(sorted(nodes_done(nodes, run))),
    )


def find_left(client: Client, run: str, namespace: str) -> RunLeft:
    """Raises Failure."""
    leases, nodes = _leases(client, run, namespace), read_nodes(client)
    taken = tuple(sorted({*_taken(nodes, run, CORDON_NOTE), *_taken(nodes, run, KEPT)}))
    held = {lease_name(node) for node in taken}
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


def line_of_migration(migration: Migration) -> str:
    return f"migration {migration.namespace}/{migration.name}"


def line_of_cordon(node: str) -> str:
    return f"cordon of node {node}"


def line_of_lease(lease: JsonObject) -> str:
    return f"lease {lease['metadata']['name']}"


def line_of_stopped(node: str) -> str:
    return f"VMs stopped for node {node}"


def nodes_of(leases: Iterable[JsonObject]) -> Iterator[str]:
    """Whose Leases these are."""
    for lease in leases:
        for owner in lease["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Node":
                yield str(owner["name"])


def _leases(client: Client, run: str, namespace: str) -> tuple[JsonObject, ...]:
    """Of nodes that it holds."""
    labelled = Leases(client, namespace, {}).labelled(RUN_LABEL, run)
    return tuple(lease for lease in labelled if parse_lease(lease).holder == run)


def _taken(nodes: Iterable[JsonObject], run: str, annotation: str) -> tuple[str, ...]:
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
