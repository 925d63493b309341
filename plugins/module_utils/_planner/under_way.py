# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaves the drained nodes already: migrations under way, and pods that are being deleted.

They are taken for what is about to go, not for occupants for good, so that others may wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import is_leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.board import Board
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.mover import Mover
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.options import Option
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine, Residents
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.search import Step
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ways import occupants_of, target_of


def find_under_way(found: Residents, cluster: Surroundings, board: Board) -> tuple[Step, ...]:
    """Steps that have begun. Where the pods that they bring are there already, the board has taken them off.

    A migration that somebody else has begun without a node for it, or that ends on a drained one, is none of them.
    Raises `SelectorError`, `QuantityError`.
    """
    return (*_migrating(found, cluster, board), *_deleted(found, board))


def gone(name: str, found: Residents, board: Board, *, moved: bool) -> Step:
    """As if somebody on the nodes had left, wherever to. name: its mover's id. moved: it runs elsewhere, or will."""
    for machine in found.machines:
        if machine.id == name:
            return Step(Mover(machine.key, machine.node, occupants_of(machine, board.state), None, chosen=moved), None)
    pod = next(pod for pod in found.pods if pod.id == name)
    return Step(Mover(pod.key, pod.node, (board.state.placement(name).occupant,), None), None)


def _migrating(found: Residents, cluster: Surroundings, board: Board) -> Iterator[Step]:
    for machine in found.machines:
        if machine.unknown:
            continue
        metadata, migration = machine.vmi["metadata"], _migration(machine, cluster)
        if machine.arriving:
            if migration is None and _runs_elsewhere(machine):
                yield Step(
                    Mover(machine.key, machine.node, occupants_of(machine, board.state), None, chosen=True), None
                )
        elif migration is not None and not metadata.get("deletionTimestamp"):
            target_pod = _target_pod(machine, migration, cluster)
            node = _target_node(target_pod, migration, board)
            if (migration.run or migration.node_selector) and node is not None and node not in board.draining:
                yield _begun(machine, migration, target_pod, node, cluster, board)


def _deleted(found: Residents, board: Board) -> Iterator[Step]:
    for resident in found.pods:
        if is_leaving(resident.pod) and not resident.stays and not of_a_machine(resident.pod):
            occupant = board.state.placement(title(resident.pod)).occupant
            yield Step(Mover(resident.key, resident.node, (occupant,), None), None)


def _begun(
    machine: Machine, migration: Migration, target_pod: Object | None, node: str, cluster: Surroundings, board: Board
) -> Step:
    if target_pod is not None:
        raw: Object | None = {**target_pod, "spec": {**target_pod["spec"], "nodeName": ""}}
        if title(target_pod) in board.state:
            board.take(title(target_pod))
    else:
        raw = target_of(machine, cluster, migration.node_selector)
    mover = Mover(
        machine.key,
        machine.node,
        occupants_of(machine, board.state),
        None if raw is None else parsed(raw),
        chosen=True,
        only=frozenset({node}),
        raw=raw,
    )
    return Step(mover, Option(node, 0), 1, (node,))


def _migration(machine: Machine, cluster: Surroundings) -> Migration | None:
    metadata = machine.vmi["metadata"]
    found = cluster.migrations.get((metadata.get("namespace") or "default", metadata["name"]))
    return None if found is None or found.cancelled else found


def _runs_elsewhere(machine: Machine) -> bool:
    status = machine.vmi.get("status") or {}
    return status.get("phase") == "Running" and status.get("nodeName") not in (None, "", machine.node)


def _target_pod(machine: Machine, migration: Migration, cluster: Surroundings) -> Object | None:
    pods = cluster.workloads.active_pods(machine.vmi)
    return next(
        (pod for pod in pods if (pod["metadata"].get("labels") or {}).get(MIGRATION_JOB) == migration.uid), None
    )


def _target_node(target_pod: Object | None, migration: Migration, board: Board) -> str | None:
    """Where its pod is or, until it is somewhere, the node that its selector pins it to."""
    if target_pod is not None and (node := target_pod["spec"].get("nodeName")):
        return str(node) if node in board.state.nodes.index else None
    hostname = migration.node_selector.get(HOSTNAME)
    fitting = [node.name for node in board.state.nodes.nodes if hostname and node.labels.get(HOSTNAME) == hostname]
    return fitting[0] if len(fitting) == 1 else None
