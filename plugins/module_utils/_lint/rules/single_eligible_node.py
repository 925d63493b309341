# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs for which their node is the only one, in the cluster or in the zone they have to stay in."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.domains import lone_domain
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.host_name_in_selector import bound_to
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import (
    Cause,
    Trial,
    by_workload,
    running,
    stays_pending,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names, who

_CAUSES = (Cause.NEIGHBOURS, Cause.VOLUMES, Cause.SELECTION, Cause.TAINTS, Cause.NO_OTHER)


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    trials = (trial for trial in cluster.stuck if trial.cause in _CAUSES)
    for group in by_workload(trial for trial in trials if _concerns(trial, cluster)):
        consequence, remedy = _said(group, cluster)
        yield Problem(
            group[0].attempt.workload.subject,
            f"{consequence}: {stays_pending(group[0])}.",
            remedy,
            vmis=running(group),
        )


def _concerns(trial: Trial, cluster: LintedCluster) -> bool:
    if len(bound_to(trial.attempt.workload)) == 1:
        return False  # a rule of its own
    return trial.cause is not Cause.NEIGHBOURS or lone_domain(trial, cluster) is not None


def _said(group: list[Trial], cluster: LintedCluster) -> tuple[str, str]:
    """What is the matter, and what to do."""
    vms = who(running(group))
    if len(cluster.node_labels) == 1:
        return f"The cluster has no second node for {vms}", "Add a node."
    if group[0].cause is Cause.VOLUMES:
        return (
            f"No other node that is legal for {vms} can use its volumes",
            "Move its disks to volumes that a second node can use, or let its rules admit a node that can.",
        )
    return (
        f"{_where(group, cluster)} for {vms}",
        "Let its rules admit a second node there: label one, tolerate its taint, or relax the rule.",
    )


def _where(group: list[Trial], cluster: LintedCluster) -> str:
    domains = {found for trial in group if (found := lone_domain(trial, cluster))}
    if not domains:
        eligible = cluster.eligible(group[0].attempt.workload)
        return f"Node selector, node affinity and taints leave no other node than {names(eligible)}"
    keys = {key for key, _domain in domains}
    zones = names(domain for _key, domain in domains)
    return f"There is no second eligible node in {' or '.join(sorted(keys))} {zones}"


RULE = LintRule(
    id="single-eligible-node",
    severity=Severity.ERROR,
    title="A VM's rules admit no second node",
    explanation="Node selector, node affinity and taints leave one node in the cluster, or one in the zone that the "
    "VM cannot leave because the other zones are taken by VMs it keeps apart from, or one that can use the VM's "
    "volumes. Maintenance of that node has to stop it.",
    check=_check,
)
