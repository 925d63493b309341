# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While a VMI migrates it has two pods, and the namespace's quotas have to allow both."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Effect,
    Subject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quota import excesses


def quota(subject: Subject) -> Iterator[Blocker]:
    if subject.target_pod is None or isinstance(subject.target_pod, NoTargetPod):
        return
    for excess in excesses(subject.target_pod, subject.quotas):
        yield Blocker(
            "quota-exceeded",
            Effect.HELD,
            subject.in_namespace("ResourceQuota", excess.quota),
            f"ResourceQuota {excess.quota} does not allow the VMI's second pod ({excess.reason})",
            "raise the quota, or free some of it, for the time of the migration",
        )
