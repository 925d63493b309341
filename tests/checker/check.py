# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a plan can be carried out on a cluster: both in, violations out."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

from checker.cluster import CarriedCluster
from checker.order import (
    ByLot,
    Lot,
    MuchAtOnce,
    OneByOne,
    Order,
)
from checker.outline import outlined, waits_in_vain
from checker.replay import Replay
from checker.stuck import free_to_leave
from checker.violation import PlanFlaw


def violations(lists: Lists, plan: Plan, lots: Iterable[Lot] = ()) -> list[PlanFlaw]:
    """What is wrong with a whole plan, made for the cluster in these lists; of each subject and fault the first one.

    It is carried out with as much at once as it allows, with one action after the other, and once for each of the lots
    as these have it. Each costs as much as to read the lists, and some milliseconds for each action. Raises
    LauncherError, WorkloadError, `SelectorError`, `QuantityError`, `MissingLibrary`.
    """
    if found := waits_in_vain(plan):
        return found
    found = [*outlined(plan)]

    def judge(cluster: CarriedCluster, batch: int) -> None:
        found.extend(free_to_leave(cluster, plan, batch))

    first = Replay(lists, plan, OneByOne(), emptied=judge)
    first.run()
    found += first.violations
    orders: list[Order] = [MuchAtOnce(), *map(ByLot, lots)]
    for order in orders:
        replay = Replay(lists, plan, order, foreseen=first.landed)
        replay.run()
        found += replay.violations
    return list({(entry.fault, entry.subject): entry for entry in reversed(found)}.values())[::-1]
