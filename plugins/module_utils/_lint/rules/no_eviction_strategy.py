# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migratable VMs that a drain shuts down."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import LIVE_MIGRATE, strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import who
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_NOTHING = "None"


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    default = cluster.configuration.eviction_strategy
    if default != _NOTHING:
        return
    for workload in cluster.vms:
        # KubeVirt writes the cluster's default into each VMI, where it cannot be told from a choice.
        chosen = workload.spec.get("evictionStrategy")
        if chosen and (workload.editable or chosen != _NOTHING):
            continue
        dying = [vmi for vmi in workload.vmis if _dies(vmi, cluster)]
        if not dying:
            continue
        vmis = tuple(sorted(title(vmi) for vmi in dying))
        field = f"{workload.prefix}/evictionStrategy"
        fix: Operation = {"op": "add", "path": field, "value": LIVE_MIGRATE}
        yield Problem(
            workload.subject,
            f"Without an evictionStrategy, {who(vmis)} will be shut down by a drain instead of being migrated.",
            "Set evictionStrategy to LiveMigrate, here or as the cluster's default.",
            field=field,
            patch=(fix,) if workload.editable else (),
            vmis=vmis,
        )


def _dies(vmi: Object, cluster: LintedCluster) -> bool:
    return is_live_migratable(vmi) and strategy(vmi, cluster.configuration) == _NOTHING


RULE = LintRule(
    id="no-eviction-strategy",
    severity=Severity.ERROR,
    title="A VM could be migrated, but a drain shuts it down",
    explanation="``kubectl drain`` evicts pods. KubeVirt turns the eviction of a VM's pod into a migration only if the "
    "VM or the cluster's configuration has an ``evictionStrategy``; otherwise the pod ends, and the VM with it. A "
    "strategy of ``None`` in a template counts as meant so.",
    check=_check,
    mends=True,
)
