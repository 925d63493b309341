# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where to where the VMs of a run migrated, as the API server told it.

A list of the migrations at the end would lack those of VMs that were shut down later: they go with their VMI.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference, kin

from integration.clusters import KUBEVIRT, MIGRATIONS
from testbed.api import Object, resource_path
from testbed.watches import Watches


@dataclass(frozen=True, order=True)
class Way:
    """Of a VM, by namespace/name, from node to node."""

    vm: str
    source: str
    target: str


def way(action: Object) -> Way:
    """Of an action of a plan's document."""
    return Way(f"{action['object']['namespace']}/{action['object']['name']}", action["from"], action["to"])


def kin_title(title: str) -> str:
    """What the titles of all VMIs of a replica set have in common; of a VMI that keeps its name, its title."""
    namespace, _slash, name = title.partition("/")
    return f"{namespace}/{kin(ObjectReference('VirtualMachineInstance', namespace, name, ''))}"


class Journeys(Watches):
    """Watches the migrations of a run."""

    def __init__(self, kubeconfig: Path, run: str) -> None:
        self._run = run
        self._last: dict[str, Object] = {}
        super().__init__(kubeconfig, {"migrations": resource_path(KUBEVIRT, MIGRATIONS)})

    def see(self, _name: str, event: Object) -> None:
        metadata = event["object"]["metadata"]
        if metadata.get("labels", {}).get(RUN_LABEL) == self._run:
            self._last[metadata["uid"]] = event["object"]

    @property
    def found(self) -> dict[Way, tuple[str, str]]:
        """When each migration was created and when it ended, in the API server's time; all of them succeeded."""
        found: dict[Way, tuple[str, str]] = {}
        for item in self._last.values():
            state = item["status"]["migrationState"]
            vm = f"{item['metadata']['namespace']}/{item['spec']['vmiName']}"
            assert item["status"]["phase"] == "Succeeded", item["metadata"]["name"]
            seen = Way(vm, state["sourceNode"], state["targetNode"])
            assert seen not in found, f"{seen} twice"
            found[seen] = item["metadata"]["creationTimestamp"], state["endTimestamp"]
        return found
