# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each leaves a node: by which of target, plan and policy, and when."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker, Effect
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import Ending
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Situation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration, read_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    Outcome,
    PlannedMove,
    PodFate,
    PodOutcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.leaving import (
    Intent,
    departures,
    forbidden,
    unplanned,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

Json = dict[str, Any]
NO_NODE = "0/3 nodes are available: 3 Insufficient memory."
OWNER = {"kind": "VirtualMachineInstanceReplicaSet", "name": "set", "uid": "u", "controller": True}
FOLLOWS = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def vmi(name: str, *, migratable: bool = True, owned: bool = True, phase: str = "Running", **spec: Any) -> Json:
    condition = {"type": "LiveMigratable", "status": str(migratable), "reason": "DisksNotLiveMigratable"}
    owners = [OWNER] if owned else []
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}", "ownerReferences": owners},
        "spec": spec,
        "status": {"phase": phase, "conditions": [condition]},
    }


def pod(name: str, *, owned: bool = True, **spec: Any) -> Json:
    owners = [{"kind": "ReplicaSet", "name": "r", "controller": True}] if owned else []
    return {"metadata": {"namespace": "shop", "name": name, "uid": name, "ownerReferences": owners}, "spec": spec}


def migration(vmi: str, run: str) -> Migration:
    item = {
        "metadata": {"namespace": "shop", "name": "m", "uid": "u", "labels": {"virtops.kubevirt/run": run}},
        "spec": {"vmiName": vmi, "addedNodeSelector": {"kubernetes.io/hostname": "n3"}},
    }
    return read_migration(item)


def situation(*vmis: Json, pods: tuple[Json, ...] = (), **migrations: Migration) -> Situation:
    return Situation("n1", vmis, pods, (), {f"shop/{name}": item for name, item in migrations.items()})


def intent(*, policy: str = "fail", failed: int = 0, targets: str = "", retries: int = 1) -> Intent:
    """With failures of VMI `a`, so many, and a target for each VMI named."""
    hopeless = frozenset({"shop/a"}) if failed > retries else frozenset()
    reasons = {"shop/a": "it broke"} if failed else {}
    return Intent({f"shop/{name}": "n2" for name in targets}, compile_rules([{"policy": policy}]), reasons, hopeless)


def move(name: str, wave: int = 1) -> PlannedMove:
    return PlannedMove("shop", name, "n1", "n4", {}, wave, 0, "", (), "", 12, Ending.IN_TIME)


def stuck(name: str, outcome: Outcome, policy: Policy = Policy.FAIL, wave: int | None = None) -> StuckMachine:
    return StuckMachine("shop", name, "n1", policy, outcome, wave, None, (), NO_NODE, {}, (), "")


def plan(*moves: PlannedMove, stuck: tuple[StuckMachine, ...] = (), pods: tuple[PodFate, ...] = ()) -> DrainPlan:
    return DrainPlan(("n1",), True, False, "", moves, stuck, pods, 12, {}, ())


def where(found: Departures) -> dict[str, tuple[str | None, int]]:
    return {item.wish.name: (item.wish.target_node, item.wave) for item in found.migrations}


def test_a_plan_is_needed_only_where_nobody_says_where_to() -> None:
    here = situation(
        vmi("a"),
        vmi("b"),
        vmi("pet", migratable=False),
        vmi("starting", phase="Scheduled"),
        vmi("going"),
        going=migration("going", "ours"),
    )
    assert unplanned(here, intent(targets="ab")) == []
    assert unplanned(here, intent(targets="a")) == ["shop/b"]
    assert unplanned(here, intent(targets="ab", failed=1)) == ["shop/a"]
    assert unplanned(here, intent(targets="ab", failed=2)) == []
    assert unplanned(here, intent(targets="ab", policy="restart")) == ["shop/pet"]


def test_given_targets_count_without_a_plan_and_followers_wait() -> None:
    found = departures(situation(vmi("a"), vmi("b", affinity=FOLLOWS)), intent(targets="ab"), None)
    assert where(found) == {"a": ("n2", 1), "b": ("n2", 2)}
    assert [item.follows for item in found.migrations] == [False, True]


def test_a_plan_says_where_to_and_when() -> None:
    fate = PodFate("shop", "p", "n1", PodOutcome.MOVES, 2, "n5", (), "", (), (), "")
    here = situation(vmi("a"), vmi("b"), pods=(pod("p"), pod("new")))
    found = departures(here, intent(), plan(move("a"), move("b", wave=3), pods=(fate,)))
    assert where(found) == {"a": ("n4", 1), "b": ("n4", 3)}
    assert [(item.name, item.wave, item.expected_node) for item in found.evictions] == [("p", 2, "n5"), ("new", 1, "")]


def test_migrations_under_way_are_kept_to_and_those_of_others_waited_for() -> None:
    here = situation(vmi("a"), vmi("b"), a=migration("a", "ours"), b=migration("b", ""))
    found = departures(here, intent(), plan(move("a"), move("b")))
    assert [item.wish.added_node_selector for item in found.migrations] == [{"kubernetes.io/hostname": "n3"}]
    assert list(found.waiting) == ["shop/b"]


@pytest.mark.parametrize("phase", ["Scheduled", "Pending"])
def test_what_begins_is_waited_for(phase: str) -> None:
    found = departures(situation(vmi("a", phase=phase)), intent(), None)
    assert found.waiting == {"shop/a": f"it is {phase}, and only a running VM can leave"}


def test_what_came_after_the_plan_is_left_to_the_next_one() -> None:
    assert list(departures(situation(vmi("a"), vmi("late")), intent(), plan(move("a"))).waiting) == ["shop/late"]


@pytest.mark.parametrize(("policy", "action"), [("stop", "stop"), ("restart", "restart")])
def test_policies_come_last(policy: str, action: str) -> None:
    here = situation(vmi("a"), vmi("pet", migratable=False))
    outcome = Outcome.STOPS if policy == "stop" else Outcome.RESTARTS
    found = departures(here, intent(policy=policy), plan(move("a", wave=2), stuck=(stuck("pet", outcome),)))
    (item,) = found.interruptions
    assert (item.name, item.action, item.owner, item.wave) == ("pet", action, "set", 3)
    assert item.why == "KubeVirt says that it cannot be live-migrated, DisksNotLiveMigratable"


BUSY = StuckMachine(
    "shop",
    "a",
    "n1",
    Policy.FAIL,
    Outcome.WAITS,
    None,
    None,
    (),
    "",
    {},
    (Blocker("backup-in-progress", Effect.HELD, "a backup", "a backup runs", "wait", passing=True),),
    "",
)


@pytest.mark.parametrize("targets", ["", "a"])
@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
def test_a_vm_with_what_passes_is_waited_for_whatever_its_policy(policy: str, targets: str) -> None:
    here, wanted = situation(vmi("a"), vmi("b")), intent(policy=policy, targets=targets)
    found = departures(here, wanted, plan(move("b"), stuck=(BUSY,)))
    assert found.waiting == {"shop/a": "a backup runs; wait"}
    assert (list(where(found)), found.interruptions, found.stuck) == (["b"], (), ())


@pytest.mark.parametrize(("policy", "ends", "stays"), [("fail", 0, 1), ("stop", 1, 0), ("restart", 1, 0)])
def test_a_vm_that_is_not_tried_again_is_not_waited_for(policy: str, ends: int, stays: int) -> None:
    found = departures(situation(vmi("a")), intent(policy=policy, failed=2), plan(stuck=(BUSY,)))
    assert (len(found.interruptions), len(found.stuck), found.waiting) == (ends, stays, {})


def test_a_migration_of_ours_goes_on_whatever_passes() -> None:
    found = departures(situation(vmi("a"), a=migration("a", "ours")), intent(), plan(stuck=(BUSY,)))
    assert (list(where(found)), found.waiting) == (["a"], {})


def test_what_no_policy_helps_is_stuck_with_the_reason() -> None:
    here = situation(vmi("a"), vmi("b", owned=False), vmi("c"))
    stays = tuple(stuck(name, Outcome.STAYS) for name in "ac")
    found = departures(here, intent(policy="restart"), plan(stuck=(*stays, stuck("b", Outcome.STOPS))))
    assert [str(item) for item in found.stuck] == [
        f"vm shop/a: no node can take it: {NO_NODE[:-1]}, nor could it be restarted elsewhere",
        f"vm shop/b: no node can take it: {NO_NODE[:-1]}; nothing would start it again after a restart, as no VM or "
        "replica set owns it",
        f"vm shop/c: no node can take it: {NO_NODE[:-1]}, nor could it be restarted elsewhere",
    ]


def test_a_vm_whose_migrations_failed_follows_its_policy() -> None:
    found = departures(situation(vmi("a")), intent(policy="stop", failed=2, targets="a"), None)
    assert [(item.name, item.why) for item in found.interruptions] == [("a", "it broke")]


def test_pods_that_may_not_go_are_named_with_what_would_allow_it() -> None:
    pods = [pod("fine"), pod("lone", owned=False), pod("data", volumes=[{"name": "v", "emptyDir": {}}])]
    named = {item.name: item.why for item in forbidden(pods, frozenset())}
    assert set(named) == {"lone", "data"}
    assert named["lone"] == "nothing would replace it; set force if it may go"
    assert [item.name for item in forbidden(pods, frozenset({"force"}))] == ["data"]
    assert list(forbidden(pods, frozenset({"force", "delete_emptydir_data"}))) == []


def test_a_pod_that_ends_already_is_not_evicted_again() -> None:
    ending = pod("p")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (eviction,) = departures(situation(pods=(ending,)), intent(), None).evictions
    assert (eviction.outcome, eviction.asked_at) == ("evicting", 0.0)
