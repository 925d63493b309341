# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMIs that have nowhere to go, by the workload that one would edit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Subject
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.trials import Trial


def by_workload(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Trials of the same subject together, each list with at least one."""
    found: defaultdict[Subject, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[trial.attempt.workload.subject].append(trial)
    return list(found.values())


def running(trials: Iterable[Trial]) -> tuple[str, ...]:
    """namespace/name of their VMIs, sorted."""
    return tuple(sorted(trial.attempt.title for trial in trials))


def stays_pending(trial: Trial) -> str:
    """What follows, with kube-scheduler's words, as the end of a sentence."""
    return f"a migration stays Pending ({trial.message.rstrip('.')})"
