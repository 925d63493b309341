# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nobody is interrupted whom a node can take that others maintain, however it looks in the middle of that."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from unit.plugins.module_utils._planner.scene import FIXED, HOST, ZONE, Json, Scene, apart_but_own, node

WAITS = ("b, which could take it, is cordoned by somebody",)


def tainted(key: str, effect: str = "NoSchedule") -> Json:
    return {"spec": {"taints": [{"key": key, "effect": effect}]}}


NONE = {f"devices.kubevirt.io/{name}": "0" for name in ("kvm", "tun", "vhost-net")}
STAGES: list[Json] = [
    tainted("node.kubernetes.io/unschedulable"),
    tainted("medik8s.io/drain"),
    tainted("node.kubernetes.io/not-ready"),
    tainted("node.kubernetes.io/unreachable", "NoExecute"),
    tainted("node.cloudprovider.kubernetes.io/shutdown"),
    {"labels": {"kubevirt.io/schedulable": "false"}},
    # virt-handler has ended, and the kubelet has not.
    {"labels": {"kubevirt.io/schedulable": "false"}, "allocatable": NONE, "capacity": dict.fromkeys(NONE, "1k")},
    # The kubelet is back, and virt-handler is not.
    {"allocatable": NONE, "capacity": NONE},
]


def with_a_node_of_others(stage: Json) -> Scene:
    scene = Scene(node("a"), node("b", cordoned=True))
    scene.vm("vm-1", "a")
    other = scene.lists["nodes"][1]
    other["spec"]["taints"] = stage.get("spec", {}).get("taints", [])
    other["metadata"]["labels"] |= stage.get("labels", {})
    other["status"]["allocatable"] |= stage.get("allocatable", {})
    other["status"]["capacity"] = other["status"]["allocatable"] | stage.get("capacity", {})
    return scene


def planned(scene: Scene, policy: str) -> Plan:
    return plan_run(from_plain(scene.lists), "patch", [["a"]], PlanOptions(policies=[{"policy": policy}]))


def is_waited_for(plan: Plan) -> bool:
    (entry,) = plan.blocked
    harmless = not [action for action in plan.actions if ".stop." in action.id or ".restart." in action.id]
    return (entry.reasons, entry.passing, plan.verdict, harmless) == (WAITS, True, Verdict.FEASIBLE, True)


@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_maintenance_of_others_is_waited_for_at_every_stage(stage: Json, policy: str) -> None:
    """Also by a drain that is on its way when the node goes down."""
    before = planned(with_a_node_of_others({}), policy)
    assert is_waited_for(before)
    assert is_waited_for(planned(with_a_node_of_others(stage), policy))
    assert is_waited_for(repair(before, from_plain(with_a_node_of_others(stage).lists)))


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_who_is_to_restart_where_others_maintain_waits_for_that(stage: Json) -> None:
    """It cannot be migrated. Whoever asks later, when the node is back, gets the restart."""

    def refused(stage: Json) -> Scene:
        scene = with_a_node_of_others(stage)
        scene.lists["vmis"][0]["status"] |= FIXED
        return scene

    before = planned(refused({}), "restart")
    assert is_waited_for(before)
    assert before.blocked[0].obstacle.id == "room-to-restart"
    assert is_waited_for(planned(refused(stage), "restart"))
    assert is_waited_for(repair(before, from_plain(refused(stage).lists)))
    scene = refused({})
    del scene.lists["nodes"][1]["spec"]["unschedulable"]
    assert "1.restart.shop/vm-1" in {action.id for action in repair(before, from_plain(scene.lists)).actions}


def to_restart(**rules: Any) -> Scene:
    """A VM that cannot be migrated; the only other node that is not drained is too small for it."""
    scene = Scene(node("a"), node("b", memory="1Gi"))
    scene.vm("vm-1", "a", status=FIXED, rules=rules)
    return scene


def test_who_may_come_back_where_it_is_drained_waits_for_nothing() -> None:
    scene = to_restart(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    plan = planned(scene, "restart")
    assert [(entry.obstacle.id, entry.passing) for entry in plan.blocked] == [
        ("host-device-not-live-migratable", False)
    ]


@pytest.mark.parametrize("leaving", ["launcher", "migration"])
def test_whose_own_pod_is_leaving_already_is_no_reason_to_stumble(leaving: str) -> None:
    """Somebody has evicted its launcher, which has its time to end; or a migration of it has begun, and gets no pod."""
    scene = to_restart()
    if leaving == "launcher":
        scene.lists["pods"][0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        migration = {"metadata": {"namespace": "shop", "name": "m", "uid": "m"}, "spec": {"vmiName": "vm-1"}}
        scene.lists["migrations"] = [{**migration, "status": {"phase": "Pending"}}]
    assert not planned(scene, "restart").blocked[0].passing


@pytest.mark.parametrize("room", [0, 4])
def test_the_order_in_which_somebody_restarts_is_better_than_one_in_which_it_waits(room: int) -> None:
    """One node that it may go to is free once another one of the run has been emptied; the other one is cordoned."""
    scene = Scene(node("a", gpu="y"), node("b", gpu="y"), node("d"), node("c", gpu="y", cordoned=True))
    scene.vm("fixed-1", "a", memory="4Gi", status=FIXED, rules={"nodeSelector": {"gpu": "y"}})
    scene.vm("other-1", "b", memory="5Gi")
    options = PlanOptions(policies=[{"policy": "restart"}], batching=BatchRules(1, free=True), room=room)
    plan = plan_whole_run(from_plain(scene.lists), "patch", ["a", "b"], options)
    assert (plan.batches, plan.blocked) == ((("b",), ("a",)), ())


@pytest.mark.parametrize("status", [FIXED, None], ids=["restarts", "migrates"])
def test_so_it_is_where_more_have_to_move_for_that(status: Json | None) -> None:
    sizes = {"a": "12Gi", "b": "8Gi", "c": "8Gi", "d": "3Gi"}
    scene = Scene(*(node(name, gpu="n" if name == "d" else "y", memory=size) for name, size in sizes.items()))
    scene.lists["nodes"][2]["spec"]["unschedulable"] = True
    scene.vm("vm-1", "a", memory="4Gi", status=status, rules={"nodeSelector": {"gpu": "y"}})
    scene.vm("other-1", "b", memory="2Gi")
    scene.vm("other-2", "b", memory="3Gi")
    options = PlanOptions(policies=[{"policy": "restart"}], batching=BatchRules(1, free=True))
    assert plan_whole_run(from_plain(scene.lists), "patch", ["a", "b"], options).blocked == ()


@pytest.mark.parametrize(
    "change",
    [
        tainted("dedicated"),
        {"labels": {"kubevirt.io/machine-type": ""}, **tainted("node.kubernetes.io/out-of-service")},
        # A node without hardware virtualization.
        {"allocatable": NONE, "capacity": dict.fromkeys(NONE, "1k")},
    ],
    ids=str,
)
def test_what_no_maintenance_brings_is_not_waited_for(change: Any) -> None:
    assert "1.stop.shop/vm-1" in {action.id for action in planned(with_a_node_of_others(change), "stop").actions}


@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
def test_who_waits_for_one_that_waits_does_so_too(policy: str) -> None:
    """And so on."""
    zones = {"a": "za", "b": "zb", "f": "zf", "c": "zc", "d": "za", "e": "zb"}
    scene = Scene(*(node(name, zone, cordoned=name == "c") for name, zone in zones.items()))
    for name, source, target in (("db-1", "a", "c"), ("db-2", "b", "d"), ("db-3", "f", "e")):
        scene.vm(name, source, rules={"affinity": apart_but_own(ZONE, "db"), "nodeSelector": {HOST: target}})
    options = PlanOptions(policies=[{"policy": policy}])
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b", "f"]], options)
    assert {entry.object.name: (*entry.reasons, entry.passing) for entry in plan.blocked} == {
        "db-1": ("c, which could take it, is cordoned by somebody", True),
        "db-2": ("d can take it once shop/db-1 has left, which waits as well", True),
        "db-3": ("e can take it once others have left, which wait as well", True),
    }
    assert {action.kind.value for action in plan.actions} == {"cordon", "maintain", "uncordon"}
