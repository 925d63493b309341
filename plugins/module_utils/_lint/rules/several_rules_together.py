# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that have nowhere to go, for more than one reason."""

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
    for trials in by_workload(trial for trial in cluster.stuck if trial.cause is Cause.SEVERAL):
        stuck = running(trials)
        yield Problem(
            trials[0].attempt.workload.subject,
            f"Several rules together leave no other node for {who(stuck)}: {stays_pending(trials[0])}.",
            "Relax two of the rules that kube-scheduler names, or give a node what they ask for.",
            vmis=stuck,
        )


RULE = LintRule(
    id="several-rules-together",
    severity=Severity.ERROR,
    title="Several rules together leave a VM no other node",
    explanation="Each of the rules alone would leave a node, so no single one is at fault. kube-scheduler's words tell "
    "which rule refuses how many nodes.",
    check=_check,
)
