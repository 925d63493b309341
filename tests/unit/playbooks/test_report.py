# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run says what was seen of each VM, and nothing that was only meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

ROOT = Path(__file__).parents[3]
MOVE = {"namespace": "shop", "name": "web", "target_node": "n2", "node": "n1", "seconds": None}
MOVE |= {"failure_reason": "", "for_node": "n1"}
CUT = {"namespace": "shop", "name": "db", "owner": "db", "target_node": "", "failure_reason": "", "for_node": "n1"}
STARTED = {"namespace": "shop", "name": "db", "node": "n1", "outcome": "started"}


def report(folder: Path, **facts: Any) -> str:
    """Of a run over n1, which is done."""
    return report_of(folder, {"n1": {"uncordon_done": True, **facts}})


def report_of(folder: Path, *batches: dict[str, dict[str, Any]]) -> str:
    """batches: the facts of their hosts."""
    hosts = [
        {"ansible.builtin.add_host": {"name": name, **facts}} for batch in batches for name, facts in batch.items()
    ]
    plan = {"ansible.builtin.set_fact": {"plan_maintenance_plan": {"run": "kernel", "batches": [*map(list, batches)]}}}
    lines = "{{ lookup('ansible.builtin.template', '%s') }}" % (ROOT / "playbooks/steps/report.txt.j2")
    tell = {"ansible.builtin.copy": {"dest": str(folder / "report"), "content": lines, "mode": "0600"}}
    content = [{"hosts": "localhost", "gather_facts": False, "tasks": [*hosts, plan, tell]}]
    told, status = play(folder, yaml.safe_dump(content))
    assert status == 0, told
    return (folder / "report").read_text()


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("move", "line"),
    [
        ({"outcome": "migrated", "node": "n2", "seconds": 6}, "shop/web -> n2 in 6 s"),
        ({"outcome": "already_there", "node": "n3"}, "shop/web -> n3"),
        ({"outcome": "failed", "failure_reason": "no network"}, "shop/web failed, no network"),
        ({"outcome": "ended"}, "shop/web ended"),
    ],
)
def test_where_a_vm_went(tmp_path: Path, move: dict[str, Any], line: str) -> None:
    told = report(tmp_path, drain_result={"moves": [{**MOVE, **move}]})
    assert told.splitlines() == ["Run kernel:", "n1: done", f"     VM  {line}"]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("cut", "started", "line"),
    [
        ({"outcome": "stopped"}, [STARTED], "shop/db stopped, and started again on n1"),
        ({"outcome": "stopped"}, [{**STARTED, "outcome": "starting"}], "shop/db stopped"),
        ({"outcome": "stopped"}, [], "shop/db stopped"),
        ({"outcome": "ended"}, [], "shop/db ended without us"),
        ({"outcome": "ended", "failure_reason": "somebody did it"}, [], "shop/db ended without us, as somebody did it"),
        ({"outcome": "already_gone", "target_node": "n4"}, [], "shop/db was on n4 already"),
        ({"outcome": "restarted", "target_node": "n4"}, [], "shop/db restarted on n4"),
        ({"outcome": "would_stop"}, [], "shop/db would stop"),
    ],
)
def test_what_became_of_a_vm_that_cannot_move(
    tmp_path: Path, cut: dict[str, Any], started: list[dict[str, Any]], line: str
) -> None:
    told = report(tmp_path, drain_result={"interrupted": [{**CUT, **cut}]}, uncordon_started={"started": started})
    assert told.splitlines() == ["Run kernel:", "n1: done", f"     VM  {line}"]


@pytest.mark.campaign
@pytest.mark.parametrize(("outcome", "line"), [("evicted", "evicted in 3 s"), ("gone", "had gone")])
def test_what_became_of_a_pod(tmp_path: Path, outcome: str, line: str) -> None:
    pod = {"namespace": "shop", "name": "api", "outcome": outcome, "seconds": 3, "for_node": "n1"}
    told = report(tmp_path, drain_result={"evicted": [pod]})
    assert told.splitlines() == ["Run kernel:", "n1: done", f"     pod shop/api {line}"]


DEVIATION = {
    "kind": "vm",
    "namespace": "shop",
    "name": "web",
    "planned": "goes to n2",
    "done": "migrated to n3 in 6 s",
    "why": "the network was gone",
}


def test_how_much_of_the_plan_came_true(tmp_path: Path) -> None:
    told = report(tmp_path, drain_result={"moves": [], "as_planned": 3, "deviations": [DEVIATION]})
    assert told.splitlines() == [
        "Run kernel:",
        "n1: done",
        "     not as planned: VM  shop/web goes to n2; instead: migrated to n3 in 6 s, as the network was gone",
        "Of 4 virtual machines and pods 3 have left as planned.",
    ]


def test_nothing_is_said_of_a_plan_that_nothing_was_done_by(tmp_path: Path) -> None:
    assert report(tmp_path).splitlines() == ["Run kernel:", "n1: done"]


def test_what_left_other_nodes_is_told_of_these(tmp_path: Path) -> None:
    """Whether it came back, too, is known there only."""
    pod = {"namespace": "shop", "name": "api", "outcome": "evicted", "seconds": 1}
    elsewhere: dict[str, Any] = {
        "moves": [{**MOVE, "outcome": "migrated", "node": "n3"}],
        "evicted": [pod],
        "interrupted": [{**CUT, "outcome": "stopped"}],
    }
    others = {key: [{**entry, "for_node": "n2"} for entry in entries] for key, entries in elsewhere.items()}
    assert report(tmp_path, drain_result=others).splitlines() == ["Run kernel:", "n1: done"]
    assert "VM  shop/web -> n3" in report(tmp_path, drain_result=others, _drain_name="n2")


FAILED = {"rolling_maintenance_failure": "it was lost"}
WAITS = {**MOVE, "outcome": "waiting"}
MOVED = {**MOVE, "outcome": "migrated", "node": "n3", "seconds": 6}
GONE = {"namespace": "shop", "name": "api", "outcome": "gone", "seconds": 1, "for_node": "n1"}
EVICTED = {**GONE, "outcome": "evicted"}
STOPPED = {**CUT, "outcome": "stopped"}
ALL = {"moves": [MOVED], "evicted": [EVICTED], "interrupted": [STOPPED]}
TOLD = ["     VM  shop/web -> n3 in 6 s", "     pod shop/api evicted in 1 s", "     VM  shop/db stopped"]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("own", "mates", "lines"),
    [
        ({"failed": True}, [ALL], TOLD),
        ({"failed": True}, [ALL, ALL], TOLD),
        ({"moves": [WAITS], "evicted": [GONE], "interrupted": [{**CUT, "outcome": "ending"}]}, [ALL], TOLD),
        (ALL, [{"moves": [WAITS], "evicted": [GONE], "interrupted": [{**CUT, "outcome": "ended"}]}], TOLD),
        ({"failed": True}, [{"moves": [WAITS]}, {"moves": [MOVED]}], TOLD[:1]),
        ({"failed": True}, [{"moves": [WAITS]}], []),
        ({"failed": True}, [{"moves": [{**MOVE, "outcome": "migrating"}]}], ["     VM  shop/web migrating"]),
    ],
    ids="failed early|of two|left off|itself|one that waits|all wait|on its way".split("|"),
)
def test_what_others_have_moved_for_a_node_is_told_of_it(
    tmp_path: Path, own: dict[str, Any], mates: list[dict[str, Any]], lines: list[str]
) -> None:
    """Who has waited for it may have carried it out, and be the only one who knows."""
    others = {f"m{number}": {**FAILED, "drain_result": mate} for number, mate in enumerate(mates)}
    told = report_of(tmp_path, {"n1": {**FAILED, "drain_result": own}, **others}, {"z1": {"drain_result": ALL}})
    assert told.splitlines() == [
        "Run kernel:",
        "n1: failed",
        *lines,
        *(f"{name}: failed" for name in others),
        "z1: failed",
    ]
