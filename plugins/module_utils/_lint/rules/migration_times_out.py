# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits under which a migration is given up before its memory is copied."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending, Link, course
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import (
    LintedObject,
    Operation,
    Problem,
    Severity,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import MigrationAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import who

_SETTING = "completionTimeoutPerGiB"
# Nothing but KubeVirt's own limits slows a migration down: what does not end in time so never does.
_PERFECT = Link(bytes_per_second=math.inf, setup=0)


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    found: defaultdict[str, list[MigrationAttempt]] = defaultdict(list)
    for workload in cluster.vms:
        for attempt in cluster.attempts(workload):
            terms = cluster.terms(attempt.vmi)
            if course(attempt.vmi, terms.migrations, _PERFECT).ending is Ending.ABORTED:
                found[terms.policy].append(attempt)
    for policy, attempts in sorted(found.items()):
        yield _problem(policy, attempts, cluster)


def _problem(policy: str, attempts: list[MigrationAttempt], cluster: LintedCluster) -> Problem:
    migrations = cluster.terms(attempts[0].vmi).migrations
    vmis = tuple(sorted(attempt.title for attempt in attempts))
    subject, parent = _place(policy, cluster)
    field = f"{parent}/{_SETTING}"
    # Twice what copying a gigabyte takes, as a guest that works changes memory meanwhile.
    enough = 2 * math.ceil(2**30 / migrations.bandwidth)
    fix: Operation = {"op": "add", "path": field, "value": enough}
    return Problem(
        subject,
        f"At {migrations.bandwidth / 2**20:.1f} MiB/s the memory of {who(vmis)} is not copied within {_SETTING} "
        f"{migrations.completion_timeout_per_gib}, so each migration is given up and the VM stays on its node.",
        f"Raise bandwidthPerMigration, or {_SETTING} to {enough} or more.",
        field=field,
        patch=(fix,),
        vmis=vmis,
    )


def _place(policy: str, cluster: LintedCluster) -> tuple[LintedObject, str]:
    """The object that sets the limits, and where they stand in it."""
    if policy:
        return LintedObject("migrations.kubevirt.io/v1alpha1", "MigrationPolicy", "", policy), "/spec"
    metadata = cluster.lists["kubevirts"][0]["metadata"]
    subject = LintedObject("kubevirt.io/v1", "KubeVirt", metadata.get("namespace") or "default", metadata["name"])
    return subject, "/spec/configuration/migrations"


RULE = LintRule(
    id="migration-times-out",
    severity=Severity.ERROR,
    title="A migration is given up before it can end",
    explanation="``bandwidthPerMigration`` says how fast memory is copied, ``completionTimeoutPerGiB`` after which "
    "time KubeVirt gives up, unless post-copy or a pause of the guest is allowed. Where the first needs more time "
    "than the second leaves even for an idle guest, no migration ever ends. The limits come from KubeVirt's "
    "configuration or a MigrationPolicy.",
    check=_check,
    mends=True,
)
