# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Required affinity to pods that are nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import (
    Cause,
    by_workload,
    running,
    stays_pending,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import who


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for trials in by_workload(trial for trial in cluster.stuck if trial.cause is Cause.PARTNER):
        workload, stuck = trials[0].attempt.workload, running(trials)
        yield Problem(
            workload.subject,
            f"The pods required beside {who(stuck)} are at no other place that the rules admit: "
            f"{stays_pending(trials[0])}.",
            "Move those pods first, run one more of them, or prefer the affinity instead of requiring it.",
            field=f"{workload.prefix}/affinity/podAffinity",
            vmis=stuck,
        )


RULE = LintRule(
    id="partner-blocks-migration",
    severity=Severity.WARNING,
    title="A VM has to be with pods that leave with it",
    explanation="A drain takes all pods of a node. A VM with required affinity to one of them can only follow it once "
    "it runs elsewhere, so the order matters, and a drain that knows none waits. Nothing is said of VMs that find "
    "such pods elsewhere as well.",
    check=_check,
)
