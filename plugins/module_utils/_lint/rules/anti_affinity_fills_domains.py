# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Anti-affinity that has no domain left for a VM that has to move."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.domains import lone_domain
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import (
    Cause,
    by_workload,
    running,
    stays_pending,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import who


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    trials = (trial for trial in cluster.stuck if trial.cause is Cause.NEIGHBOURS)
    for group in by_workload(trial for trial in trials if lone_domain(trial, cluster) is None):
        stuck = running(group)
        yield Problem(
            group[0].attempt.workload.subject,
            f"Required anti-affinity leaves no place for {who(stuck)} but the present one: {stays_pending(group[0])}.",
            "Run one VM less than there are places, add a node, or prefer the anti-affinity instead of requiring it.",
            vmis=stuck,
        )


RULE = LintRule(
    id="anti-affinity-fills-domains",
    severity=Severity.ERROR,
    title="Anti-affinity leaves a VM no other place",
    explanation="As many VMs that exclude each other as there are hosts or zones for them fill these up, so that none "
    "of them can move and the maintenance of each of their nodes has to stop one. The same comes of the required "
    "anti-affinity of other pods.",
    check=_check,
)
