# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every step of a migration, who makes it, and what ends it there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testbed.simulator.changes import Decision, Replacement
from testbed.simulator.facts import MIGRATION_TARGET_NODE, Vmi, timestamp
from testbed.simulator.fault import MIGRATION_FAILURE, Fault, Faults
from testbed.simulator.machine import decide
from testbed.simulator.situation import Host, Situation
from unit.testbed.simulator.builders import NOW, pod, vmi

UP, DOWN = Host(on=True, handled=True, address="10.0.0.1"), Host(on=True, handled=False)
HANDED_OVER = {"migrationUid": "m", "sourceNode": "a", "sourcePod": "old", "targetNode": "b", "targetPod": "new"}
PREPARED = {**HANDED_OVER, "targetNodeAddress": "10.0.0.1"}
STARTED = {**PREPARED, "startTimestamp": timestamp(NOW), "mode": "PreCopy"}
RECEIVED = {**STARTED, "targetNodeDomainDetected": True}
SWITCHED = {**RECEIVED, "targetNodeDomainReadyTimestamp": timestamp(NOW)}
COMPLETED = {**SWITCHED, "endTimestamp": timestamp(NOW), "completed": True}
POST_COPY = {**SWITCHED, "mode": "PostCopy"}
ABORTING = {**RECEIVED, "abortRequested": True}
LATER = NOW + 60


def situation(state: dict[str, Any], now: float = NOW, node: str = "a", **changes: Any) -> Situation:
    raw = vmi(migrationState=state, nodeName=node)
    raw["metadata"]["labels"][MIGRATION_TARGET_NODE] = "b"
    pods = (pod("old", "a"), pod("new", "b", "m"))
    return replace(Situation(Vmi(raw), pods, {"a": UP, "b": UP}, Faults(), now), **changes)


def written(before: Situation) -> dict[str, Any]:
    """What the decision changes in the migration's state; empty for nothing."""
    change = decide(before).change
    if not isinstance(change, Replacement):
        return {}
    assert before.vmi is not None
    assert before.vmi.migration is not None
    after = change.obj["status"]["migrationState"]
    return {key: value for key, value in after.items() if before.vmi.migration.raw.get(key) != value}


STEPS = [
    pytest.param(HANDED_OVER, NOW, "b", {"targetNodeAddress", "targetDirectMigrationNodePorts"}, id="prepare"),
    pytest.param(PREPARED, NOW, "a", {"startTimestamp", "mode"}, id="start"),
    pytest.param(STARTED, NOW, "b", {"targetNodeDomainDetected"}, id="receive"),
    pytest.param(RECEIVED, LATER, "b", {"targetNodeDomainReadyTimestamp"}, id="switch"),
    pytest.param(SWITCHED, LATER, "b", {"endTimestamp", "completed"}, id="complete"),
    pytest.param(ABORTING, NOW, "a", {"failed", "endTimestamp", "failureReason", "abortStatus"}, id="abort"),
    pytest.param({**POST_COPY, "abortRequested": True}, NOW, "a", {"abortStatus"}, id="abort in post-copy"),
]


@pytest.mark.parametrize(("state", "now", "reporter", "keys"), STEPS)
def test_each_step_is_reported_by_its_node_alone(
    state: dict[str, Any], now: float, reporter: str, keys: set[str]
) -> None:
    assert set(written(situation(state, now))) == keys
    other = {"a": "b", "b": "a"}[reporter]
    assert set(written(situation(state, now, hosts={reporter: UP, other: DOWN}))) == keys
    assert not written(situation(state, now, hosts={reporter: DOWN, other: UP}))


def test_copying_takes_its_time() -> None:
    decision = decide(situation(RECEIVED, NOW))
    assert decision.change is None
    assert decision.wake == NOW + 0.8  # 1 GB at 10 Gbit/s


def test_what_completion_writes() -> None:
    raw = situation({**SWITCHED, "targetMemoryOverhead": "200Mi"}, LATER)
    assert raw.vmi is not None
    marked = dict(raw.vmi.raw)
    marked["status"] = {**marked["status"], "evacuationNodeName": "a", "launcherContainerImageVersion": "x"}
    marked["metadata"] = {**marked["metadata"], "annotations": {"kubevirt.io/eviction-source": "descheduler"}}
    change = decide(replace(raw, vmi=Vmi(marked))).change
    assert isinstance(change, Replacement)
    status, metadata = change.obj["status"], change.obj["metadata"]
    assert status["nodeName"] == metadata["labels"]["kubevirt.io/nodeName"] == "b"
    assert status["memory"] == {"memoryOverhead": "200Mi"}
    assert status["migrationTransport"] == "Unix"
    assert not {"evacuationNodeName", "launcherContainerImageVersion"} & set(status)
    assert metadata["annotations"] == {}


def test_what_was_plugged_in_arrives_on_completion() -> None:
    raw = situation({**SWITCHED, "targetMemoryOverhead": "200Mi"}, LATER)
    assert raw.vmi is not None
    asked = dict(raw.vmi.raw)
    asked["spec"] = {"domain": {"cpu": {"cores": 1, "sockets": 8, "maxSockets": 8}, "memory": {"guest": "2Gi"}}}
    conditions = [{"type": name, "status": "True"} for name in ("HotVCPUChange", "LiveMigratable", "HotMemoryChange")]
    memory = {"guestAtBoot": "1Gi", "guestRequested": "1Gi"}
    asked["status"] = {**asked["status"], "conditions": conditions, "memory": memory}
    labels = {**asked["metadata"]["labels"], "kubevirt.io/vmi-pod-memory-resource-requests": "3"}
    asked["metadata"] = {**asked["metadata"], "labels": labels}
    change = decide(replace(raw, vmi=Vmi(asked))).change
    assert isinstance(change, Replacement)
    status = change.obj["status"]
    assert status["currentCPUTopology"] == {"cores": 1, "sockets": 8}
    guest = dict.fromkeys(("guestRequested", "guestCurrent"), "2Gi")
    assert status["memory"] == {"guestAtBoot": "1Gi", "memoryOverhead": "200Mi", **guest}
    assert [condition["type"] for condition in status["conditions"]] == ["LiveMigratable"]
    assert "kubevirt.io/vmi-pod-memory-resource-requests" not in change.obj["metadata"]["labels"]


def test_after_completion_the_label_goes_and_then_the_source_pod() -> None:
    done = situation(COMPLETED, LATER, node="b")
    change = decide(done).change
    assert isinstance(change, Replacement)
    assert MIGRATION_TARGET_NODE not in change.obj["metadata"]["labels"]
    left = replace(done, vmi=Vmi(change.obj))
    ended = decide(left).change
    assert ended is not None
    assert "ns/old: pod Succeeded" in ended.says
    # virt-controller is to learn first that the guest is elsewhere.
    assert decide(replace(left, now=NOW + 1)) == Decision(wake=NOW + 2)
    deleted = replace(left.pods[0], deleting=True)
    assert decide(replace(left, now=NOW + 1, pods=(deleted, left.pods[1]))).change is not None


@pytest.mark.parametrize(
    ("phase", "state", "now", "outcome"),
    [
        ("Scheduling", {}, NOW, "ns/new: pod Failed"),
        ("PreparingTarget", HANDED_OVER, NOW, "ns/new: pod Failed"),
        ("TargetReady", PREPARED, NOW, "unable to connect"),
        ("Running", RECEIVED, LATER, "migration out job"),
        ("Handoff", RECEIVED, LATER, "failed to resume"),
        ("TargetPod", RECEIVED, NOW, "ns/new: pod Failed"),
    ],
)
def test_injected_failures(phase: str, state: dict[str, Any], now: float, outcome: str) -> None:
    faults = Faults((Fault("f", MIGRATION_FAILURE, phase=phase),))
    change = decide(situation(state, now, faults=faults)).change
    assert change is not None
    assert outcome in change.says


def test_a_lost_target_is_noticed_after_libvirts_keepalive() -> None:
    off = Host(on=False, handled=False, off_since=NOW)
    waiting = decide(situation(RECEIVED, NOW + 1, hosts={"a": UP, "b": off}))
    assert waiting.change is None
    assert waiting.wake == NOW + 30
    assert "keepalive" in written(situation(RECEIVED, NOW + 30, hosts={"a": UP, "b": off}))["failureReason"]


def test_a_lost_source_reports_nothing() -> None:
    off = Host(on=False, handled=False, off_since=NOW)
    assert not written(situation(RECEIVED, LATER, hosts={"a": off, "b": UP}))


def test_a_node_lost_in_post_copy_costs_the_guest() -> None:
    off = Host(on=False, handled=False, off_since=NOW)
    slow = {**POST_COPY, "migrationConfiguration": {"allowPostCopy": True, "bandwidthPerMigration": "1Mi"}}
    change = decide(situation(slow, LATER, hosts={"a": off, "b": UP})).change
    assert isinstance(change, Replacement)
    assert change.obj["status"]["phase"] == "Failed"
    assert change.obj["status"]["migrationState"]["failed"]


def test_a_source_pod_deleted_after_the_switch_does_not_end_the_guest() -> None:
    pods = (pod("new", "b", "m"), replace(pod("old", "a"), deleting=True))
    assert decide(situation(SWITCHED, LATER, pods=pods, hosts={"a": UP, "b": DOWN})).change is None
    assert "completed" in written(situation(SWITCHED, LATER, pods=pods))
