# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets that cannot count VMs."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.covered import Covered, percentage
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import count


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for covered in cluster.budgets:
        if not covered.machines or (covered.most is None and percentage(covered.least) is None):
            continue
        rule = f"minAvailable {covered.least}" if covered.most is None else f"maxUnavailable {covered.most}"
        yield Problem(
            covered.subject,
            f"It counts {count(len(covered.machines), 'VM')} by {rule}, for which Kubernetes asks the pod's owner for "
            "its scale, and a VirtualMachineInstance has none: it allows no disruption of any pod, ever.",
            "Say minAvailable as a whole number.",
            field="/spec/minAvailable" if covered.most is None else "/spec/maxUnavailable",
            patch=tuple(_fix(covered)),
        )


def _fix(covered: Covered) -> Iterator[Operation]:
    """One of them may be missing."""
    if covered.most is not None:
        yield {"op": "remove", "path": "/spec/maxUnavailable"}
    value = max(0, len(covered.machines) + len(covered.others) - 1)
    yield {"op": "add", "path": "/spec/minAvailable", "value": value}


RULE = LintRule(
    id="pdb-blind-to-vms",
    severity=Severity.ERROR,
    title="A PodDisruptionBudget counts VMs by percentage or maxUnavailable",
    explanation="For ``maxUnavailable`` and for percentages Kubernetes has to know how many pods are meant to be "
    "there, and asks the owner's ``scale``. A VirtualMachineInstance has none, so the budget fails to sync and refuses "
    "every eviction that KubeVirt has not answered already. The patch allows one to be missing.",
    check=_check,
    mends=True,
)
