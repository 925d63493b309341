# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters, and mended ones, keep to the schema, and no order or form changes a byte of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster, Snapshot, from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import (
    decode,
    document,
    encode_all,
)
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

Lists = Mapping[str, Sequence[Any]]
# Reads lists of a cluster.
Reader = Callable[[Lists], Snapshot]


def as_file(lists: Lists) -> Snapshot:
    """As they are in a snapshot's file, without its header, which a plan names."""
    encoded = {kind: encode_all(items) for kind, items in lists.items()}
    found = document(encoded, cluster=Cluster("u", "v1.36.3", "v1.8.4"), taken_at="2026-01-01T00:00:00Z")
    return Snapshot(decode(b"".join(found.chunks())).lists)


def given(seed: int, read: Reader) -> Plan:
    (nodes, machines, pods), batches = clusters.SHAPES[seed % 4]
    lists = tight_cluster(seed, nodes=nodes, machines=machines, pods=pods)
    return plan_run(read(lists), "patch", batches, clusters.options_of(seed))


def auto(seed: int, read: Reader) -> Plan:
    options = PlanOptions(policies=clusters.POLICIES[seed // 4 % 4], batching=BatchRules(size=None))
    lists = tight_cluster(seed, nodes=5, machines=10)
    return plan_whole_run(read(lists), "patch", ["n0", "n1", "n2"], options)


def rebalanced(seed: int, read: Reader) -> Plan:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    return plan_rebalance(read(lists), "tidy", max_moves=20).plan


def mended(seed: int, read: Reader) -> Plan:
    now = next(filter(None, map(moment, range(4 * seed, 4 * seed + 400))))
    snapshot = read(now.replay.look())
    return repair(now.plan, snapshot, node=now.node, failures=now.failures, ended=now.replay.ended)


@pytest.mark.campaign
@pytest.mark.parametrize("plan", [given, auto, rebalanced, mended])
@pytest.mark.parametrize("seed", [5, 9, 20, 21, 22, 25])
def test_a_plan_is_the_same_document_however_a_cluster_is_told(plan: Callable[[int, Reader], Plan], seed: int) -> None:
    dice = random.Random(seed)
    found = encode(plan(seed, from_plain))
    assert encode(plan_in(json.loads(found))) == found

    def shuffled(lists: Lists) -> Snapshot:
        return from_plain({kind: dice.sample(items, len(items)) for kind, items in lists.items()})

    assert (encode(plan(seed, shuffled)), encode(plan(seed, as_file))) == (found, found)
