# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that only one node can have at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import names, unmovable_on_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable

_SHARED = "ReadWriteMany"


def unshared(workload: Workload, cluster: LintedCluster) -> list[str]:
    """Names of the workload's claims that cannot be used on two nodes at once."""
    known = cluster.namespaces.named(workload.subject.namespace).claims
    found = []
    for volume in workload.spec.get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName") or (volume.get("dataVolume") or {}).get(
            "name"
        )
        claim = known.get(name or "")
        if claim is not None and _SHARED not in ((claim.get("spec") or {}).get("accessModes") or ()):
            found.append(str(name))
    return found


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    for workload in cluster.vms:
        found = unshared(workload, cluster)
        # What KubeVirt says of a VMI that runs counts for more.
        if not found or any(is_live_migratable(vmi) for vmi in workload.vmis):
            continue
        effect = unmovable_on_drain(strategy({"spec": workload.spec}, cluster.configuration))
        disks = f"Claim {found[0]} is" if len(found) == 1 else f"Claims {names(found)} are"
        yield Problem(
            workload.subject,
            f"{disks} not {_SHARED}, so KubeVirt cannot live-migrate the VM: {effect}.",
            f"Move its disks to claims with access mode {_SHARED}.",
            field=f"{workload.prefix}/volumes",
            vmis=workload.running,
        )


RULE = LintRule(
    id="read-write-once-disk",
    severity=Severity.ERROR,
    title="A VM's disk can be used on one node only",
    explanation="During a migration both nodes have the disks open, so KubeVirt asks for claims with the access mode "
    "``ReadWriteMany``. Disks can be moved to such claims by a volume migration while the VM runs.",
    check=_check,
)
