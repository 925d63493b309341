# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that no other node has room for."""

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
    for trials in by_workload(trial for trial in cluster.stuck if trial.cause is Cause.ROOM):
        stuck = running(trials)
        yield Problem(
            trials[0].attempt.workload.subject,
            f"No other node that is legal for {who(stuck)} has the room: {stays_pending(trials[0])}.",
            "Free or add capacity, make the VM smaller, or let its rules admit more nodes.",
            vmis=stuck,
        )


RULE = LintRule(
    id="no-room-elsewhere",
    severity=Severity.ERROR,
    title="No other node has room for a VM",
    explanation="CPU, memory, huge pages, devices or the number of pods are short on each node that the VM's rules "
    "admit. As a migration needs room on a second node while it lasts, such a VM cannot leave its node.",
    check=_check,
)
