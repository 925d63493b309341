# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI that is wanted elsewhere, and what the cluster says to that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object


@dataclass(frozen=True, slots=True)
class MigrationRequest:
    """A VMI and where it is to run: on `target_node`, or on any node with the labels of `added_node_selector`.

    uid, source_node: which one is meant, and the node that it is to leave; empty for whichever has the name, wherever.
    """

    namespace: str
    name: str
    target_node: str | None
    added_node_selector: Mapping[str, str]
    uid: str = ""
    source_node: str = ""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def destination(self) -> str:
        return self.target_node or ",".join(f"{key}={value}" for key, value in sorted(self.added_node_selector.items()))


@dataclass(frozen=True, slots=True)
class Prospect:
    """A request beside the facts.

    vmi: None if there is none. node_selector: the labels that pin the migration; empty if the target node carries no
    label to pin it by. nodes: names of those that the request allows, none if there is none. migrations: those of the
    VMI that the cluster knows, over or not.
    """

    request: MigrationRequest
    vmi: Object | None
    node_selector: Mapping[str, str]
    nodes: frozenset[str]
    migrations: tuple[Migration, ...]

    @property
    def uid(self) -> str:
        """Of the VMI, empty if there is none."""
        return str(self.vmi["metadata"]["uid"]) if self.vmi else ""

    @property
    def in_flight(self) -> Migration | None:
        """The VMI's unfinished migration; it has one at most."""
        return next((migration for migration in self.migrations if migration.unfinished), None)

    @property
    def past(self) -> frozenset[str]:
        """Uids of the VMI's migrations that are over."""
        return frozenset(migration.uid for migration in self.migrations if not migration.unfinished)

    @property
    def node(self) -> str:
        """Where the VMI runs, empty if nowhere."""
        return str(self._status.get("nodeName") or "")

    @property
    def source_node(self) -> str:
        """The same, but of one that has just arrived by a migration which is not over yet where it comes from."""
        moving, state = self.in_flight, self._status.get("migrationState") or {}
        is_its = moving is not None and state.get("migrationUid") == moving.uid
        return str((is_its and state.get("sourceNode")) or self.node)

    @property
    def fulfilled(self) -> bool:
        """Whether the VMI runs where it is wanted."""
        return self.node in self.nodes

    @property
    def _status(self) -> Object:
        status: Object = (self.vmi or {}).get("status") or {}
        return status

    @property
    def is_moving(self) -> bool:
        """Whether the VMI is on its way, or has yet to go."""
        return self.in_flight is not None or not self.fulfilled

    @property
    def on_its_way(self) -> bool:
        """Whether an earlier run's migration is about to fulfil the request."""
        migration = self.in_flight
        return migration is not None and bool(migration.run) and dict(migration.node_selector) == self.node_selector
