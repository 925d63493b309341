# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules between pods that a VM's own pod breaks while it migrates."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import MISMATCH, blocks_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.placement import PodTerm, pod_terms
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import (
    Cause,
    MigrationAttempt,
    by_workload,
    running,
    stays_pending,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import who


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for trials in by_workload(trial for trial in cluster.stuck if trial.cause is Cause.OWN_POD):
        attempt, stuck = trials[0].attempt, running(trials)
        workload = attempt.workload
        terms = [term for term in pod_terms(workload.spec, workload.prefix) if _counts_itself(term, attempt)]
        yield Problem(
            workload.subject,
            f"Required anti-affinity counts the pod a VM runs in against its own target pod, for {who(stuck)}: "
            f"{stays_pending(trials[0])}.",
            f"Add {MISMATCH} [{CREATED_BY}] to the term, so that it looks at other VMs only.",
            field=terms[0].pointer if len(terms) == 1 else "",
            patch=tuple(_exception(term) for term in terms) if workload.editable else (),
            vmis=stuck,
        )


def _counts_itself(term: PodTerm, attempt: MigrationAttempt) -> bool:
    pod = attempt.target.occupant
    return term.apart and term.required and blocks_migration(term.raw, pod.labels, pod.namespace)


def _exception(term: PodTerm) -> Operation:
    if term.raw.get(MISMATCH):
        return {"op": "add", "path": f"{term.pointer}/{MISMATCH}/-", "value": CREATED_BY}
    return {"op": "add", "path": f"{term.pointer}/{MISMATCH}", "value": [CREATED_BY]}


RULE = LintRule(
    id="own-pod-blocks-migration",
    severity=Severity.ERROR,
    title="A VM's own pod stands against its migration",
    explanation="While a VM migrates it has two pods. With required anti-affinity over zones, and a VM in each zone, "
    "the running pod keeps the new one even out of its own zone, and the other zones are taken. The patch makes the "
    "term look past the VM's own pods, and it still keeps different VMs apart.",
    check=_check,
    mends=True,
)
