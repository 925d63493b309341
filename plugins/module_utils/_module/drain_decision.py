# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how each leaves a node: by the options of the task, and by a plan where these do not say where to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.prospects import read_prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import NumpyMissingError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Situation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import QuantityError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import SelectorError
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_arguments, drain_results
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

_PAGE_SIZE = 500
_UNPLANNABLE = (NumpyMissingError, QuantityError, SelectorError)


class Decision:
    """What drain_task.Decide is."""

    def __init__(self, client: Client, params: Mapping[str, Any]) -> None:
        """Raises Mistake."""
        self._client = client
        self._targets = drain_arguments.targets(params)
        self._allowed = drain_arguments.allowed(params)
        self._retries: int = params["retries"]
        self._rules = compile_rules(params["policies"])

    def __call__(
        self, situation: Situation, failures: Mapping[str, Sequence[str]] | None
    ) -> tuple[Departures, list[Prospect]]:
        """Raises Failure, Mistake and, if something cannot leave and nothing has been done yet, Incomplete."""
        reasons = failures or {}
        hopeless = frozenset(title for title, known in reasons.items() if len(known) > self._retries)
        failed = {title: known[-1] for title, known in reasons.items()}
        intent = leaving.Intent(self._targets, self._rules, failed, hopeless)
        plan = self._plan(situation, intent) if leaving.unplanned(situation, intent) else None
        found = leaving.departures(situation, intent, plan)
        forbidden = list(leaving.forbidden(situation.pods, self._allowed))
        if failures is None and (found.stuck or forbidden):
            raise drain_results.blocked(self._client.server, situation.node, [*found.stuck, *forbidden])
        if forbidden:  # they have come since
            raise Mistake(f"drain node {situation.node}", list(map(str, forbidden)), "What has left stays away.")
        prospects = read_prospects(self._client, [planned.wish for planned in found.migrations])
        migration_rules.check(prospects)
        return found, prospects

    def _plan(self, situation: Situation, intent: leaving.Intent) -> DrainPlan:
        # numpy and the scheduler, which no other round is to pay for.
        from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain  # noqa: PLC0415

        document = take(self._client, _PAGE_SIZE)
        lists = document.decoded(*document.lists).lists
        targets = intent.targets_of(situation.vmis)
        try:
            return plan_drain(lists, [situation.node], policies=self._rules, targets=targets)
        except _UNPLANNABLE as error:
            remedy = "Remove the cause, or give each VM its target."
            raise Mistake(f"plan the drain of node {situation.node}", [str(error).rstrip(".")], remedy) from error
