# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, take and renew the Leases of nodes."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import Leases
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node_lease import held_lease, lease_name
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


class NodeLeases(Leases):
    """All methods raise Failure."""

    def read(self, node: str) -> JsonObject | None:
        return self.find(lease_name(node))

    def hold(
        self, before: JsonObject | None, node: JsonObject, holder: str, seconds: int, now: datetime, run: str = ""
    ) -> JsonObject:
        """Take or renew; fails with status 409 if somebody else wrote the Lease since `before` was read."""
        lease = held_lease(before, node, self.namespace, holder, seconds, now, run)
        self.write(lease, there=before is not None)
        return lease
