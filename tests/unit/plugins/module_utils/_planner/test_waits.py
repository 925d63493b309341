# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom actions wait for: enough that each is legal at its moment, and no more."""

from __future__ import annotations

import random

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.waits import fewest

from unit.plugins.module_utils._planner.replay_actions import ActionReplay
from unit.plugins.module_utils._planner.scene import HOST, ZONE, Lists, Scene, apart, near, node
from unit.plugins.module_utils._planner.tight import tight_cluster

POLICIES = [{"selector": {"app": "g0"}, "policy": "restart"}, {"selector": {"app": "g1"}, "policy": "stop"}]


def plan_of(lists: Lists, *nodes: str, policies: object = ()) -> Plan:
    return plan_run(from_plain(lists), "", [nodes], PlanOptions(policies=policies))  # type: ignore[arg-type]


def waits(plan: Plan) -> dict[str, list[str]]:
    """Names of those that each waits for, without the cordons."""
    names = {action.id: action.object.name for action in plan.actions}
    leaving = [action for action in plan.actions if action.source is not None]
    return {entry.object.name: [names[other] for other in entry.after if ".cordon." not in other] for entry in leaving}


# In the last ones somebody has to wait; hundreds of others were tried by hand.
@pytest.mark.campaign
@pytest.mark.parametrize("seed", [*range(20), 118, 133, 145, 157, 158, 160, 161, 166, 170])
def test_every_order_that_is_allowed_is_legal(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    plan = plan_of(lists, *["n0", "n1", "n2"][: 1 + seed % 3], policies=POLICIES if seed % 4 == 0 else ())
    for order in range(4):
        replay = ActionReplay(lists, plan)
        replay.run(random.Random(order))
        assert [entry for entry in replay.wrong if "is maintained with" not in entry] == []
        if not plan.blocked and not any(action.target is None and action.source for action in plan.actions):
            assert replay.ended == {action.id for action in plan.actions}


def test_caps_make_nobody_wait() -> None:
    scene = Scene(node("a"), node("b", memory="32Gi"))
    for number in range(9):
        scene.vm(f"vm-{number}", "a", "256Mi")
    assert set(map(tuple, waits(plan_of(scene.lists, "a")).values())) == {()}


def test_pods_hold_up_only_vms_that_follow_them() -> None:
    scene = Scene(*(node(name) for name in "abc"))
    scene.pod("web-1", "a", affinity=apart(HOST, "web"))
    scene.vm("near-1", "a", rules={"affinity": near(HOST, "web")})
    scene.vm("free-1", "a")
    assert waits(plan_of(scene.lists, "a")) == {"web-1": [], "free-1": [], "near-1": ["web-1"]}


def test_one_enters_a_zone_when_another_has_left_it_across_the_nodes_of_a_batch() -> None:
    """The one that is to go to x keeps away from the other's zone; both leave at the same time otherwise."""
    scene = Scene(node("a", "x"), node("b", "y"), node("c", "x"), node("d", "z"))
    scene.vm("x-1", "a", rules={"nodeSelector": {"role": "front"}})
    scene.vm("y-1", "b", rules={"affinity": apart(ZONE, "x"), "nodeSelector": {ZONE: "x"}})
    scene.lists["nodes"][0]["metadata"]["labels"]["role"] = "front"
    scene.lists["nodes"][3]["metadata"]["labels"]["role"] = "front"
    plan = plan_of(scene.lists, "a", "b")
    assert plan.blocked == ()
    assert waits(plan) == {"x-1": [], "y-1": ["x-1"]}


def test_harm_is_done_last() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("bound-1", "a", rules={"nodeSelector": {HOST: "a"}})
    scene.vm("free-1", "a")
    scene.pod("web-1", "a")
    found = waits(plan_of(scene.lists, "a", policies=[{"policy": "stop"}]))
    assert sorted(found.pop("bound-1")) == ["free-1", "web-1"]
    assert set(map(tuple, found.values())) == {()}


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(30))
def test_fewest_finds_what_cannot_be_spared(seed: int) -> None:
    dice = random.Random(seed)
    needed = set(dice.sample(range(20), dice.randrange(1, 6)))
    assert set(fewest(range(20), needed.issubset)) == needed


def test_a_pod_is_evicted_when_a_vm_has_come_to_a_node_that_it_could_fill() -> None:
    """Its new pod is expected on c, which is empty; but which node it is in the end nobody can say."""
    scene = Scene(node("a", disk="fast"), node("b", memory="5Gi", disk="fast"), node("c", memory="64Gi"))
    scene.vm("large-1", "a", "4Gi", rules={"nodeSelector": {"disk": "fast"}})
    scene.vm("free-1", "a")
    scene.pod("web-1", "a", "1Gi")
    scene.pod("tiny-1", "a")
    found = waits(plan_of(scene.lists, "a"))
    assert found == {"large-1": [], "free-1": [], "web-1": ["large-1"], "tiny-1": []}


def test_a_pod_that_could_come_back_goes_while_its_node_is_full() -> None:
    """It tolerates the cordon, and the scheduler would choose the emptied node for it."""
    scene = Scene(node("a"), node("b", memory="12Gi"))
    scene.vm("large-1", "a", "3Gi")
    scene.pod("agent-1", "a", "1Gi", tolerations=[{"operator": "Exists"}])
    plan = plan_of(scene.lists, "a")
    assert (waits(plan), plan.blocked) == ({"agent-1": [], "large-1": []}, ())


# In these a VM would lose its place to a pod if both went at the same time.
@pytest.mark.campaign
@pytest.mark.parametrize("seed", [9, 19, 35, 118])
def test_vms_have_their_places_wherever_pods_go(seed: int) -> None:
    lists = tight_cluster(seed, nodes=6, machines=16, pods=8)
    plan = plan_of(lists, *["n0", "n1"][: 1 + seed % 2])
    for order in range(12):
        replay = ActionReplay(lists, plan, lots=random.Random(order))
        replay.run(random.Random(order))
        assert [entry for entry in replay.wrong if "is maintained with" not in entry] == []
