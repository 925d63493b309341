# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters, and mended ones, keep to the schema, and no order of objects changes a byte of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import plan_rebalance
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from unit.checker import clusters
from unit.checker.mending import moment
from unit.plugins.module_utils._planner.tight import tight_cluster
from unit.plugins.support.plan_schema import plan_in

# Gives lists of a cluster in some order.
Lists = Mapping[str, Sequence[Any]]
Order = Callable[[Lists], Lists]


def given(seed: int, order: Order) -> Plan:
    (nodes, machines, pods), batches = clusters.SHAPES[seed % 4]
    lists = tight_cluster(seed, nodes=nodes, machines=machines, pods=pods)
    return plan_run(from_plain(order(lists)), "patch", batches, clusters.options_of(seed))


def auto(seed: int, order: Order) -> Plan:
    options = PlanOptions(policies=clusters.POLICIES[seed // 4 % 4], batching=BatchRules(size=None))
    lists = tight_cluster(seed, nodes=5, machines=10)
    return plan_whole_run(from_plain(order(lists)), "patch", ["n0", "n1", "n2"], options)


def rebalanced(seed: int, order: Order) -> Plan:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    return plan_rebalance(from_plain(order(lists)), "tidy", max_moves=20).plan


def mended(seed: int, order: Order) -> Plan:
    now = next(filter(None, map(moment, range(4 * seed, 4 * seed + 400))))
    snapshot = from_plain(order(now.replay.look()))
    return repair(now.plan, snapshot, node=now.node, failures=now.failures, ended=now.replay.ended)


@pytest.mark.campaign
@pytest.mark.parametrize("plan", [given, auto, rebalanced, mended])
@pytest.mark.parametrize("seed", [5, 9, 20, 21, 22, 25])
def test_a_plan_is_the_same_document_in_whatever_order_things_are_told(
    plan: Callable[[int, Order], Plan], seed: int
) -> None:
    dice = random.Random(seed)
    document = encode(plan(seed, lambda lists: lists))
    assert encode(plan_in(json.loads(document))) == document
    assert encode(
        plan(seed, lambda lists: {kind: dice.sample(items, len(items)) for kind, items in lists.items()})
    ) == (document)
