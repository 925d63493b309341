# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run says what was seen of each VM, and nothing that was only meant; unasked it only counts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.run_text import Host, run_text

from unit.plugins.module_utils._report.drained import CUT, DEVIATION, MOVE, POD, STARTED, remnant

ASK = "Where each virtual machine and pod went is told only by a run that is started with -v or --diff."
DONE = Host("n1", "n1", drained={}, is_back=True, is_done=True)


def told(*batch: Host, verbose: bool = False, foretold: bool = False) -> list[str]:
    return run_text("kernel", [batch], verbose=verbose, foretold=foretold)


def of_n1(*, started: list[dict[str, Any]] | None = None, verbose: bool = True, **drained: Any) -> list[str]:
    """Of a run over n1, which is done."""
    return told(replace(DONE, drained=drained, started=started or []), verbose=verbose)


@pytest.mark.parametrize(
    ("known", "foretold", "state"),
    [
        ({"drained": {}, "is_back": True, "is_done": True}, False, "done"),
        ({"drained": {}, "is_back": True}, False, "given back, but not complete"),
        ({"drained": {}}, False, "failed"),
        ({"has_failed": True}, False, "failed"),
        ({}, False, "not begun"),
        ({"drained": {}, "is_back": True, "is_done": True}, True, "not begun"),
        ({"drained": {}, "is_back": True}, True, "failed"),
    ],
)
def test_how_a_host_stands(known: dict[str, Any], foretold: bool, state: str) -> None:
    assert told(Host("n1", "n1", **known), foretold=foretold) == ["Run kernel:", f"n1: {state}"]


@pytest.mark.parametrize(
    ("move", "line"),
    [
        ({"outcome": "migrated", "node": "n2", "seconds": 6}, "-> n2 in 6 s"),
        ({"outcome": "migrated", "node": "n2"}, "-> n2"),
        ({"outcome": "already_there", "node": "n3"}, "-> n3"),
        ({"outcome": "would_migrate"}, "-> n2"),
        ({"outcome": "would_migrate", "target_node": None}, "-> another node"),
        ({"outcome": "failed", "failure_reason": "no network"}, "failed, no network"),
        ({"outcome": "migrating", "failure_reason": "no network"}, "migrating"),
        ({"outcome": "ended"}, "ended"),
    ],
)
def test_where_a_vm_went(move: dict[str, Any], line: str) -> None:
    counts = f"n1: done; VMs: 1 {move['outcome'].replace('_', ' ')}"
    assert of_n1(moves=[{**MOVE, **move}]) == ["Run kernel:", counts, f"     VM  shop/web {line}"]


@pytest.mark.parametrize(
    ("cut", "started", "line"),
    [
        ({}, [STARTED], "stopped, and started again on n1"),
        ({}, [{**STARTED, "node": ""}], "stopped, and started again"),
        ({}, [{**STARTED, "outcome": "starting"}], "stopped"),
        ({}, [], "stopped"),
        ({"outcome": "ended"}, [], "ended without us"),
        ({"outcome": "ended", "failure_reason": "somebody did it"}, [], "ended without us, as somebody did it"),
        ({"outcome": "already_gone", "target_node": "n4"}, [], "was on n4 already"),
        ({"outcome": "restarted", "target_node": "n4"}, [], "restarted on n4"),
        ({"outcome": "failed", "failure_reason": "it is held"}, [], "failed, it is held"),
        ({"outcome": "would_stop"}, [], "would stop"),
    ],
)
def test_what_became_of_a_vm_that_cannot_move(cut: dict[str, Any], started: list[dict[str, Any]], line: str) -> None:
    again = ", 1 started again" if started and started[0]["outcome"] == "started" else ""
    counts = f"n1: done; VMs: 1 {cut.get('outcome', 'stopped').replace('_', ' ')}{again}"
    found = of_n1(started=started, interrupted=[{**CUT, **cut}])
    assert found == ["Run kernel:", counts, f"     VM  shop/db {line}"]


def test_another_owner_of_the_same_name_has_not_started_it() -> None:
    found = of_n1(started=[{**STARTED, "kind": "VirtualMachineInstanceReplicaSet"}], interrupted=[CUT])
    assert found[-1] == "     VM  shop/db stopped"


@pytest.mark.parametrize(
    ("pod", "count", "line"),
    [
        ({"seconds": 3}, "evicted", "evicted in 3 s"),
        ({"outcome": "gone", "seconds": 3}, "had gone", "had gone"),
        ({"outcome": "would_evict", "seconds": None}, "would evict", "would evict"),
        ({"outcome": "failed", "refusal": "it is not allowed"}, "failed", "failed in 1 s, it is not allowed"),
        ({"outcome": "waiting", "refusal": "its budget needs 1"}, "waiting", "waiting, its budget needs 1"),
        ({"outcome": "evicting"}, "evicting", "evicting"),
    ],
)
def test_what_became_of_a_pod(pod: dict[str, Any], count: str, line: str) -> None:
    found = of_n1(evicted=[{**POD, **pod}])
    assert found == ["Run kernel:", f"n1: done; pods: 1 {count}", f"     pod shop/api {line}"]


@pytest.mark.parametrize(
    ("why", "line"),
    [
        ("waiting, there is no node", "waiting, there is no node"),
        ("held back", "waiting, held back"),
        ("", "waiting"),
    ],
)
def test_what_is_still_there_is_told_with_what_keeps_it(why: str, line: str) -> None:
    found = of_n1(verbose=False, moves=[{**MOVE, "outcome": "waiting"}], left=[remnant("vm", "web", why)])
    assert found == ["Run kernel:", "n1: done; VMs: 1 waiting", f"     VM  shop/web {line}"]


GOING = Evicting("1", "shop", "api", "uid", "n1")
ENDING = Interrupting("1", "restart", "shop", "db", "uid", "n1", "", outcome="ending", message="0/3")
MOVING = Migrating("1", "shop", "web", "uid", "n1", "n2", {}, outcome="migrating", phases=(("Running", ""),))


@pytest.mark.parametrize(
    ("known", "entry", "line"),
    [
        ({"evicted": [POD]}, replace(GOING, outcome="evicting", has_acted=True), "pod shop/api evicted, ending"),
        ({"evicted": [POD]}, replace(GOING, outcome="evicting"), "pod shop/api ending"),
        ({"evicted": [POD]}, replace(GOING, refusal="it is tight"), "pod shop/api held back, it is tight"),
        ({"interrupted": [CUT]}, ENDING, "VM  shop/db restarting, no node fits: 0/3"),
        ({"interrupted": [CUT]}, replace(ENDING, kind="stop", message=""), "VM  shop/db stopping"),
        ({"moves": [MOVE]}, MOVING, "VM  shop/web migrating, Running"),
        ({"moves": [MOVE]}, replace(MOVING, outcome="waiting", refusal="no"), "VM  shop/web waiting, no"),
    ],
)
def test_what_is_under_way_is_told_in_the_words_of_its_drain(
    known: dict[str, list[dict[str, Any]]], entry: Evicting | Interrupting | Migrating, line: str
) -> None:
    """Its outcome stands only before what does not say it: the phase of a migration."""
    told: dict[str, Any] = {kind: [{**item, "outcome": entry.outcome} for item in known[kind]] for kind in known}
    left = [remnant("pod" if "evicted" in known else "vm", entry.name, entry.status())]
    assert of_n1(**told, left=left)[2:] == [f"     {line}"]


def test_how_much_of_the_plan_came_true() -> None:
    assert of_n1(as_planned=3, deviations=[DEVIATION, {**DEVIATION, "kind": "pod", "why": "migrated"}]) == [
        "Run kernel:",
        "n1: done",
        "     not as planned: VM  shop/web goes to n2; instead: migrated to n3 in 6 s, as the network was gone",
        "     not as planned: pod shop/web goes to n2; instead: migrated to n3 in 6 s",
        "Of 5 virtual machines and pods 3 have left as planned.",
    ]
    moves = [{**MOVE, "outcome": "would_migrate"}]
    foretold = told(replace(DONE, drained={"moves": moves, "as_planned": 1, "deviations": []}), foretold=True)
    assert foretold[-2:] == [
        "Of 1 virtual machines and pods 1 would leave as planned.",
        "Where each virtual machine and pod would go is told only by a run that is started with -v or --diff.",
    ]


def test_who_has_left_as_planned_may_come_back_elsewhere() -> None:
    """One that has not is counted once."""
    astray = [
        {**DEVIATION, "name": name, "planned": "comes back on n1", "done": "came back on n2"} for name in ("db", "web")
    ]
    assert told(replace(DONE, drained={"as_planned": 3, "deviations": [DEVIATION]}, astray=astray))[-4:] == [
        "     not as planned: VM  shop/web goes to n2; instead: migrated to n3 in 6 s, as the network was gone",
        "     not as planned: VM  shop/db comes back on n1; instead: came back on n2, as the network was gone",
        "     not as planned: VM  shop/web comes back on n1; instead: came back on n2, as the network was gone",
        "Of 4 virtual machines and pods 2 have left as planned.",
    ]


def test_what_left_other_nodes_is_told_of_these() -> None:
    """Whether it came back, too, is known there only."""
    elsewhere: dict[str, Any] = {"moves": [{**MOVE, "node": "n3"}], "evicted": [POD], "interrupted": [CUT]}
    others: dict[str, Any] = {
        key: [{**entry, "for_node": "n2"} for entry in entries] for key, entries in elsewhere.items()
    }
    assert of_n1(**others) == ["Run kernel:", "n1: done"]
    called_so = replace(DONE, node="n2", drained=others)
    assert told(called_so, verbose=True)[1:3] == [
        "n1: done; VMs: 1 migrated, 1 stopped; pods: 1 evicted",
        "     VM  shop/web -> n3",
    ]


def test_what_others_have_moved_for_a_node_is_told_of_it() -> None:
    """By those of its own batch, though its own drain has failed before."""
    mate = {"moves": [{**MOVE, "node": "n3", "seconds": 6}], "evicted": [POD], "interrupted": [CUT]}
    batches = [
        [Host("n1", "n1", {"failed": True}, has_failed=True), Host("m", "m", mate, has_failed=True)],
        [Host("z", "z", mate)],
    ]
    assert run_text("kernel", batches, verbose=False, foretold=False) == [
        "Run kernel:",
        "n1: failed; VMs: 1 migrated, 1 stopped; pods: 1 evicted",
        "     VM  shop/db stopped",
        "m: failed",
        "z: failed",
        ASK,
    ]


def test_unasked_only_what_did_not_go_well_is_told_one_by_one() -> None:
    """And what is left: on the node, and of what was stopped for it."""
    drained: dict[str, Any] = {
        "moves": [
            {**MOVE, "node": "n2", "seconds": 6},
            {**MOVE, "name": "old", "outcome": "failed", "failure_reason": "no network"},
        ],
        "evicted": [
            POD,
            {**POD, "name": "gone", "outcome": "gone"},
            {**POD, "name": "only", "outcome": "waiting", "refusal": "its budget needs 1"},
        ],
        "interrupted": [CUT, {**CUT, "name": "off", "owner": "off"}],
        "left": [
            remnant("vm", "old", "failed, no network"),
            remnant("pod", "new", "it has come since"),
            remnant("node", "n1", "there is no reserve"),
        ],
    }
    assert told(Host("n1", "n1", drained, started=[STARTED])) == [
        "Run kernel:",
        "n1: failed; VMs: 1 failed, 1 migrated, 2 stopped, 1 started again; pods: 1 evicted, 1 had gone, 1 waiting",
        "     VM  shop/old failed, no network",
        "     pod shop/only waiting, its budget needs 1",
        "     VM  shop/off stopped",
        "     left: pod shop/new: it has come since",
        "     left: node n1: there is no reserve",
        ASK,
    ]


def test_a_batch_that_is_refused_as_a_whole_tells_each_reason_once() -> None:
    left = [remnant("vm", "db", "it cannot be migrated"), remnant("pod", "api", "it has no owner", "n2")]
    hosts = [Host(name, name, {"left": left}, has_failed=True) for name in ("n1", "n2", "n3")]
    assert run_text("kernel", [hosts], verbose=False, foretold=False) == [
        "Run kernel:",
        "n1: failed",
        "     left: VM  shop/db: it cannot be migrated",
        "n2: failed",
        "     left: pod shop/api: it has no owner",
        "n3: failed",
    ]


def test_nothing_steers_the_terminal_or_forges_a_line() -> None:
    reason = "\x1b[2Jnothing\nn1: done\u202e"
    found = of_n1(
        moves=[{**MOVE, "outcome": "failed", "failure_reason": reason}],
        deviations=[{**DEVIATION, "done": reason}],
        left=[remnant("pod", "x", reason)],
    )
    assert len(found) == 5
    assert all(line.isprintable() for line in found)
    assert [line for line in found if line.startswith("n1")] == ["n1: done; VMs: 1 failed"]


def sixty() -> list[Host]:
    """Sixty nodes with ten VMs each, of which one did not go well."""
    results = [
        {
            "moves": [{**MOVE, "name": f"web-{vm}", "for_node": f"n{number}"} for vm in range(10)],
            "as_planned": 10,
            "deviations": [],
        }
        for number in range(60)
    ]
    results[7]["moves"][3] |= {"outcome": "failed", "failure_reason": "no network"}  # type: ignore[index]
    results[7] |= {"as_planned": 9, "deviations": [DEVIATION]}
    return [Host(f"n{number}", f"n{number}", drained, is_done=number != 7) for number, drained in enumerate(results)]


@pytest.mark.parametrize("size", [1, 4, 60])
def test_a_run_over_sixty_nodes_is_told_in_about_as_many_lines(size: int) -> None:
    hosts = sixty()
    batches = [hosts[first : first + size] for first in range(0, len(hosts), size)]
    lines = run_text("kernel", batches, verbose=False, foretold=False)
    assert len(lines) == 60 + 5
    assert lines[8:11] == [
        "n7: failed; VMs: 1 failed, 9 migrated",
        "     VM  shop/web-3 failed, no network",
        "     not as planned: VM  shop/web goes to n2; instead: migrated to n3 in 6 s, as the network was gone",
    ]
    assert lines[-2:] == ["Of 600 virtual machines and pods 599 have left as planned.", ASK]
    assert len(run_text("kernel", batches, verbose=True, foretold=False)) == 60 + 600 + 3


CUT_ON = [{**CUT, "outcome": "restarted", "target_node": "n2", "successor": "db"}, {**CUT, "for_node": "n2"}]


def over(*interrupted: dict[str, Any], foretold: bool = False) -> str:
    """The last line of a run over n1 and n2, one after the other, that has interrupted so."""
    hosts = [
        [replace(DONE, name=f"host-{cut['for_node']}", node=cut["for_node"], drained={"interrupted": [cut]})]
        for cut in interrupted
    ]
    return run_text("kernel", hosts, verbose=True, foretold=foretold)[-1]


def test_who_was_interrupted_more_than_once_is_named() -> None:
    assert over(*CUT_ON) == "1 VM was interrupted more than once: shop/db (host-n1, host-n2)"


def test_a_replica_set_whose_new_vm_was_interrupted_as_well_is_named() -> None:
    of_set = {"owner_kind": "VirtualMachineInstanceReplicaSet", "owner": "set"}
    first, second = ({**cut, **of_set, "outcome": "restarted"} for cut in CUT_ON)
    chain = [{**first, "name": "set-a", "successor": "set-b"}, {**second, "name": "set-b", "successor": "set-c"}]
    assert over(*chain) == "1 VM was interrupted more than once: one of replica set shop/set (host-n1, host-n2)"
    others = [chain[0], {**chain[1], "name": "set-x"}]
    assert "more than once" not in over(*others), "another one of the set"


@pytest.mark.parametrize("outcome", ["ended", "already_gone", "failed", "would_stop"])
def test_what_the_run_has_not_interrupted_counts_not(outcome: str) -> None:
    assert "more than once" not in over(CUT_ON[0], {**CUT_ON[1], "outcome": outcome})
