# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduler names that nobody answers to."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import DEFAULT_SCHEDULER, LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.workloads:
        name = workload.spec.get("schedulerName") or DEFAULT_SCHEDULER
        if name in cluster.schedulers:
            continue
        field = f"{workload.prefix}/schedulerName"
        fix: Operation = {"op": "remove", "path": field}
        yield Problem(
            workload.subject,
            f"The scheduler {name} has given no pod of the cluster a node, so its pods stay Pending without a word "
            "why.",
            f"Correct schedulerName, start the scheduler {name}, or remove schedulerName for the default one.",
            field=field,
            patch=(fix,) if workload.editable else (),
            vmis=workload.running,
        )


RULE = LintRule(
    id="unknown-scheduler",
    severity=Severity.ERROR,
    title="A scheduler is named that serves nobody",
    explanation="A pod with ``schedulerName`` is left alone by all other schedulers. If the named one does not run, "
    "the pod stays Pending without an event or a condition. A scheduler counts as serving when one of its pods has a "
    "node; name others in ``schedulers``. The patch goes back to the default scheduler.",
    check=_check,
    mends=True,
)
