# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

from testbed.simulator.changes import Boot, Decision, Patch
from testbed.simulator.facts import timestamp
from testbed.simulator.fault import NODE_LOST, NODE_REBOOT, SILENT_HANDLER, STALE_HEARTBEAT, Fault, Faults
from testbed.simulator.node_agent import PERIOD, Surroundings, decide
from unit.testbed.simulator.builders import NOW, node, pod

HANDLER = pod("virt-handler", "a")
DOWN = replace(HANDLER, containers=({"ready": False},))


def around(**changes: Any) -> Surroundings:
    return replace(Surroundings(node(), (HANDLER,), Faults(), NOW), **changes)


def faulty(kind: str) -> Faults:
    return Faults((Fault("f", kind, node="a", since=NOW),))


def body(decision: Decision) -> dict[str, Any]:
    assert isinstance(decision.change, Patch)
    return decision.change.body


def test_the_heartbeat_comes_about_every_minute() -> None:
    quiet = decide(around())
    assert quiet.change is None
    assert quiet.wake is not None
    assert NOW + PERIOD <= quiet.wake <= NOW + 2.2 * PERIOD
    assert "kubevirt.io/heartbeat" in body(decide(around(now=quiet.wake)))["metadata"]["annotations"]


def test_a_node_without_the_label_is_none_of_kubevirts() -> None:
    assert decide(around(node=node(schedulable=""))) == Decision()


def test_without_its_pod_virt_handler_is_gone() -> None:
    assert body(decide(around(handlers=(DOWN,))))["metadata"]["labels"] == {"kubevirt.io/schedulable": "false"}
    assert decide(around(handlers=(DOWN,), node=node(schedulable="false"))) == Decision()
    assert not around(handlers=(DOWN,)).host().handled
    assert around(handlers=(DOWN,)).host().on


def test_a_new_node_is_silent_until_its_virt_handler_has_come() -> None:
    """Else it would serve VMs, and then not for a moment, when the DaemonSet has made its pod."""
    new = node(heartbeat=0)
    assert decide(around(node=new, handlers=(), awaited=True)) == Decision()
    assert decide(around(node=new, handlers=(DOWN,))) == Decision()
    assert "kubevirt.io/heartbeat" in body(decide(around(node=new)))["metadata"]["annotations"]
    assert "kubevirt.io/heartbeat" in body(decide(around(node=new, handlers=())))["metadata"]["annotations"]


def test_it_is_back_when_pod_and_node_are_ready() -> None:
    gone = node(schedulable="false")
    assert body(decide(around(node=gone)))["metadata"]["labels"] == {"kubevirt.io/schedulable": "true"}
    assert decide(around(node=replace(gone, ready=False))) == Decision()


def test_a_stale_heartbeat_is_written_once() -> None:
    faults = faulty(STALE_HEARTBEAT)
    annotations = body(decide(around(faults=faults)))["metadata"]["annotations"]
    assert annotations == {"kubevirt.io/heartbeat": "2027-01-15T07:50:00Z"}
    assert decide(around(faults=faults, node=node(heartbeat=NOW - 600))) == Decision()
    assert not around(faults=faults).host().handled


def test_power_fails_without_a_word() -> None:
    faults = faulty(NODE_LOST)
    assert body(decide(around(faults=faults))) == {"metadata": {"labels": {"testbed/outage": "f"}}}
    assert decide(around(faults=faults, node=node(outage="f"))) == Decision()
    assert not around(faults=faults).host().on


def test_a_reboot_goes_off_in_order() -> None:
    faults = faulty(NODE_REBOOT)
    seen = [
        body(decide(around(faults=faults, node=state)))
        for state in (node(), node(schedulable="false"), node(schedulable="false", outage="f"))
    ]
    assert seen[0]["metadata"]["labels"] == {"kubevirt.io/schedulable": "false"}
    assert seen[1]["metadata"]["labels"] == {"testbed/outage": "f"}
    assert seen[2]["status"]["conditions"][0]["status"] == "False"
    assert decide(around(faults=faults, node=node(schedulable="false", outage="f", ready=False))) == Decision()


def test_each_boot_has_an_id_of_its_own_even_after_outages_of_one_name() -> None:
    state, seen = node(outage="node-lost-1"), []
    for turn in range(3):
        change = decide(around(node=state)).change
        assert isinstance(change, Boot), turn
        seen.append(change.boot_id)
        state = replace(state, boot_id=change.boot_id)
    assert len({node().boot_id, *seen}) == 4


def test_after_a_power_cycle_virt_handler_speaks_only_once_it_is_ready() -> None:
    container = {"ready": False, "state": {"running": {"startedAt": timestamp(NOW + 20)}}}
    starting = replace(HANDLER, containers=(container,))
    up = replace(HANDLER, containers=({**container, "ready": True},))
    assert decide(around(handlers=(starting,), now=NOW + 20)) == Decision()
    spoken = body(decide(around(handlers=(up,), now=NOW + 21)))["metadata"]
    assert spoken == {"annotations": {"kubevirt.io/heartbeat": timestamp(NOW + 21)}}
    assert decide(around(handlers=(up,), now=NOW + 21, node=node(heartbeat=NOW + 20))).change is None


def test_a_silent_virt_handler_says_nothing_and_serves_nobody() -> None:
    faults = faulty(SILENT_HANDLER)
    for state in (node(heartbeat=NOW - 600), node(schedulable="false")):
        assert decide(around(faults=faults, node=state)) == Decision()
    assert not around(faults=faults).host().handled
