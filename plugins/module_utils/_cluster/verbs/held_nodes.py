# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a task works on together: all taken before anything leaves one, and still its own before each step."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import always
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import maintenance
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.maintenance import Request, Transition
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import Cordon


@dataclass(frozen=True)
class HeldNodes:
    """wanted: how one of them is taken. hold: of the run, None if there is none, or nothing is to be changed.

    taken: what has become of each by now. cordons: how each was the owner's when it was first seen to be.
    """

    client: Client
    wanted: Request
    hold: RunHold | None
    taken: list[Transition] = field(default_factory=list)
    cordons: dict[str, Cordon] = field(default_factory=dict)

    @property
    def have_changed(self) -> bool:
        return any(transition.changed for transition in self.taken)

    def take(self, nodes: Iterable[str]) -> dict[str, str]:
        """Cordon them for the owner. By node what tells this maintenance of it from others. Raises Failure."""
        may = self.hold.require if self.hold else always
        epochs = {}
        for name in nodes:
            wanted = replace(self.wanted, node=name)
            self.taken.append(maintenance.begin(self.client, wanted, wait_seconds=0, pause=0, may=may))
            cordon = self.taken[-1].after.cordon
            if cordon is not None:
                self.cordons[name] = cordon
            epochs[name] = _epoch(cordon)
        return epochs

    def require(self, nodes: Iterable[str]) -> dict[str, str]:
        """See that they are the owner's, by whomever they were taken, and still are. The same by node. Raises Failure.

        One that was given back, and taken anew for the same owner, may have been sent something in between.
        """
        epochs = {}
        for name in nodes:
            wanted = replace(self.wanted, dry_run=False, node=name)
            cordon = maintenance.require(self.client, wanted)
            first = self.cordons.setdefault(name, cordon)
            # A cordon of somebody else, which is kept, never gets the owner's mark.
            if cordon.marked and (not first.marked or cordon.since != first.since):
                raise maintenance.taken_anew(self.client, wanted, cordon)
            epochs[name] = _epoch(cordon)
        return epochs

    def require_all(self, nodes: Iterable[str]) -> None:
        """See, before something is done, that run and nodes are ours; check mode does nothing. Raises Failure."""
        if self.wanted.dry_run:
            return
        if self.hold is not None:
            # How old a look may be, who asks has seen to. What has just gone wrong may be an abort's doing.
            self.hold.require(anew=True)
        self.require(nodes)


def _epoch(cordon: Cordon | None) -> str:
    return (cordon.since if cordon else None) or uuid.uuid4().hex
