# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are not drained within the time that there is for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Link, course
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.queue import Job, timetable
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import MigrationAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import count

# The priority of what KubeVirt does for a drain.
_PRIORITY = "system-critical"


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    if cluster.window is None:
        return
    nodes: defaultdict[str, list[MigrationAttempt]] = defaultdict(list)
    for workload in cluster.vms:
        for attempt in cluster.attempts(workload):
            nodes[attempt.node].append(attempt)
    caps, link = cluster.configuration.migrations, Link()
    for name, attempts in sorted(nodes.items()):
        terms = (cluster.terms(attempt.vmi).migrations for attempt in attempts)
        courses = [course(attempt.vmi, migrations, link) for attempt, migrations in zip(attempts, terms, strict=True)]
        jobs = [Job(name, entry.seconds, _PRIORITY) for entry in courses]
        needed = max(span.end for span in timetable(jobs, caps))
        if needed > cluster.window:
            time = "without end" if math.isinf(needed) else f"about {needed:.0f} s"
            yield Problem(
                LintedObject("v1", "Node", "", name),
                f"To migrate its {count(len(attempts), 'VM')}, {caps.parallel_outbound_per_node} at a time, takes "
                f"{time}, and there are {cluster.window} s.",
                "Raise parallelOutboundMigrationsPerNode or bandwidthPerMigration, have fewer or smaller VMs on the "
                "node, or allow more time.",
                vmis=tuple(sorted(attempt.title for attempt in attempts)),
            )


RULE = LintRule(
    id="drain-exceeds-window",
    severity=Severity.WARNING,
    title="A node cannot be drained in the time given",
    explanation="Applied with ``window``. The VMs of a node leave it ``parallelOutboundMigrationsPerNode`` at a time, "
    "each as fast as ``bandwidthPerMigration`` allows, or its MigrationPolicy. Guests are taken to be idle, nodes to "
    "be linked by 10 Gbit/s, and each migration to need 10 seconds beside the copying, so the truth may be longer.",
    check=_check,
)
