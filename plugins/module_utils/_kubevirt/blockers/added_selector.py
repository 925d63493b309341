# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of two values for one node label KubeVirt takes the VMI's own, and says nothing of the other.

Follows createTargetPod in pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import node_selector


def added_selector(candidate: Candidate) -> Iterator[Blocker]:
    if not candidate.node_selector:
        return
    own = node_selector(candidate.vmi, candidate.configuration or Configuration())
    for key, value in sorted(candidate.node_selector.items()):
        if key in own:
            yield Blocker(
                "added-selector-ignored",
                Effect.IGNORED,
                candidate.title,
                f"the VMI itself asks for nodes with {key}={own[key]}, so KubeVirt would silently ignore the added "
                f"{key}={value}",
                "choose by another label, or change the VMI",
            )
