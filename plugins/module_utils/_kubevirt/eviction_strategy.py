# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VMI is to do when its node is drained: its own choice, else the cluster's.

Follows VMIEvictionStrategy in pkg/util/migrations/migrations.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration

LIVE_MIGRATE: Final = "LiveMigrate"
IF_POSSIBLE: Final = "LiveMigrateIfPossible"
EXTERNAL: Final = "External"
# With these KubeVirt itself migrates the VMI.
MIGRATING: Final = frozenset({LIVE_MIGRATE, IF_POSSIBLE})


def strategy(vmi: Mapping[str, Any], configuration: Configuration | None) -> str:
    """Without the cluster's configuration the VMI's own nearly always does: KubeVirt writes the default into it."""
    own = vmi["spec"].get("evictionStrategy")
    return str(own or (configuration or Configuration()).eviction_strategy)
