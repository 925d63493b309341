# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Target pods that virt-controller cannot make, so that it tries again and again. Why stands in migration_target.py."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
    NoTargetPod,
)


def no_target_pod(candidate: Candidate) -> Iterator[Blocker]:
    pod = candidate.target_pod
    if isinstance(pod, NoTargetPod) and candidate.running:
        problem = f"KubeVirt can make no target pod for the VMI: {pod.problem}"
        yield Blocker(pod.id, Effect.HELD, candidate.title, problem, pod.remedy)
