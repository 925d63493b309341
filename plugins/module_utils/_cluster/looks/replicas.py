# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMIs of a replica set, watched until they are as many as wanted and ready, or until they are gone."""

from __future__ import annotations

import time
from collections.abc import Callable

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import API_VERSION, VMIS
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.watch import WatchedList
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI_REPLICA_SET,
    Object,
    controller,
)

_QUIET_INTERVAL = 20.0
_PAUSE_AFTER_TROUBLE = 1.0


class Replicas:
    """`vmis`: those that the replica set controls, by name, as of the last look. `trouble`: why looking fails now."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.vmis: list[Object] = []
        self.trouble: Failure | None = None
        self._name = name
        path = collection_path(API_VERSION, namespace, VMIS)
        # By owner, not by label: whoever asks for the end of a set that is gone knows no labels any more.
        self._watched = WatchedList(client, path, f"VMIs in namespace {namespace}", {})

    def look(self, seconds: float = 0) -> None:
        """Look at once the first time, then with the next change, or after some seconds without one. Raises Failure."""
        self._watched.update(seconds)
        owned = [vmi for vmi in self._watched.objects.values() if _controlled(vmi, self._name)]
        self.vmis = sorted(owned, key=lambda vmi: str(vmi["metadata"]["name"]))

    def wait(self, reached: Callable[[list[Object]], bool], deadline: float) -> bool:
        """Whether the VMIs got there before the deadline (of time.monotonic). Raises Failure.

        A server that is away for a moment is asked again.
        """
        while not reached(self.vmis):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            try:
                self.look(min(left, _QUIET_INTERVAL))
                self.trouble = None
            except Failure as error:
                if not error.passing:
                    raise
                self.trouble = error.following(self.trouble)
                time.sleep(min(left, _PAUSE_AFTER_TROUBLE))
        return True


def _controlled(vmi: Object, name: str) -> bool:
    owner = controller(vmi)
    return owner is not None and (owner["kind"], owner["name"]) == (VMI_REPLICA_SET, name)
