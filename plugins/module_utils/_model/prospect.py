# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI that is wanted elsewhere, and what the cluster says to that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wish:
    """A VMI and where it is to run: on `target_node`, or on any node with the labels of `added_node_selector`."""

    namespace: str
    name: str
    target_node: str | None
    added_node_selector: Mapping[str, str]

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def destination(self) -> str:
        return self.target_node or ",".join(f"{key}={value}" for key, value in sorted(self.added_node_selector.items()))


@dataclass(frozen=True, slots=True)
class Prospect:
    """A wish beside the facts.

    vmi: None if there is none. node_selector: the labels that pin the migration; empty if the target node carries no
    label to pin it by. nodes: names of those that the wish allows, none if there is none. in_flight: the VMI's
    unfinished migration.
    """

    wish: Wish
    vmi: Object | None
    node_selector: Mapping[str, str]
    nodes: frozenset[str]
    in_flight: Migration | None

    @property
    def source_node(self) -> str:
        return str(((self.vmi or {}).get("status") or {}).get("nodeName") or "")

    @property
    def fulfilled(self) -> bool:
        """Whether the VMI runs where it is wanted."""
        return self.source_node in self.nodes

    @property
    def on_its_way(self) -> bool:
        """Whether an earlier run's migration is about to fulfil the wish."""
        migration = self.in_flight
        return migration is not None and bool(migration.run) and dict(migration.node_selector) == self.node_selector
