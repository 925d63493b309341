# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that KubeVirt does not live-migrate for other reasons than disks and bridges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.bridge_binding import is_bridged
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.read_write_once_disk import unshared
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import unmovable_on_drain, who
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import refusal_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    default = cluster.configuration.default_network_interface
    for workload in cluster.vms:
        told = set()
        if unshared(workload, cluster):
            told.add("DisksNotLiveMigratable")
        if is_bridged(workload, default):
            told.add("InterfaceNotLiveMigratable")
        reasons: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for vmi in workload.vmis:
            found = _reason(vmi)
            if found and found[0] not in told:
                reason, message = found
                reasons[reason][f"{workload.subject.namespace}/{vmi['metadata']['name']}"] = message
        for reason, messages in sorted(reasons.items()):
            running = sorted(messages)
            # Of a workload's VMIs the messages mostly are one, and differ by names otherwise.
            message = messages[running[0]].rstrip(".")
            effect = unmovable_on_drain(strategy({"spec": workload.spec}, cluster.configuration))
            yield Problem(
                workload.subject,
                f"KubeVirt does not live-migrate {who(running)} ({reason}: {message}): {effect}.",
                "Plan for its restart or stop, or change what KubeVirt names.",
                aspect=reason,
                vmis=tuple(running),
            )


def _reason(vmi: Object) -> tuple[str, str] | None:
    condition = refusal_of(vmi)
    if condition is None:
        return None
    return condition.get("reason") or "no reason given", condition.get("message") or "no message given"


RULE = LintRule(
    id="not-live-migratable",
    severity=Severity.WARNING,
    title="KubeVirt does not live-migrate a VM",
    explanation="Devices of the host, hot-plugged disks and more keep a VM where it is. KubeVirt says so in the "
    "condition ``LiveMigratable``. Disks and bridges have rules of their own and are not repeated here.",
    check=_check,
)
