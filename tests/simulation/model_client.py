# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves things is served by the model: the objects that it reads by requests, and a watch of migrations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timezone
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    Migration,
    by_vmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

from simulation.chances import Chances
from simulation.planner import HOSTNAME
from simulation.sight import see_migration, see_vmi
from simulation.watches import LAG
from simulation.world import NAMESPACE, RUN, ZONES, Moving, Pod, Vmi, World


class ModelClient:
    """Answers as of now, if any answer comes."""

    server = "the model"

    def __init__(self, world: World, chances: Chances) -> None:
        self._world = world
        self._chances = chances

    def get(self, path: str, attempted: str, **_query: str) -> JsonObject:
        """Raises Failure."""
        self._chances.asks()
        world, parts = self._world, path.split("/")
        kind, name = (parts[-2], parts[-1]) if parts[-2] in ("nodes", "virtualmachineinstances") else (parts[-1], "")
        if kind == "pods":
            return {"items": [_pod(world, pod) for pod in world.pods.values()]}
        if kind == "virtualmachineinstancemigrations":
            return {"items": [_migration(moving) for moving in world.migrations.values()]}
        vmi = world.vmi(name)
        if kind == "nodes" and name in ZONES:
            return {"metadata": {"name": name, "labels": {HOSTNAME: name}}, "spec": {}, "status": {}}
        if kind == "nodes" or vmi is None:
            raise Failure(attempted, self.server, f"{name} not found", "Check.", status=HTTPStatus.NOT_FOUND)
        return _vmi(vmi)


class MigrationWatch:
    """Stands in for `MigrationLooks`, whose watch is a connection: it may lag behind, VMIs are read as of now."""

    def __init__(self, world: World, chances: Chances, clock: Clock) -> None:
        self._world = world
        self._chances = chances
        self._clock = clock
        self._runs, self._known = {RUN}, set[str]()
        self._at_hand: list[SeenVmi] = []
        self._seen: Collection[Migration] = ()
        self._at: float | None = None

    def follow(self, prospects: Iterable[Prospect]) -> None:
        for prospect in prospects:
            if prospect.in_flight is not None:
                self._known.add(prospect.in_flight.uid)
                if prospect.in_flight.run not in self._runs:
                    self._runs.add(prospect.in_flight.run)
                    self._at = None
            if prospect.vmi is not None:
                self._at_hand.append(SeenVmi.of(prospect.vmi))

    def look(self, questions: Questions, seconds: float) -> Observation:
        chances = self._chances
        chances.asks()
        if not (questions.vmis or chances.lagging & 2):
            self._clock.sleep(seconds)
        self._update()
        at_hand, self._at_hand = self._at_hand, []
        found = {vmi.title: vmi for vmi in at_hand}
        titles = questions.vmis | (questions.known - found.keys())
        present = {vmi.title: see_vmi(vmi) for vmi in self._world.vmis.values()}
        anew = {title: present[title] for title in titles if title in present}
        left = {title: vmi for title, vmi in found.items() if title not in titles}
        return Observation(
            vmis={**left, **anew},
            migrations=by_vmi(entry for entry in self._seen if entry.run == RUN or entry.uid in self._known),
            reasons=dict.fromkeys(questions.failed, "guest said no"),
        )

    def forget(self) -> None:
        self._at, self._at_hand = None, []

    def _update(self) -> None:
        """What is told to list anew does so at the next look."""
        world, chances = self._world, self._chances
        if self._at is not None and chances.cut & 1:
            self._at = None
        elif self._at is None or not chances.lagging & 1 or world.now - self._at > LAG:
            self._at = world.now
            seen = map(see_migration, world.migrations.values())
            self._seen = [entry for entry in seen if entry.run in self._runs]


def _vmi(vmi: Vmi) -> JsonObject:
    migratable = {"type": "LiveMigratable", "status": "True" if vmi.migratable else "False"}
    return {
        "metadata": _metadata(vmi.uid, vmi.name, ending=vmi.ending),
        "spec": {"architecture": "amd64", "domain": {}},
        "status": {"phase": vmi.phase, "nodeName": vmi.node, "selinuxContext": "none", "conditions": [migratable]},
    }


def _migration(moving: Moving) -> JsonObject:
    seen = see_migration(moving)
    reached = [{"phase": phase, "phaseTransitionTimestamp": time} for phase, time in seen.phases]
    labels = {RUN_LABEL: seen.run} if seen.run else {}
    return {
        "metadata": _metadata(seen.uid, seen.name, ending=seen.cancelled, labels=labels),
        "spec": {"vmiName": seen.vmi, "addedNodeSelector": dict(seen.node_selector)},
        "status": {"phase": seen.phase, "phaseTransitionTimestamps": reached},
    }


def _pod(world: World, pod: Pod) -> JsonObject:
    made, labels = world.sets.get(pod.owner_uid), {"kubevirt.io": "virt-launcher"} if pod.machine else {}
    metadata = _metadata(pod.uid, pod.name, ending=pod.ending, labels=labels, created=pod.created)
    if made is not None:
        owner = {"kind": made.kind, "name": made.name, "uid": made.uid, "controller": True}
        metadata = {**metadata, "generateName": f"{made.name}-", "ownerReferences": [owner]}
    return {
        "metadata": metadata,
        "spec": {"nodeName": pod.node},
        "status": {
            "phase": "Succeeded" if pod.over else "Running",
            "conditions": [{"type": "Ready", "status": "True" if pod.ready and not pod.over else "False"}],
        },
    }


def _metadata(
    uid: str, name: str, *, ending: bool, labels: Mapping[str, str] | None = None, created: float = 0.0
) -> JsonObject:
    time = datetime.fromtimestamp(created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {"namespace": NAMESPACE, "uid": uid, "name": name, "labels": labels or {}, "creationTimestamp": time}
    return {**found, **({"deletionTimestamp": time} if ending else {})}
