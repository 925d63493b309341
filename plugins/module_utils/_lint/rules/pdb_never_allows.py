# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets that refuse every eviction."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import EXTERNAL, strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.covered import Covered, percentage, scaled
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import count
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


def evicted_machines(covered: Covered, cluster: LintedCluster) -> int:
    """How many of the VMs' pods an eviction would reach, as KubeVirt does not answer it with a migration."""
    owners = (owner.get("uid") for pod in covered.machines for owner in pod["metadata"].get("ownerReferences") or ())
    vmis = (cluster.vmis_by_uid[uid] for uid in owners if uid in cluster.vmis_by_uid)
    return sum(not _is_intercepted(vmi, cluster) for vmi in vmis)


def _is_intercepted(vmi: Object, cluster: LintedCluster) -> bool:
    chosen = strategy(vmi, cluster.configuration)
    return chosen == EXTERNAL or chosen == "LiveMigrate" or (chosen != "None" and is_live_migratable(vmi))


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for covered in cluster.budgets:
        pods = len(covered.machines) + len(covered.others)
        reached = len(covered.others) + evicted_machines(covered, cluster)
        if not reached or not _never_allows(covered, pods):
            continue
        rule = f"minAvailable is {covered.least}" if covered.most is None else f"maxUnavailable is {covered.most}"
        yield Problem(
            covered.subject,
            f"It counts {count(pods, 'pod')} and {rule}, so each eviction is refused and a drain of their nodes never "
            "ends.",
            "Allow one pod to be missing, or run one more of them.",
            field="/spec/minAvailable" if covered.most is None else "/spec/maxUnavailable",
            patch=_fix(covered, pods),
        )


def _never_allows(covered: Covered, pods: int) -> bool:
    """What VMs cannot be counted by has a rule of its own."""
    by_share = covered.most is not None or percentage(covered.least) is not None
    if covered.machines and by_share:
        return False
    if covered.most is not None:
        return scaled(covered.most, pods) == 0
    return covered.least is not None and scaled(covered.least, pods) >= pods


def _fix(covered: Covered, pods: int) -> tuple[Operation, ...]:
    if covered.most is not None:
        return ({"op": "replace", "path": "/spec/maxUnavailable", "value": 1},)
    return ({"op": "replace", "path": "/spec/minAvailable", "value": pods - 1},)


RULE = LintRule(
    id="pdb-never-allows",
    severity=Severity.ERROR,
    title="A PodDisruptionBudget never allows a disruption",
    explanation="With ``maxUnavailable: 0``, or as many pods required as there are, the API server answers each "
    "eviction with 429, and a drain tries for ever. Budgets over VMs that KubeVirt migrates are left alone, as their "
    "evictions never come as far. The patch allows one pod to be missing; of a single pod that is a disruption.",
    check=_check,
    mends=True,
)
