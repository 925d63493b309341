# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hotplugged volumes are attached to the target by a pod of their own, which needs them to be whole at the source.

Follows createAttachmentPod in pkg/virt-controller/watch/migration/migration.go; the phases stand in
kubevirt.io/api/core/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)

_ATTACHED = "Ready"


def hotplug(candidate: Candidate) -> Iterator[Blocker]:
    if not candidate.running:
        return
    for volume in candidate.status.get("volumeStatus") or ():
        phase = volume.get("phase") or "unknown"
        if volume.get("hotplugVolume") is not None and phase != _ATTACHED:
            yield Blocker(
                "hotplug-volume-not-attached",
                Effect.HELD,
                candidate.title,
                f"hotplugged volume {volume['name']} is not attached ({phase}), and its pod for the target cannot be "
                "made",
                "wait until it is attached or gone, or remove the volume",
                passing=True,
            )
