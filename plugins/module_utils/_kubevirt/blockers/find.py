# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against the migration of a VMI, out of the lists of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Object,
    Subject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.registry import RULES
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import (
    Configuration,
    Lists,
    configuration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.open_questions import (
    open_questions_of_migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_policy import Terms, terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration, read_migration


def blockers(subject: Subject) -> list[Blocker]:
    """All of them, the first that KubeVirt would meet first. Raises `QuantityError`."""
    return [blocker for rule in RULES for blocker in rule(subject)]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A cluster's lists, indexed once for the questions about many VMIs.

    namespaces: what shapes the pods of each. nodes_known: whether there are nodes, without which no target pod can be
    foretold. migrations: the unfinished ones by namespace and VMI. claims and quotas: by namespace; claims None if none
    are known. budgets: of disruptions. policies: MigrationPolicies.
    """

    namespaces: Namespaces
    configuration: Configuration
    workloads: Workloads
    budgets: Budgets
    nodes_known: bool
    migrations: Mapping[tuple[str, str], Migration] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, Object]] | None = None
    quotas: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    policies: Sequence[Object] = ()

    def terms(self, vmi: Object) -> Terms:
        """On which the VMI is migrated: KubeVirt's configuration under the MigrationPolicy that applies."""
        named = self.namespaces.lists(_namespace(vmi)).get("namespaces") or ({"metadata": {}},)
        labels = named[0]["metadata"].get("labels") or {}
        return terms(vmi, labels, self.policies, self.configuration.migrations)

    def subject(
        self,
        vmi: Object,
        node_selector: Mapping[str, str] | None = None,
        pod: Object | NoTargetPod | None = None,
    ) -> Subject:
        """The question about one VMI. `node_selector`: of its migration. `pod`: its target pod, if it is known.

        Raises `QuantityError`, `SelectorError`.
        """
        namespace, name = _namespace(vmi), vmi["metadata"]["name"]
        source = self.workloads.source_pod(vmi)
        if pod is None and source is not None and self.nodes_known:
            node = self.workloads.node((vmi.get("status") or {}).get("nodeName") or "")
            lists = self.namespaces.lists(namespace)
            pod = target_pod(vmi, source, node, self.configuration, lists, node_selector)
        return Subject(
            vmi=vmi,
            configuration=self.configuration,
            in_flight=self.migrations.get((namespace, name)),
            active_pods=self.workloads.active_pods(vmi),
            source_pod=source,
            target_pod=pod,
            claims=None if self.claims is None else self.claims.get(namespace, {}),
            quotas=self.quotas.get(namespace, ()),
            node_selector=node_selector,
        )

    def open_questions(self, subject: Subject) -> tuple[str, ...]:
        """What of its target pod cannot be foreseen, in phrases."""
        source, pod = subject.source_pod, subject.target_pod
        if source is None or pod is None or isinstance(pod, NoTargetPod):
            return ()
        own = self.namespaces.lists(_namespace(subject.vmi))
        return tuple(open_questions_of_migration(subject.vmi, source, pod, self.configuration, own))


def surroundings(lists: Lists, workloads: Workloads | None = None) -> Surroundings:
    """A list that was not given says nothing: without nodes, no VMI's node is missing.

    Raises `QuantityError`, `SelectorError`.
    """
    migrations = {}
    for migration in map(read_migration, lists.get("migrations") or ()):
        if migration.unfinished:
            migrations[migration.namespace, migration.vmi] = migration
    claims: defaultdict[str, dict[str, Object]] = defaultdict(dict)
    for claim in lists.get("pvcs") or ():
        claims[_namespace(claim)][claim["metadata"]["name"]] = claim
    quotas: defaultdict[str, list[Object]] = defaultdict(list)
    for quota in lists.get("resourcequotas") or ():
        quotas[_namespace(quota)].append(quota)
    return Surroundings(
        namespaces=Namespaces(lists),
        configuration=configuration(lists),
        workloads=workloads or Workloads(lists),
        budgets=Budgets(lists.get("pdbs") or ()),
        nodes_known=bool(lists.get("nodes")),
        migrations=migrations,
        claims=claims or None,
        quotas=quotas,
        policies=lists.get("migrationpolicies") or (),
    )


def _namespace(item: Object) -> str:
    return item["metadata"].get("namespace") or "default"
