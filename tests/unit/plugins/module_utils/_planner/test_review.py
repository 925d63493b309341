# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of a run's plan is held against the cluster as it is when the run begins, or goes on, batch by batch."""

from __future__ import annotations

import copy
import random
from collections.abc import Collection

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import decode, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan, Verdict
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import Failing, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.review import (
    Review,
    lasting_changes,
    review,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from checker.check import violations
from checker.order import ByLot, OneByOne, Order
from unit.checker.clusters import POLICIES, SHAPES
from unit.plugins.module_utils._planner.half_way import stopped_after
from unit.plugins.module_utils._planner.scene import FIXED, HOST, Lists, Scene, migrating, near, node
from unit.plugins.module_utils._planner.tight import tight_cluster

# Clusters all of whose batches can be emptied.
FEASIBLE = (
    8,
    12,
    13,
    14,
    16,
    18,
    28,
    29,
    31,
    34,
    43,
    44,
    46,
    47,
    53,
    54,
    58,
    59,
    61,
    62,
    63,
    72,
    73,
    76,
    77,
    78,
    79,
    84,
    86,
)
MANY = ((6, 14, 6), [["n0"], ["n1"], ["n2", "n3"], ["n4"], ["n5"]])


def generated(seed: int, *, aimed: bool = False) -> tuple[Lists, Plan]:
    """A small cluster, nearly full, and a plan for it; aimed: with nodes for three of its VMs."""
    (nodes, machines, pods), batches = [*SHAPES, MANY][seed % 5]
    lists = tight_cluster(seed, nodes=nodes, machines=machines, pods=pods)
    options = PlanOptions(
        policies=POLICIES[seed // 4 % 4],
        room=4 * (seed // 16 % 2),
        reserve=(Failing.NONE, Failing.LARGEST_NODE)[seed // 7 % 2],
        targets=_targets(lists, batches, random.Random(seed)) if aimed else {},
    )
    return lists, plan_run(from_plain(lists), "patch", batches, options)


def _targets(lists: Lists, batches: Collection[Collection[str]], dice: random.Random) -> dict[str, str]:
    """For three VMs, each a node that is not drained together with its own."""
    names, found = [item["metadata"]["name"] for item in lists["nodes"]], {}
    for vmi in dice.sample(lists["vmis"], 3):
        own = vmi["status"]["nodeName"]
        together = next((nodes for nodes in batches if own in nodes), [own])
        if others := [name for name in names if name not in together]:
            found[f"shop/{vmi['metadata']['name']}"] = dice.choice(others)
    return found


def reviewed(plan: Plan, lists: Lists, done: Collection[str] = ()) -> Review:
    found = review(plan, from_plain(lists), done)
    for whole in (found.before, found.plan):
        assert decode(encode(whole)) == whole  # its parts agree
    return found


def test_who_is_being_restarted_is_not_on_its_way_back_to_its_node() -> None:
    """It is expected on another one, where it counts as soon as it is there."""
    scene = Scene(*(node(name, memory="4Gi") for name in "abc"))
    scene.vm("pets-1", "a", "2Gi", status=FIXED)
    scene.vm("big-1", "b", "2Gi")
    policies = [{"policy": "restart"}]
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], PlanOptions(policies=policies))
    scene.lists["nodes"][0]["spec"]["unschedulable"] = True
    scene.lists["vmis"][0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert reviewed(plan, scene.lists).changes == []


def lasting(plan: Plan, lists: Lists) -> list[str]:
    return lasting_changes(plan, from_plain(lists), (), reviewed(plan, lists))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(200))
def test_a_plan_for_an_unchanged_cluster_is_right_as_it_is(seed: int) -> None:
    lists, plan = generated(seed, aimed=seed % 2 == 0)
    assert reviewed(plan, lists) == Review(plan, plan, [])


@pytest.mark.parametrize("seed", [12, 22])
def test_who_has_been_at_its_target_goes_on_as_planned(seed: int) -> None:
    """In these a VM leaves its target again, as that is drained later, and is not sent back to it in the end."""
    lists, plan = generated(seed, aimed=True)
    assert reviewed(plan, lists) == Review(plan, plan, [])


@pytest.mark.campaign
@pytest.mark.parametrize("seed", FEASIBLE)
def test_what_is_left_of_a_run_that_goes_as_planned_is_right(seed: int) -> None:
    """Between two batches, or within one with much in flight; whatever has started by then, and what it is called."""
    lists, plan = generated(seed)
    assert plan.verdict is Verdict.FEASIBLE
    order: Order = ByLot(random.Random(seed).randrange)
    most = len(plan.actions) * (seed % 3) // 3
    if not most:
        order, most = OneByOne(), sum(action.batch <= len(plan.batches) // 2 for action in plan.actions)
    assert reviewed(plan, *stopped_after(lists, plan, order, most)).changes == []


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(40))
def test_what_is_mended_can_be_carried_out(seed: int) -> None:
    """After a VM has come, another one has gone, and one cannot be migrated any more, each where it may be."""
    lists, plan = generated(seed)
    changed, dice = copy.deepcopy(lists), random.Random(seed)
    gone, fixed = dice.sample(range(len(changed["vmis"])), 2)
    changed["vmis"][fixed]["status"] |= FIXED
    name = changed["vmis"].pop(gone)["metadata"]["name"]
    changed["pods"] = [pod for pod in changed["pods"] if pod["metadata"]["name"] != f"virt-launcher-{name}"]
    found = reviewed(plan, changed)
    assert reviewed(found.plan, changed).changes == []
    assert [flaw for flaw in violations(changed, found.plan) if name not in flaw.subject] == []


def a_run() -> tuple[Scene, Plan]:
    """Three nodes to maintain, one after the other, with a VM each that goes to d; and e, where nobody needs to go."""
    scene = Scene(*(node(name) for name in "abcde"))
    for name, where in (("web-1", "a"), ("db-1", "b"), ("app-1", "c")):
        scene.vm(name, where)
    targets = {f"shop/{name}": "d" for name in ("web-1", "db-1", "app-1")}
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"], ["c"]], PlanOptions(avoid=("e",)))
    moves = {action.object.title: action.target for action in plan.actions if action.kind is ActionKind.MIGRATE}
    assert (plan.verdict, moves.keys()) == (Verdict.FEASIBLE, targets.keys())
    return scene, plan


def target(plan: Plan, name: str) -> str:
    return next(str(action.target) for action in plan.actions if action.id.endswith(f".migrate.shop/{name}"))


def without(lists: Lists, name: str) -> None:
    for kind in ("vmis", "pods", "vms"):
        lists[kind] = [item for item in lists[kind] if not item["metadata"]["name"].endswith(name)]


def cordon(lists: Lists, name: str) -> None:
    (item,) = (item for item in lists["nodes"] if item["metadata"]["name"] == name)
    item["spec"] |= {
        "unschedulable": True,
        "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
    }


def test_who_has_come_to_a_node_of_a_later_batch_is_told() -> None:
    scene, plan = a_run()
    scene.vm("late-1", "c")
    found = reviewed(plan, scene.lists)
    assert found.changes == [f"VM shop/late-1 goes to {target(found.plan, 'late-1')}, which is new"]
    assert (found.plan.verdict, lasting(plan, scene.lists)) == (Verdict.FEASIBLE, found.changes)
    assert found.plan.totals.migrations == plan.totals.migrations + 1


def test_who_has_gone_from_a_node_of_a_later_batch_is_told() -> None:
    scene, plan = a_run()
    without(scene.lists, "app-1")
    was = f"VM shop/app-1 has nothing to do any more; it was: goes to {target(plan, 'app-1')}"
    assert reviewed(plan, scene.lists).changes == [was] == lasting(plan, scene.lists)


def test_who_cannot_leave_in_a_later_batch_is_told_before_the_first() -> None:
    scene, plan = a_run()
    scene.lists["vmis"][-1]["status"] |= FIXED
    found = reviewed(plan, scene.lists)
    (line,) = found.changes
    assert line.startswith("VM shop/app-1 cannot leave: ")
    assert (found.plan.verdict, {entry.node for entry in found.plan.blocked}) == (Verdict.PARTIAL, {"c"})
    assert lasting(plan, scene.lists) == [line]


def test_who_is_in_the_way_of_a_later_batch_is_told_before_the_first() -> None:
    """The first batch goes as planned, and leaves no room for the second any more: another VM has taken it."""
    scene = Scene(node("a"), node("b"), node("c", memory="6Gi"))
    scene.vm("web-1", "a", "2Gi", rules={"nodeSelector": {HOST: "c"}})
    scene.vm("db-1", "b", "2Gi", rules={"nodeSelector": {HOST: "c"}})
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], PlanOptions())
    assert (plan.verdict, target(plan, "web-1"), target(plan, "db-1")) == (Verdict.FEASIBLE, "c", "c")
    scene.vm("late-1", "c", "1536Mi")
    found = reviewed(plan, scene.lists)
    (line,) = found.changes
    assert line.startswith("VM shop/db-1 cannot leave: no node can take it: 0/3 nodes are available")
    assert (found.plan.verdict, {entry.node for entry in found.plan.blocked}) == (Verdict.PARTIAL, {"b"})


def test_only_who_has_lost_its_place_goes_elsewhere() -> None:
    scene, plan = a_run()
    gone = target(plan, "web-1")
    others = {name for name in ("web-1", "db-1", "app-1") if target(plan, name) == gone}
    scene.lists["nodes"] = [item for item in scene.lists["nodes"] if item["metadata"]["name"] != gone]
    found = reviewed(plan, scene.lists)
    assert set(found.changes) == {
        f"VM shop/{name} goes to {target(found.plan, name)}, as node {gone} is gone; it was: goes to {gone}"
        for name in others
    }
    assert lasting(plan, scene.lists) == found.changes


def test_why_somebody_does_not_go_as_planned_is_said_in_the_words_of_the_scheduler() -> None:
    scene, plan = a_run()
    full = target(plan, "web-1")
    for number in range(8):
        scene.vm(f"late-{number}", full)
    (line, *_more) = reviewed(plan, scene.lists).changes
    assert f", as the scheduler says of {full}: Insufficient memory; it was: goes to {full}" in line


def test_what_passes_by_itself_is_no_drift() -> None:
    """A node that another maintenance has cordoned, and a migration that somebody else has begun."""
    scene, plan = a_run()
    cordon(scene.lists, target(plan, "web-1"))
    migrating(scene.lists, "app-1", "e")
    assert reviewed(plan, scene.lists).changes != []
    assert lasting(plan, scene.lists) == []
    scene.vm("late-1", "b")
    (line,) = lasting(plan, scene.lists)
    assert line.startswith("VM shop/late-1 goes to ")


def test_who_waits_for_what_passes_is_no_drift() -> None:
    scene, plan = a_run()
    busy = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}
    scene.lists["vmis"][1]["status"] |= busy
    found = reviewed(plan, scene.lists)
    (line,) = found.changes
    assert line.startswith("VM shop/db-1 has to wait: ")
    assert (found.plan.verdict, lasting(plan, scene.lists)) == (Verdict.FEASIBLE, [])


def test_who_migrates_already_goes_as_planned_also_in_later_batches() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("web-1", "a")
    migrating(scene.lists, "web-1", "b")
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], PlanOptions())
    assert plan.totals.migrations == 2
    assert reviewed(plan, scene.lists) == Review(plan, plan, [])


def test_a_vm_that_is_off_for_its_node_is_counted_where_it_starts() -> None:
    """An earlier start of the run has stopped it. When its node is back there is no room for others, as planned."""
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("pet-1", "a", "5Gi", status=FIXED)
    scene.vm("db-1", "b", "2Gi")
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], PlanOptions(policies=[{"policy": "stop"}]))
    most = 1 + next(number for number, action in enumerate(plan.actions) if action.kind is ActionKind.STOP)
    seen, done = stopped_after(scene.lists, plan, OneByOne(), most)
    assert [vmi["metadata"]["name"] for vmi in seen["vmis"]] == ["db-1"]
    assert reviewed(plan, seen, done).changes == []
    newcomers = Scene()
    newcomers.lists = seen
    newcomers.vm("late-1", "b", "4Gi")
    assert target(reviewed(plan, seen, done).plan, "late-1") == "c"


def test_nobody_is_sent_to_the_place_of_a_vm_whose_node_is_back() -> None:
    """It is off as yet, as a node is back before its VMs run; another one of the batch is still to be emptied."""
    scene = Scene(node("a"), node("b"), node("c", memory="1Gi"))
    scene.vm("pet-1", "a", "5Gi", status=FIXED)
    scene.vm("db-1", "b", "4Gi")
    policies = [{"selector": {"app": "pet"}, "policy": "stop"}]
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions(policies=policies))
    assert [entry.object.name for entry in plan.blocked] == ["db-1"]
    most = 1 + next(number for number, action in enumerate(plan.actions) if action.kind is ActionKind.UNCORDON)
    seen, done = stopped_after(scene.lists, plan, OneByOne(), most)
    assert done == {"a"}
    assert [vmi["metadata"]["name"] for vmi in seen["vmis"]] == ["db-1"]
    assert reviewed(plan, seen, done).changes == []
    ended = {action.id for action in plan.actions if action.node in done}
    mended = repair(plan, from_plain(seen), ended=ended)
    assert [entry.object.name for entry in mended.blocked] == ["db-1"]


def off_beside(c: str, *others: str) -> tuple[Plan, Lists, frozenset[str]]:
    """Node a of batch a, b is back, but not VM pet-1, in whose place is big-1 now; other VMs have come to b."""
    scene = Scene(node("a"), node("b"), node("c", memory=c))
    scene.vm("pet-1", "a", "5Gi", status=FIXED)
    scene.vm("db-1", "b", "256Mi")
    policies = [{"selector": {"app": "pet"}, "policy": "stop"}]
    plan = plan_run(from_plain(scene.lists), "patch", [["a", "b"]], PlanOptions(policies=policies))
    most = 1 + next(number for number, action in enumerate(plan.actions) if action.kind is ActionKind.UNCORDON)
    seen, done = stopped_after(scene.lists, plan, OneByOne(), most)
    assert (plan.verdict, {*done}) == (Verdict.FEASIBLE, {"a"})
    newcomers = Scene()
    newcomers.lists = seen
    newcomers.vm("big-1", "a", "6Gi")
    for name in others:
        newcomers.vm(name, "b", "256Mi")
    return plan, seen, done


def test_a_vm_that_is_off_starts_elsewhere_if_its_node_is_full() -> None:
    plan, seen, done = off_beside("8Gi", "late-1")
    found = reviewed(plan, seen, done)
    told = ["VM shop/late-1", "VM shop/pet-1 comes back on c; it was: comes back on a"]
    assert [line.partition(" goes ")[0] for line in found.changes] == told
    starts = [[entry.target for entry in each.actions if entry.kind is ActionKind.START] for each in (plan, found.plan)]
    assert starts == [["a"], ["c"]]


def test_that_a_vm_starts_elsewhere_is_a_change_but_none_that_lasts() -> None:
    """Where it starts is what the report holds the run against; the scheduler has the last word of it."""
    plan, seen, done = off_beside("8Gi")
    found = reviewed(plan, seen, done)
    assert found.changes == ["VM shop/pet-1 comes back on c; it was: comes back on a"]
    assert [entry.target for entry in found.plan.actions if entry.kind is ActionKind.START] == ["c"]
    assert lasting_changes(plan, from_plain(seen), done, found) == []


def test_a_vm_that_is_off_starts_on_no_node_that_is_still_to_be_emptied() -> None:
    """Somebody has uncordoned that one, the only one with room."""
    plan, seen, done = off_beside("2Gi", "late-1")
    for item in seen["nodes"]:
        item["spec"] = {}
    ended = {action.id for action in plan.actions if action.node in done}
    for found in (reviewed(plan, seen, done).plan, repair(plan, from_plain(seen), ended=ended)):
        leaving = {action.object.name for action in found.actions if action.source == "b"}
        assert (found.blocked, leaving - {"db-1"}) == ((), {"late-1"})


def test_a_vm_that_is_off_starts_after_those_that_it_needs() -> None:
    scene = Scene(node("a"), node("b"), node("c"))
    scene.vm("web-1", "a", status=FIXED)
    scene.vm("cache-1", "a", status=FIXED, rules={"affinity": near(HOST, "web")})
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], PlanOptions(policies=[{"policy": "stop"}]))
    most = 1 + max(number for number, action in enumerate(plan.actions) if action.kind is ActionKind.STOP)
    seen, done = stopped_after(scene.lists, plan, OneByOne(), most)
    assert (seen["vmis"], done) == ([], frozenset())
    newcomers = Scene()
    newcomers.lists = seen
    newcomers.vm("late-1", "b")
    found = reviewed(plan, seen, done).plan
    starts = [[entry for entry in each.actions if entry.kind is ActionKind.START] for each in (plan, found)]
    assert "1.start.shop/web-1" in starts[0][1].after
    assert starts[1] == starts[0]


def test_who_is_being_stopped_still_comes_back_to_its_node_in_what_is_left_of_the_run() -> None:
    """So that nobody of a later batch gets its place."""
    scene = Scene(node("a", memory="4Gi"), node("b", memory="4Gi"), node("c", memory="1Gi"))
    scene.vm("tied-1", "a", "2Gi", rules={"nodeSelector": {HOST: "a"}})
    scene.vm("big-1", "b", "2Gi")
    stop = PlanOptions(policies=[{"policy": "stop"}])
    plan = plan_run(from_plain(scene.lists), "patch", [["a"], ["b"]], stop)
    scene.lists["nodes"][0]["spec"]["unschedulable"] = True
    scene.lists["vmis"][0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.lists["vms"][0]["spec"]["runStrategy"] = "Halted"
    found = review(plan, from_plain(scene.lists), frozenset())
    assert "2.stop.shop/big-1" in {action.id for action in found.plan.actions}
    assert found.changes == []
