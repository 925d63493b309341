# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a terminal shows of a plan: what decides, on one screen, and each action where that has room for it.

The texts stand in golden/. To write them anew, set VIRTOPS_GOLDEN=1, and read what has changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_refused
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Obstacle,
    Plan,
    Totals,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.obstacles import clearing, kept, obstacle_text
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import MOST_LINES, batch_table, told
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import (
    batches_left,
    blocked_text,
    plan_text,
)

from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

GIB = 2**30
GOLDEN = Path(__file__).with_name("golden")
NO_ROOM = Obstacle("no-node", "no node can take it")
DISK = Obstacle(
    "disks-not-live-migratable",
    "the VMI cannot be live-migrated because a disk of it cannot be used on two nodes at once",
    "move the disk to a PersistentVolumeClaim with access mode ReadWriteMany, or restart or stop it instead",
    ("policies",),
)
SCRATCH = Obstacle(
    "delete_emptydir_data", "the data in its emptyDir volumes would be lost", cleared_by=("delete_emptydir_data",)
)
BARE = Obstacle("force", "nothing would replace it", cleared_by=("force",))
RESERVE = Obstacle(
    "no-reserve", "while its batch is away there is no memory in reserve for the VMs of any one more node"
)
BACKUP = Obstacle("backup-under-way", "it is being backed up", "let the backup end")


def maintenance(nodes: int, size: int, vms: int, *blocked: Blocked, policies: Sequence[object] = ()) -> Plan:
    """Of some nodes, so many at a time. Each has some VMs and a pod to move, and each tenth node a VM to stop."""
    names = [f"worker-{number:02}" for number in range(nodes)]
    batches = [tuple(names[begin : begin + size]) for begin in range(0, nodes, size)]
    actions: list[Action] = []
    for number, batch in enumerate(batches, start=1):
        for name in batch:
            target = f"worker-{(names.index(name) + size) % nodes:02}"
            actions += [
                action(ActionKind.MIGRATE, vm(f"{name}-{count}"), name, target, batch=number) for count in range(vms)
            ]
            actions.append(action(ActionKind.EVICT, pod(f"{name}-web"), name, target, batch=number))
            if name.endswith("5"):
                actions.append(action(ActionKind.STOP, vm(f"{name}-gpu"), name, batch=number))
    migrations = nodes * vms
    seconds = tuple(len(batch) * vms * 6 for batch in batches)
    return replace(
        plan(*actions, blocked=blocked),
        options={"policies": list(policies), "batching": {"order": "given"}},
        batches=tuple(batches),
        totals=Totals(migrations=migrations, batch_seconds=seconds, lower_bound=migrations - nodes // 6),
    )


def stuck(count: int, node: str, obstacle: Obstacle, *reasons: str, passing: bool = False) -> list[Blocked]:
    kind = pod if obstacle in (SCRATCH, BARE) else vm
    return [
        Blocked(kind(f"{obstacle.id}-{node[-2:]}-{number}"), node, reasons or (obstacle.problem,), passing, obstacle)
        for number in range(count)
    ]


FULL = "no node can take it: 0/60 nodes are available: 3 node(s) were unschedulable, 57 Insufficient memory"
TINY_KEPT = maintenance(
    2, 1, 2, *stuck(1, "worker-00", DISK, "a disk (its words); move it"), *stuck(1, "worker-01", BACKUP, passing=True)
)
SMALL = maintenance(6, 1, 2)
SMALL_KEPT = maintenance(
    6, 1, 2, *stuck(1, "worker-02", DISK, "a disk (its words); move it"), *stuck(1, "worker-03", BARE)
)
LARGE = maintenance(60, 3, 10)
SINGLE = replace(
    maintenance(60, 1, 10),
    options={"reserve": "zone", "batching": {"order": "free"}},
    totals=Totals(
        migrations=600,
        batch_seconds=(60,) * 60,
        batch_reserves=(*range(60 * GIB, 2 * GIB, -GIB), -GIB, GIB),
        lower_bound=600,
    ),
)
LARGE_KEPT = maintenance(
    60,
    3,
    10,
    *stuck(2, "worker-01", BACKUP, passing=True),
    *(entry for node in range(0, 30, 5) for entry in stuck(3, f"worker-{node:02}", DISK)),
    *(entry for node in range(3, 60, 9) for entry in stuck(11, f"worker-{node:02}", NO_ROOM, FULL)),
    *stuck(1, "worker-04", SCRATCH),
    *stuck(2, "worker-44", BARE),
)
PLANS = {
    "two-nodes-kept": TINY_KEPT,
    "six-nodes": SMALL,
    "six-nodes-kept": SMALL_KEPT,
    "sixty-nodes": LARGE,
    "sixty-nodes-kept": LARGE_KEPT,
    "sixty-nodes-one-by-one": SINGLE,
}


@pytest.mark.parametrize("name", PLANS)
def test_texts(name: str) -> None:
    text = "".join(f"{line}\n" for line in told(PLANS[name], prefix="plan_maintenance_", text="/plans/patch.txt"))
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("VIRTOPS_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize(
    ("found", "lines"), [(SMALL, 15), (LARGE, 30), (SINGLE, 30), (SMALL_KEPT, 25), (LARGE_KEPT, MOST_LINES)]
)
def test_six_and_sixty_nodes_fit_a_screen(found: Plan, lines: int) -> None:
    assert len(told(found, text="/plans/patch.txt")) <= lines


@pytest.mark.parametrize("text", ["", "/plans/patch.txt"])
@pytest.mark.parametrize("found", [TINY_KEPT, SMALL_KEPT, LARGE_KEPT])
def test_what_stands_against_a_plan_comes_first_with_remedies_and_then_the_table(found: Plan, text: str) -> None:
    lines = [line.strip() for line in told(found, prefix="plan_maintenance_", text=text)]
    firsts = ("As things are", "->", "plan_maintenance_policies:", "batch ", "In all", "1. worker-00")
    places = [next((at for at, line in enumerate(lines) if line.startswith(first)), len(lines)) for first in firsts]
    assert places[0] == 1
    assert places == sorted(places)
    assert (places[-1] < len(lines)) == (found is TINY_KEPT or (found is SMALL_KEPT and not text))


@pytest.mark.parametrize("nodes", [25, 60, 100, 1000])
def test_however_many_batches_there_are_each_is_in_a_row(nodes: int) -> None:
    found = maintenance(nodes, 1, 2)
    rows = list(batch_table(found, batches_left(found, ())))[1:]
    assert len(rows) <= 24
    ends = [[int(number) for number in row.split()[0].split("-")] for row in rows]
    assert [first for first, *_last in ends] == [1, *(last[-1] + 1 for last in ends[:-1])]
    assert ends[-1][-1] == nodes
    assert sum(int(row.split()[1]) for row in rows) == found.totals.migrations


def test_beside_all_that_stands_against_a_plan_there_is_a_table() -> None:
    """However many kinds of it there are."""
    obstacles = [Obstacle(f"device-{number}", f"it uses device {number} of its node") for number in range(50)]
    found = maintenance(60, 1, 2, *(entry for obstacle in obstacles for entry in stuck(1, "worker-00", obstacle)))
    lines = told(found, text="/plans/patch.txt")
    at = next(at for at, line in enumerate(lines) if line.startswith("batch "))
    assert lines[at + 6].split()[0] == "51-60"


def test_without_batches_there_is_no_table() -> None:
    assert list(batch_table(SMALL, [])) == []


def test_what_a_row_has_of_its_batches() -> None:
    found = replace(
        maintenance(48, 1, 1, *stuck(3, "worker-00", DISK), *stuck(2, "worker-01", BACKUP, passing=True)),
        totals=Totals(batch_seconds=(None, 6) * 24, batch_reserves=(None, 1) * 24),
    )
    head, first, *_rest = batch_table(found, batches_left(found, ()))
    assert head.split() == ["batch", "migrations", "evictions", "stops", "time", "reserve", "nodes"]
    assert first.split("  ")[-1] == "worker-00, worker-01; 3 cannot leave; 2 to be waited for"
    assert first.split()[:6] == ["1-2", "2", "2", "-", "never", "none"]


def test_each_action_is_told_where_there_is_room_for_it() -> None:
    """Where it stands nowhere else it has a screen of its own."""
    action_line, text = "     VM  shop/worker-01-1 -> worker-00", "/plans/patch.txt"
    tiny = told(maintenance(2, 1, 2), text=text)
    assert len(tiny) <= MOST_LINES
    assert action_line in tiny
    assert text not in "".join(tiny)
    assert told(SMALL, text=text)[-1] == f"Each virtual machine and pod, its node and the reasons: {text}"
    assert "     VM  shop/worker-05-1 -> worker-00" in told(SMALL)
    assert "     VM  shop/worker-05-1 -> worker-00" not in told(LARGE)


def test_who_is_interrupted_is_told_before_the_table() -> None:
    stopped = action(ActionKind.STOP, vm("db"), "n1")
    anew = [action(ActionKind.RESTART, vm(name), "n1", "n2") for name in "ab"]
    assert told(plan(stopped, *anew))[1:5] == [
        "Nothing stands against it.",
        "1 VM is off until its node is back: shop/db",
        "2 VMs are shut down, and start anew elsewhere: shop/a, shop/b",
        "batch  restarts  stops  time  nodes",
    ]
    assert told(plan(anew[0]))[2] == "1 VM is shut down, and starts anew elsewhere: shop/a"


def test_all_vms_are_counted_once() -> None:
    groups = kept(LARGE_KEPT)
    assert [(group.obstacle.id, len(group.blocked), group.passing) for group in groups] == [
        ("no-node", 77, False),
        ("disks-not-live-migratable", 18, False),
        ("force", 2, False),
        ("delete_emptydir_data", 1, False),
        ("backup-under-way", 2, True),
    ]
    assert sum(len(group.blocked) for group in groups) == len(LARGE_KEPT.blocked)


def test_nodes_that_are_done_are_not_told_of() -> None:
    done = {f"worker-{number:02}" for number in range(30)}
    lines = told(LARGE_KEPT, done)
    assert lines[:2] == [
        "Run patch: 30 of 60 nodes to maintain, 3 at a time.",
        "Done already: worker-00, worker-01, worker-02 and 27 more",
    ]
    assert {group.obstacle.id for group in kept(LARGE_KEPT, done)} == {"no-node", "force"}
    assert lines[-2:] == [
        "In all: 300 migrations, 30 evictions, 3 stops.",
        "By KubeVirt's limits the migrations take about 30 min if the guests are idle.",
    ]


def test_what_would_clear_it_is_ready_to_be_pasted() -> None:
    """After one's own rules, of which the first that matches counts."""
    own = {"selector": {"app": "db"}, "policy": "restart"}
    found = maintenance(6, 1, 2, *SMALL_KEPT.blocked, policies=[own])
    lines = told(found, prefix="plan_maintenance_")
    begin = next(number for number, line in enumerate(lines) if line.strip().startswith("With these"))
    assert lines[begin].endswith("unless an earlier rule says otherwise:")
    pasted = yaml.safe_load("\n".join(takewhile(lambda line: line.startswith("      "), lines[begin + 1 :])))
    assert pasted["plan_maintenance_force"] is True
    assert [rule["policy"] for rule in pasted["plan_maintenance_policies"]] == ["restart", "stop"]
    assert clearing(found, kept(found)) == {
        "force": True,
        "policies": [own, pasted["plan_maintenance_policies"][-1]],
    }


@pytest.mark.parametrize(
    "conditions",
    [
        [{"type": "LiveMigratable", "status": "False", "reason": "SEVNotLiveMigratable"}],
        [{"type": "LiveMigratable", "status": "True"}, {"type": "Ready", "status": "False"}],
        [{"type": "LiveMigratable", "status": "Unknown"}],
        [],
        None,
    ],
)
def test_the_policy_to_be_pasted_is_about_whom_kubevirt_refuses(conditions: list[dict[str, str]] | None) -> None:
    found = maintenance(6, 1, 2, *stuck(1, "worker-02", DISK))
    (rule,) = compile_rules(clearing(found, kept(found))["policies"])
    vmi = {"metadata": {"namespace": "shop", "name": "db"}, "status": {"conditions": conditions}}
    assert rule.matches(vmi) == is_refused(vmi)


@pytest.mark.parametrize(
    ("order", "size", "room", "words"),
    [
        ("given", 3, 0, "order: free looks for an order in which they can; a smaller batch needs less room; room: 5"),
        ("free", 3, 0, "can take it; a smaller batch needs less room; room: 5 lets up to 5 VMs on other nodes move"),
        ("free", 1, 0, "can take it; room: 5"),
        ("free", 1, 5, "can take it; make room; have them stopped"),
    ],
)
def test_only_what_may_help_against_a_lack_of_room_is_proposed(order: str, size: int, room: int, words: str) -> None:
    options = {"batching": {"order": order}, "room": room}
    found = replace(maintenance(6, size, 2, *stuck(2, "worker-02", NO_ROOM)), options=options)
    assert words in obstacle_text(kept(found)[0], found, "")


def test_one_that_is_kept() -> None:
    found = maintenance(6, 1, 2, *stuck(1, "worker-02", BARE), *stuck(1, "worker-03", BACKUP, passing=True))
    assert [obstacle_text(group, found, "") for group in kept(found)] == [
        "1 pod cannot leave (shop/force-02-0): nothing would replace it; set force: true if that may be.",
        "1 VM has to be waited for (shop/backup-under-way-03-0): it is being backed up; it passes by itself.",
    ]


def test_what_nobody_has_sorted_is_told_by_its_reasons() -> None:
    found = maintenance(6, 1, 2, Blocked(vm("a"), "worker-01", ("why.",)), Blocked(vm("b"), "worker-02", ("else",)))
    assert [group.problem for group in kept(found)] == ["why", "else"]


def test_nothing_of_the_cluster_steers_the_terminal() -> None:
    evil = Blocked(vm("e\r\nvil"), "worker-01", ("\x1b]0;owned\x07",), obstacle=replace(NO_ROOM, problem="\x1b[2J"))
    for found in (maintenance(6, 1, 2, evil), maintenance(60, 3, 10, evil)):
        assert all(line.isprintable() for line in told(found, text="/plans/\x1b[2J.txt"))
        assert obstacle_text(kept(found)[0], found, "").isprintable()


def without_reserve(*nodes: str) -> list[Blocked]:
    reason = "if node worker-09 fails then, 4.3 GiB of memory are missing for its VMs"
    return [Blocked(ObjectReference("Node", "", name, ""), name, (reason,), obstacle=RESERVE) for name in nodes]


def test_nodes_that_cannot_be_out_of_service_are_told_as_such() -> None:
    given = maintenance(60, 3, 10, *without_reserve("worker-00", "worker-01"), *stuck(1, "worker-03", DISK))
    assert told(given, prefix="plan_maintenance_")[1:6] == [
        "As things are, 1 VM cannot leave, and 2 nodes cannot be out of service:",
        "  2 nodes in batch 1: while its batch is away there is no memory in reserve for the VMs of any one more node",
        "      worker-00, worker-01",
        "      such as: if node worker-09 fails then, 4.3 GiB of memory are missing for its VMs",
        "      -> plan_maintenance_order: free looks for an order in which they can; a smaller plan_maintenance_batch "
        "needs less room; plan_maintenance_reserve: none takes the risk",
    ]
    waiting = maintenance(60, 3, 10, *stuck(1, "worker-01", BACKUP, passing=True))
    assert told(waiting)[1] == "As things are, 1 VM has to be waited for:"
    (group,) = kept(maintenance(2, 1, 1, *without_reserve("worker-00")))
    assert obstacle_text(group, given, "").startswith("1 node cannot be out of service (worker-00): while its batch")


def test_a_node_that_cannot_be_out_of_service_stands_in_the_whole_text() -> None:
    lines = plan_text(maintenance(2, 1, 1, *without_reserve("worker-00")))
    assert lines[1] == "1. worker-00: cannot be emptied now"
    assert any(line.strip().startswith("node worker-00 cannot be out of service: if node") for line in lines)
    (entry,) = without_reserve("worker-00")
    assert blocked_text(entry).startswith("node worker-00 cannot be out of service: if node worker-09 fails")
