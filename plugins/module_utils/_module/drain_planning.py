# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the drain of a node on the whole cluster. It brings numpy and the scheduler with it."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Situation, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.leaving import Intent

_PAGE_SIZE = 500


def plan_of(client: Client, situation: Situation, intent: Intent) -> DrainPlan:
    """Raises Failure, Mistake."""
    document = take(client, _PAGE_SIZE)
    lists = document.decoded(*document.lists).lists
    known = set(map(title, lists["vmis"]))  # some may have ended since the look
    targets = intent.targets_of(vmi for vmi in situation.vmis if title(vmi) in known)
    with explained(f"plan the drain of node {situation.node}", "Remove the cause, or give each VM its target."):
        return plan_drain(lists, [situation.node], policies=intent.rules, targets=targets)
