# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a pod fits nowhere, in kube-scheduler's words. Follows FitError in pkg/scheduler/framework/types.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.contract import Failure

NO_NODES = "no nodes available to schedule pods"


def rejection_message(nodes: int, reason: str) -> str:
    return f"0/{nodes} nodes are available: {reason}."


def fit_error_message(nodes: int, failures: Sequence[Failure]) -> str:
    """How many nodes fail for each reason, sorted as text: "10 …" comes before "2 …"."""
    counts: Counter[str] = Counter()
    for failure in failures:
        counts[failure.reason] += int(failure.nodes.sum())
    histogram = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"0/{nodes} nodes are available:{' ' if histogram else ''}{', '.join(histogram)}{'.' if histogram else ''}"
