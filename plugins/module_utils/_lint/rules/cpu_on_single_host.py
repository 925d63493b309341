# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs whose CPU only their own host offers."""

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
    for trials in by_workload(trial for trial in cluster.stuck if trial.cause is Cause.CPU):
        workload, stuck = trials[0].attempt.workload, running(trials)
        model = ((workload.spec.get("domain") or {}).get("cpu") or {}).get("model") or "host-model"
        yield Problem(
            workload.subject,
            f"No other node that is legal for {who(stuck)} offers its CPU ({model}): {stays_pending(trials[0])}.",
            "Name a CPU model that several nodes offer, and restart the VM.",
            field=f"{workload.prefix}/domain/cpu/model",
            vmis=stuck,
        )


RULE = LintRule(
    id="cpu-on-single-host",
    severity=Severity.ERROR,
    title="No other node offers a VM's CPU",
    explanation="With ``host-model``, KubeVirt's default, a guest sees the CPU of the host it was started on, and "
    "migrates only to hosts of the same vendor that have all of its features. The single host of its kind, or the "
    "newest, cannot be emptied. The same is true of a named model that one host has.",
    check=_check,
)
