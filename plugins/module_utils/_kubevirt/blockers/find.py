# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against the migration of a VMI, out of the lists of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    NoTargetPod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.registry import BLOCKER_RULES
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    configuration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.instance_types.catalog import InstanceTypes
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.open_questions import (
    open_questions_of_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_policy import Terms, terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration, read_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object


def blockers(candidate: Candidate) -> list[Blocker]:
    """All of them, the first that KubeVirt would meet first. Raises `QuantityError`."""
    return [blocker for rule in BLOCKER_RULES for blocker in rule(candidate)]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A cluster's lists, indexed once for the questions about many VMIs.

    namespaces: what shapes the pods of each. nodes_known: whether there are nodes, without which no target pod can be
    foretold. budgets: of disruptions. types: instance types and preferences that VMs start with. migrations: the
    unfinished ones by namespace and VMI. policies: of migrations.
    """

    namespaces: Namespaces
    configuration: Configuration
    workloads: Workloads
    budgets: Budgets
    nodes_known: bool
    types: InstanceTypes
    migrations: Mapping[tuple[str, str], Migration] = field(default_factory=dict)
    policies: Sequence[Object] = ()

    def terms(self, vmi: Object) -> Terms:
        """On which the VMI is migrated: KubeVirt's configuration under the MigrationPolicy that applies."""
        return terms(vmi, self.namespaces.of(vmi).labels or {}, self.policies, self.configuration.migrations)

    def candidate(
        self,
        vmi: Object,
        node_selector: Mapping[str, str] | None = None,
        pod: Object | NoTargetPod | None = None,
    ) -> Candidate:
        """The question about one VMI. `node_selector`: of its migration. `pod`: its target pod, if it is known.

        Raises `QuantityError`, `SelectorError`.
        """
        namespace, source = self.namespaces.of(vmi), self.workloads.source_pod(vmi)
        if pod is None and source is not None and self.nodes_known:
            node = self.workloads.node((vmi.get("status") or {}).get("nodeName") or "")
            pod = target_pod(vmi, source, node, self.configuration, namespace, node_selector)
        return Candidate(
            vmi=vmi,
            configuration=self.configuration,
            in_flight=self.migrations.get((_namespace(vmi), vmi["metadata"]["name"])),
            active_pods=self.workloads.active_pods(vmi),
            source_pod=source,
            target_pod=pod,
            claims=namespace.claims if self.namespaces.claims_known else None,
            limit_ranges=namespace.limit_ranges,
            quotas=namespace.quotas,
            node_selector=node_selector,
        )

    def open_questions(self, candidate: Candidate) -> tuple[str, ...]:
        """What of its target pod cannot be foreseen, in phrases."""
        source, pod = candidate.source_pod, candidate.target_pod
        if source is None or pod is None or isinstance(pod, NoTargetPod):
            return ()
        own = self.namespaces.of(candidate.vmi)
        return tuple(open_questions_of_migration(candidate.vmi, source, pod, self.configuration, own))


def surroundings(lists: Lists, workloads: Workloads | None = None) -> Surroundings:
    """A list that was not given says nothing: without nodes, no VMI's node is missing.

    Raises `QuantityError`, `SelectorError`.
    """
    migrations = {}
    for migration in map(read_migration, lists.get("migrations") or ()):
        if migration.unfinished:
            migrations[migration.namespace, migration.vmi] = migration
    return Surroundings(
        namespaces=Namespaces(lists),
        configuration=configuration(lists),
        workloads=workloads or Workloads(lists),
        budgets=Budgets(lists.get("pdbs") or ()),
        nodes_known=bool(lists.get("nodes")),
        types=InstanceTypes(lists),
        migrations=migrations,
        policies=lists.get("migrationpolicies") or (),
    )


def _namespace(item: Object) -> str:
    return item["metadata"].get("namespace") or "default"
