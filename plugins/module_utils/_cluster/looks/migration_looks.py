# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at some VMIs on their way, with as few permissions as that takes: one watch, of migrations.

In all namespaces only if the VMIs stand in several; VMIs are read one by one, when the reducer asks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.inquiries import Inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import RESOURCE, migrations_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.watch import WatchedList
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL, read_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect


class MigrationLooks:
    """run: label of the run. unschedulable_timeout: of its migrations, in seconds.

    prospects: its VMIs. What was read of them will do for the first look; migrations by which they are on their way
    already are looked at as well, but no others of the runs that those belong to.
    """

    def __init__(self, client: Client, run: str, prospects: Iterable[Prospect], unschedulable_timeout: int) -> None:
        prospects = list(prospects)
        known = [prospect.in_flight for prospect in prospects if prospect.in_flight is not None]
        namespaces = {prospect.request.namespace for prospect in prospects}
        self._run = run
        self._known = frozenset(migration.uid for migration in known)
        self._at_hand = [SeenVmi.of(prospect.vmi) for prospect in prospects if prospect.vmi is not None]
        self._inquiries = Inquiries(client, unschedulable_timeout)
        path = migrations_path(namespaces.pop() if len(namespaces) == 1 else None)
        runs = ",".join(sorted({run, *(migration.run for migration in known)}))
        self._migrations = WatchedList(client, path, RESOURCE, {"labelSelector": f"{RUN_LABEL} in ({runs})"})

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        """VMIs are looked at wherever they are."""

    def look(self, questions: Questions, seconds: float) -> Observation:
        """Return with the next changes, or after some seconds without one; at once the first time, and if asked to.

        Raises Failure.
        """
        wait = min(seconds, self._inquiries.ask_scheduler(questions))
        self._migrations.update(0.0 if questions.vmis else max(0.0, wait))
        seen = map(read_migration, self._migrations.objects.values())
        ours = [migration for migration in seen if migration.run == self._run or migration.uid in self._known]
        at_hand, self._at_hand = self._at_hand, []
        return self._inquiries.observe(questions, at_hand, ours)

    def forget(self) -> None:
        """Let the next look read everything anew, and not wait."""
        self._migrations.forget()
        self._at_hand = []
