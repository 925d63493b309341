# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rules look at: the lists of a cluster, and what several of them need computed, each once and on demand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    configuration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_policy import Terms, terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.covered import Covered, budgets
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.population import Population
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import (
    MigrationAttempt,
    Trial,
    attempt,
    stuck,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload, workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable

# Serves in every cluster.
DEFAULT_SCHEDULER = "default-scheduler"


class LintedCluster:
    """`window`: how long the maintenance of a node may take, in seconds; None: nobody said.

    `schedulers`: names of schedulers that serve, beside the default one and those that are seen at work.
    Nodes count as uncordoned: what a cluster lacks while some of it is in maintenance is no fault of its rules.
    """

    def __init__(self, lists: Lists, *, window: int | None = None, schedulers: Iterable[str] = ()) -> None:
        self.lists = {**lists, "nodes": [_uncordoned(node) for node in lists.get("nodes") or ()]}
        self.window = window
        self._schedulers = frozenset(schedulers)
        self._eligible: dict[str, frozenset[str]] = {}
        self._attempts: dict[LintedObject, list[MigrationAttempt]] = {}

    @cached_property
    def workloads(self) -> list[Workload]:
        return workloads(self.lists)

    @cached_property
    def vms(self) -> list[Workload]:
        return [workload for workload in self.workloads if workload.has_vms]

    @cached_property
    def vmis_by_uid(self) -> dict[str, Object]:
        return {vmi["metadata"]["uid"]: vmi for vmi in self.lists.get("vmis") or () if vmi["metadata"].get("uid")}

    @cached_property
    def index(self) -> Workloads:
        return Workloads(self.lists)

    @cached_property
    def namespaces(self) -> Namespaces:
        return Namespaces(self.lists)

    @cached_property
    def configuration(self) -> Configuration:
        return configuration(self.lists)

    @cached_property
    def state(self) -> ClusterState:
        return cluster_state(self.lists)

    @cached_property
    def node_labels(self) -> dict[str, Labels]:
        return {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in self.lists["nodes"]}

    @cached_property
    def pods(self) -> list[Object]:
        """Those that have not ended."""
        pods = self.lists.get("pods") or ()
        return [pod for pod in pods if not has_ended(pod)]

    @cached_property
    def population(self) -> Population:
        return Population(self.workloads, self.pods, self.namespace_labels)

    @cached_property
    def budgets(self) -> tuple[Covered, ...]:
        """Raises `SelectorError`."""
        return tuple(budgets(self.lists.get("pdbs") or (), self.population))

    @cached_property
    def schedulers(self) -> frozenset[str]:
        """Names of the schedulers that serve for certain: a pod of theirs has got a node."""
        seen = (pod["spec"].get("schedulerName") for pod in self.pods if pod["spec"].get("nodeName"))
        return self._schedulers | {DEFAULT_SCHEDULER} | {name for name in seen if name}

    def terms(self, vmi: Object) -> Terms:
        """On which a VMI is migrated: KubeVirt's configuration under the MigrationPolicy that applies."""
        labels = self.namespace_labels.get(vmi["metadata"].get("namespace") or "default", {})
        return terms(vmi, labels, self.lists.get("migrationpolicies") or (), self.configuration.migrations)

    @cached_property
    def namespace_labels(self) -> dict[str, Labels]:
        namespaces = self.lists.get("namespaces") or ()
        return {entry["metadata"]["name"]: entry["metadata"].get("labels") or {} for entry in namespaces}

    @cached_property
    def stuck(self) -> list[Trial]:
        """VMIs that can be live-migrated but have nowhere to go."""
        return list(stuck((entry for workload in self.vms for entry in self.attempts(workload)), self.state))

    def attempts(self, workload: Workload) -> list[MigrationAttempt]:
        """The migrations of a workload's VMIs that could begin."""
        known = self._attempts.get(workload.subject)
        if known is None:
            tried = (attempt(workload, vmi, self.index, self.configuration, self.namespaces) for vmi in workload.vmis)
            known = self._attempts[workload.subject] = [entry for entry in tried if entry is not None]
        return known

    def eligible(self, workload: Workload, *, selected: bool = True, tainted: bool = False) -> frozenset[str]:
        """Names of the nodes that a workload's pods may run on by labels and taints, whatever runs on them.

        `selected`: look at the specification's own node selector and node affinity. `tainted`: take tainted nodes too.
        """
        spec, is_vm = workload.spec, workload.has_vms
        parts = [spec.get(name) for name in ("nodeSelector", "tolerations", "architecture")]
        wishes = (spec.get("affinity") or {}).get("nodeAffinity")
        domain = spec.get("domain") or {}
        cpu = [domain.get(name) for name in ("cpu", "machine", "features", "launchSecurity")] if is_vm else []
        key = json.dumps([parts, wishes, cpu, is_vm, selected, tainted], sort_keys=True)
        if key not in self._eligible:
            nodes = _eligible_nodes(spec, self.configuration if is_vm else None, self.state.nodes, selected, tainted)
            self._eligible[key] = nodes
        return self._eligible[key]


def _eligible_nodes(
    spec: Object, configuration: Configuration | None, nodes: NodeTable, selected: bool, tainted: bool
) -> frozenset[str]:
    """Names of nodes. `configuration`: KubeVirt's, which adds its own conditions; None for ordinary pods."""
    if not selected:
        others = {side: terms for side, terms in (spec.get("affinity") or {}).items() if side != "nodeAffinity"}
        spec = {**spec, "nodeSelector": {}, "affinity": others}
    if configuration is None:
        selector, wishes = spec.get("nodeSelector") or {}, spec.get("affinity") or {}
    else:
        vmi = {"metadata": {}, "spec": spec, "status": {}}
        selector, wishes = node_selector(vmi, configuration), affinity(vmi)
    parsed = pod(
        {
            "metadata": {},
            "spec": {
                "nodeSelector": selector,
                "affinity": {"nodeAffinity": wishes.get("nodeAffinity")},
                "tolerations": spec.get("tolerations"),
            },
        }
    )
    admitted = nodes.admitted_by_affinity(parsed.node_affinity)
    if not tainted:
        admitted = admitted & nodes.tolerable(parsed.tolerations)
    return frozenset(nodes.names[number] for number in np.flatnonzero(admitted))


def _uncordoned(node: Object) -> Object:
    """The node as it will be when its maintenance has ended: the same, or a copy without its cordon."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or ()
    kept = [taint for taint in taints if taint.get("key") != CORDON.key]
    if not spec.get("unschedulable") and len(kept) == len(taints):
        return node
    return {**node, "spec": {**spec, "unschedulable": False, "taints": kept}}
