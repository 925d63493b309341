# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how each leaves a node: by the options of the task, and by a plan where these do not say where to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.prospects import read_prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Situation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_arguments, drain_results
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import leaving
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules


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
        found = leaving.departures(situation, intent, self._plan(situation, intent))
        forbidden = list(leaving.forbidden(situation.pods, self._allowed))
        if failures is None and (found.stuck or forbidden):
            raise drain_results.blocked(self._client.server, situation.node, [*found.stuck, *forbidden])
        if forbidden:  # they have come since
            raise Mistake(f"drain node {situation.node}", list(map(str, forbidden)), "What has left stays away.")
        prospects = read_prospects(self._client, [planned.wish for planned in found.migrations])
        # Looking and planning take a while, in which the cluster goes on.
        waiting = {item.wish.title: why for item in prospects if (why := _why_not_now(item, situation.node))}
        ready = [item for item in prospects if item.wish.title not in waiting]
        migration_rules.check(ready)
        migrations = tuple(planned for planned in found.migrations if planned.wish.title not in waiting)
        return replace(found, migrations=migrations, waiting={**found.waiting, **waiting}), ready

    def _plan(self, situation: Situation, intent: leaving.Intent) -> DrainPlan | None:
        if not leaving.unplanned(situation, intent):
            return None
        # With numpy and the scheduler, which no other round is to pay for.
        from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_planning import (  # noqa: PLC0415
            plan_of,
        )

        return plan_of(self._client, situation, intent)


def _why_not_now(prospect: Prospect, node: str) -> str | None:
    """Why a VM that was to be migrated is left alone, if that is no mistake of anybody's."""
    if prospect.vmi is None:
        return "it has ended"
    if why := leaving.left_alone(prospect.vmi, prospect.in_flight):
        return why
    if prospect.source_node != node:
        return None if prospect.fulfilled else f"it runs on {prospect.source_node} by now"
    return migration_rules.passing(prospect)
