# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster while a plan is carried out, as the scheduler and KubeVirt see it.

Nothing that was given is changed. A step costs what it touches, however large the cluster is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import taints
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import (
    RUN_LABEL,
    Migration,
    read_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Lists, Object, controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant, occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import PluginError
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate, total_scores
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import SCORERS, Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state

from checker.disruptions import Disruptions

_HOTPLUG = "hotplug-disk"
_CORDON = {"key": taints.CORDON.key, "effect": taints.CORDON.effect}
_RUNNING: Mapping[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
# When it is does not matter.
LEAVING_SINCE = "2026-01-01T00:00:00Z"


class CarriedCluster:
    """`around`: what KubeVirt knows. `disruptions`: what budgets allow by now, which whoever moves pods has to tell.

    `version`: another one whenever pods or nodes have changed.

    Objects go by namespace/name, nodes by name. Raises `SelectorError`, `QuantityError`, `MissingLibrary`.
    """

    def __init__(self, lists: Lists) -> None:
        self._given = lists
        self._state = cluster_state(lists)
        self._workloads = Workloads(lists)
        self.around: Surroundings = surroundings(lists, self._workloads)
        self.disruptions = Disruptions(lists)
        self.version = 0
        self._nodes = {node["metadata"]["name"]: node for node in lists.get("nodes") or ()}
        self._vmis = {title(vmi): vmi for vmi in lists.get("vmis") or ()}
        self._migrations = {title(item): item for item in lists.get("migrations") or ()}
        self._pods: dict[str, Object] = {}
        self._on: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        for pod in lists.get("pods") or ():
            self._know(pod)
        self._cordoned: set[str] = set()

    # What is asked of it.

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def is_cordoned(self, node: str) -> bool:
        return bool(self._state.nodes.unschedulable[self._state.nodes.index[node]])

    def free_nodes(self) -> list[str]:
        """Those that are not cordoned."""
        return [name for name in self._nodes if not self.is_cordoned(name)]

    def pin(self, node: str) -> dict[str, str] | None:
        """The node selector for it alone; None if it shares its host name with others, or has none."""
        names = {name: (raw["metadata"].get("labels") or {}).get(HOSTNAME) for name, raw in self._nodes.items()}
        own = names[node]
        return {HOSTNAME: own} if own is not None and [*names.values()].count(own) == 1 else None

    def pod(self, name: str) -> Object | None:
        return self._pods.get(name)

    def pods_on(self, node: str) -> list[Object]:
        return list(self._on[node].values())

    def vmi(self, name: str) -> Object | None:
        """None also for one that is shut down."""
        return self._vmis.get(name)

    def pods_of(self, vmi: Object) -> list[Object]:
        """In which it runs, first the launcher, then those that hold its hotplugged volumes; empty if there is none."""
        source = self._workloads.source_pod(vmi)
        if source is None:
            return []
        beside = self.pods_on(source["spec"].get("nodeName") or "")
        return [source, *(pod for pod in beside if _is_attached_to(source, pod))]

    def migration_of(self, vmi: Object) -> Migration | None:
        """The one that is under way."""
        metadata = vmi["metadata"]
        return self.around.migrations.get((metadata.get("namespace") or "default", metadata["name"]))

    def target_pod_of(self, vmi: Object, migration: Migration) -> Object | None:
        pods = self._workloads.active_pods(vmi)
        return next((pod for pod in pods if _labels(pod).get(MIGRATION_JOB) == migration.uid), None)

    def fits(self, pod: Pod) -> tuple[str, ...]:
        """Names of the nodes that the scheduler could choose for a pod; none if it stumbles over it."""
        try:
            found = evaluate(pod, self._state, FILTERS)
        except PluginError:
            return ()
        return tuple(found.names[node] for node in found.feasible)

    def refusal(self, pod: Pod) -> str:
        """The scheduler's words; empty if a node fits."""
        try:
            return evaluate(pod, self._state, FILTERS).message
        except PluginError as error:
            return str(error)

    def best(self, pod: Pod, profile: Profile) -> str | None:
        """The node that the scheduler chooses, of equals the first in the order of nodes."""
        return next(iter(self.best_nodes(pod, profile)), None)

    def best_nodes(self, pod: Pod, profile: Profile) -> tuple[str, ...]:
        """The nodes of which the scheduler chooses any, in their order."""
        try:
            nodes = evaluate(pod, self._state, FILTERS).feasible
            scores = total_scores(pod, self._state, nodes, SCORERS[profile])
        except PluginError:
            return ()
        return tuple(self._state.nodes.names[node] for node in nodes[scores == scores.max()]) if len(nodes) else ()

    # What happens to it.

    def cordon(self, node: str) -> None:
        self._cordoned.add(node)
        self._state.cordon(self._cordoned)
        self._changed(node, cordoned=True)

    def uncordon(self, node: str) -> None:
        self._cordoned.discard(node)
        self._state.uncordon([node])
        self._state.cordon(self._cordoned)
        self._changed(node, cordoned=False)

    def put(self, raw: Object, pod: Pod, node: str) -> None:
        """A new pod, as `pod` has it parsed, runs on a node."""
        name = title(raw)
        # No object has such a uid.
        metadata = {**raw["metadata"], "uid": name}
        self._know({**raw, "metadata": metadata, "spec": {**raw["spec"], "nodeName": node}, "status": _RUNNING})
        self._workloads.take_pod(self._pods[name])
        self._state.add(pod.occupant, node)
        self.version += 1

    def take(self, name: str) -> None:
        """A pod is gone."""
        pod = self._pods.pop(name)
        del self._on[pod["spec"].get("nodeName") or ""][name]
        self._workloads.forget_pod(pod)
        if name in self._state:
            self._state.remove(name)
        self.version += 1

    def end(self, name: str) -> None:
        """A pod is being deleted."""
        pod = self._pods[name]
        ending = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": LEAVING_SINCE}}
        self.take(name)
        self._know(ending)
        self._workloads.take_pod(ending)
        if node := ending["spec"].get("nodeName"):
            self._state.add(_parting(ending), node)

    def run(self, vmi: Object, node: str) -> None:
        """A VMI, a new one or one that has moved, runs on a node."""
        status = {key: value for key, value in (vmi.get("status") or {}).items() if key != "evacuationNodeName"}
        running = {**vmi, "status": {**status, "nodeName": node}}
        self._vmis[title(vmi)] = running
        self._workloads.take_vmi(running)

    def shut_down(self, vmi: Object) -> None:
        del self._vmis[title(vmi)]

    def begin_migration(self, vmi: Object, selector: Mapping[str, str], run: str) -> str:
        """Returns its uid."""
        namespace, name = vmi["metadata"].get("namespace") or "default", vmi["metadata"]["name"]
        uid = f"vmim-{name}"
        item = {
            "metadata": {"namespace": namespace, "name": uid, "uid": uid, "labels": {RUN_LABEL: run}},
            "spec": {"vmiName": name, "addedNodeSelector": dict(selector)},
            "status": {"phase": "Running"},
        }
        self._migrations[title(item)] = item
        self._know_migrations()
        return uid

    def end_migrations(self, vmi: Object) -> None:
        kept = {}
        for name, item in self._migrations.items():
            migration = read_migration(item)
            if f"{migration.namespace}/{migration.vmi}" != title(vmi):
                kept[name] = item
        self._migrations = kept
        self._know_migrations()

    def lists(self) -> dict[str, list[Any]]:
        """All of it as it is now, from which a snapshot could be made."""
        return {
            **{name: list(items) for name, items in self._given.items()},
            "nodes": list(self._nodes.values()),
            "pods": list(self._pods.values()),
            "vmis": list(self._vmis.values()),
            "migrations": list(self._migrations.values()),
        }

    def _know(self, pod: Object) -> None:
        self._pods[title(pod)] = pod
        self._on[pod["spec"].get("nodeName") or ""][title(pod)] = pod

    def _know_migrations(self) -> None:
        found = {}
        for migration in map(read_migration, self._migrations.values()):
            if migration.unfinished:
                found[migration.namespace, migration.vmi] = migration
        self.around = replace(self.around, migrations=found)

    def _changed(self, node: str, *, cordoned: bool) -> None:
        raw = self._nodes[node]
        others = [entry for entry in raw["spec"].get("taints") or () if entry["key"] != _CORDON["key"]]
        spec = {**raw["spec"], "unschedulable": cordoned, "taints": [*others, _CORDON] if cordoned else others}
        self._nodes[node] = {**raw, "spec": spec}
        self.version += 1


def _parting(raw: Object) -> Occupant:
    return replace(occupant(raw), terminating=True)


def _labels(pod: Object) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def _is_attached_to(launcher: Object, pod: Object) -> bool:
    """Whether it holds hotplugged volumes for a launcher pod."""
    owner = controller(pod) or {}
    return _labels(pod).get("kubevirt.io") == _HOTPLUG and owner.get("uid") == launcher["metadata"].get("uid")
