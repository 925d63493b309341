# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan in force is mended node by node, whoever mends it at the same time, and always a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import PlanError, decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    Plan,
    Verdict,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import (
    PlanInForce,
    mended,
    with_node,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.plugins.module_utils._plan.plans import action, plan, plans, vm
from unit.plugins.module_utils._planner.tight import tight_cluster

WEB = action(ActionKind.MIGRATE, vm("web"), "n1", "n3")
DB = action(ActionKind.MIGRATE, vm("db"), "n2", "n3")


def waiting(entry: Action, *others: Action) -> Action:
    return replace(entry, after=tuple(other.id for other in others))


def sound(found: Plan) -> Plan:
    assert decode(encode(found)) == found
    return found


@given(plans())
def test_the_document_says_all(whole: Plan) -> None:
    kept = PlanInForce(whole, "abc")
    assert PlanInForce.decoded(kept.encoded()) == kept
    assert PlanInForce.decoded(PlanInForce.new(whole).encoded()).plan == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given | {"schema": "virtops.kubevirt/plan-in-force/2"},
        lambda given: {"plan": given["plan"]},
        lambda given: given | {"plan": given["plan"] | {"options": {"speed": 9}}},
        lambda given: given | {"plan": []},
        lambda given: given | {"plan": given["plan"] | {"run": "another"}},
        lambda _given: [],
    ],
)
def test_what_is_no_plan_in_force_is_refused_in_a_sentence(change: Any) -> None:
    given = json.loads(PlanInForce.new(plan(WEB)).encoded())
    with pytest.raises(PlanError, match=r"[.]$"):
        PlanInForce.decoded(json.dumps(change(given)).encode())
    with pytest.raises(PlanError):
        PlanInForce.decoded(b"{")


def test_drains_of_one_batch_mend_what_is_their_own() -> None:
    whole = plan(WEB, DB)
    by_first = plan(replace(WEB, target="n4"), DB)
    by_second = plan(WEB, replace(DB, target="n5"))
    both = sound(with_node(with_node(whole, by_first, "n1"), by_second, "n2"))
    assert [entry.target for entry in both.actions] == ["n4", "n5"]


def test_drains_that_would_wait_for_each_other_do_not() -> None:
    whole = plan(WEB, DB)
    first = with_node(whole, replace(whole, actions=(DB, waiting(WEB, DB))), "n1")
    assert [(entry.id, entry.after) for entry in first.actions] == [(DB.id, ()), (WEB.id, (DB.id,))]
    assert sound(with_node(first, plan(WEB, waiting(DB, WEB)), "n2")) == first


def test_nobody_waits_for_what_has_nothing_to_do_any_more() -> None:
    whole = plan(WEB, waiting(DB, WEB))
    found = sound(with_node(whole, replace(whole, actions=(DB,)), "n1"))
    assert [(entry.id, entry.after) for entry in found.actions] == [(DB.id, ())]


def test_what_stands_against_a_node_that_is_drained_is_not_kept() -> None:
    """Whoever goes on looks anew, and finds an action for what has none."""
    other = Blocked(vm("db"), "n2", ("a backup",), passing=True)
    stuck = Blocked(vm("web"), "n1", ("its migration to n3 failed",))
    whole = plan(WEB, DB, blocked=(other, stuck), verdict=Verdict.INFEASIBLE)
    found = with_node(whole, replace(whole, actions=(DB,)), "n1")
    assert (found.blocked, found.verdict) == ((other,), Verdict.FEASIBLE)


def test_a_plan_of_other_batches_mends_nothing() -> None:
    whole = plan(WEB, DB)
    assert with_node(whole, plan(replace(WEB, target="n4")), "n1") == whole
    assert with_node(whole, replace(whole, actions=()), "n9") == whole


def test_a_document_is_mended_if_there_is_one() -> None:
    other = plan(replace(WEB, target="n4"), DB)
    changed = mended(PlanInForce(plan(WEB, DB), "abc").encoded(), other, "n1")
    assert changed
    assert PlanInForce.decoded(changed) == PlanInForce(with_node(plan(WEB, DB), other, "n1"), "abc")
    assert mended(None, other, "n1") is None
    assert mended(b"{", other, "n1") is None


@pytest.mark.parametrize("seed", range(4))
def test_each_node_that_is_mended_leaves_a_plan(seed: int) -> None:
    """Of a batch of two, mended apart after two VMs could not be migrated, beside a batch that stays."""
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    snapshot = from_plain(lists)
    whole = plan_run(snapshot, "patch", [["n0", "n1"], ["n5"]], PlanOptions(policies=[{"policy": "restart"}]))
    found = whole
    for name in ("n0", "n1"):
        moves = [entry for entry in whole.of_node(name) if entry.kind is ActionKind.MIGRATE][:1]
        failures = {entry.object.title: (entry.target or "",) for entry in moves}
        changed = of_batch(repair(of_batch(whole, name), snapshot, node=name, failures=failures), name)
        found = sound(with_node(found, changed, name))
        assert [entry.id for entry in found.of_node(name)] == [entry.id for entry in changed.of_node(name)]
    assert found.of_node("n5") == whole.of_node("n5")
