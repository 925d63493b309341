# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A target pod is made only when one pod of the VMI is left of whatever was before.

Follows handleTargetPodCreation in pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)


def several_pods(candidate: Candidate) -> Iterator[Blocker]:
    names = sorted(pod["metadata"]["name"] for pod in candidate.active_pods)
    if len(names) > 1 and candidate.in_flight is None:
        yield Blocker(
            "several-launcher-pods",
            Effect.HELD,
            candidate.title,
            f"the VMI has {len(names)} pods that have not ended ({', '.join(names)}), and KubeVirt waits until only "
            "one is left",
            "wait until the pod of its last migration has ended, or find out why it does not",
            passing=True,
        )
