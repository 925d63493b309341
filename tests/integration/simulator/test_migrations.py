# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations succeed, fail in every phase, are aborted, and give up."""

from __future__ import annotations

import pytest

from integration.clusters import evict
from integration.simulator.lab import Lab, ended
from testbed.api import ApiError, Object


def phases(migration: Object) -> list[str]:
    return [entry["phase"] for entry in migration["status"]["phaseTransitionTimestamps"]]


@pytest.mark.gate
def test_success(lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    (source_pod,) = lab.pods()
    migration = lab.migrate()
    lab.until(migration, "Succeeded")
    vmi = lab.vmi()
    target = vmi["status"]["nodeName"]
    assert target != source
    assert vmi["metadata"]["labels"]["kubevirt.io/nodeName"] == target
    state = lab.state()
    assert state["completed"]
    assert (state["sourceNode"], state["targetNode"], state["sourcePod"]) == (source, target, source_pod)
    lab.wait("the source pod to end", lambda: lab.pod_phase(source_pod) == "Succeeded")
    assert ended(lab.pods()[source_pod])
    assert lab.pod_phase(state["targetPod"]) == "Running"
    lab.wait(
        "the target to clean up", lambda: "kubevirt.io/migrationTargetNodeName" not in lab.vmi()["metadata"]["labels"]
    )
    assert lab.phase() == "Running"
    # The next one is not hindered by what the first has left behind.
    again = lab.migrate(node=source)
    lab.until(again, "Succeeded")
    assert lab.node_of() == source
    wanted = ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"]
    assert phases(lab.migration(again)) == wanted


@pytest.mark.parametrize("phase", ["Scheduling", "PreparingTarget", "TargetReady", "Running", "Handoff", "TargetPod"])
def test_failure(lab: Lab, phase: str) -> None:
    source = lab.start()["status"]["nodeName"]
    (source_pod,) = lab.pods()
    lab.inject("migration-failure", "--vmi", f"{lab.namespace}/vm", "--phase", phase)
    migration = lab.migrate()
    lab.until(migration, "Failed")
    lab.wait("the target pod to end", lambda: all(ended(pod) for name, pod in lab.pods().items() if name != source_pod))
    assert (lab.phase(), lab.node_of(), lab.pod_phase(source_pod)) == ("Running", source, "Running")
    lab.wait(
        "the target to clean up", lambda: "kubevirt.io/migrationTargetNodeName" not in lab.vmi()["metadata"]["labels"]
    )
    lab.settle()
    again = lab.migrate()
    lab.until(again, "Succeeded")
    assert lab.node_of() != source


def test_a_failure_comes_as_often_as_its_probability_says(lab: Lab) -> None:
    lab.start()
    lab.inject("migration-failure", "--vmi", f"{lab.namespace}/vm", "--probability", "0")
    migration = lab.migrate()
    lab.until(migration, "Succeeded")


def test_abort_before_the_hand_over(lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    # Nowhere to go: the target pod waits for a node that does not exist.
    migration = lab.migrate(node="nowhere")
    lab.until(migration, "Scheduling")
    lab.cancel(migration)
    lab.wait("the target pod to be gone", lambda: len(lab.pods()) == 1)
    lab.wait("the migration to be gone", lambda: gone(lab, migration))
    assert (lab.phase(), lab.node_of(), lab.state()) == ("Running", source, {})


def test_abort_in_flight(lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    lab.never_end()
    migration = lab.migrate()
    lab.until(migration, "Running")
    lab.cancel(migration)
    lab.wait("the migration to be gone", lambda: gone(lab, migration))
    state = lab.state()
    assert state["failed"]
    assert state["abortRequested"]
    assert state["abortStatus"] == "Succeeded"
    assert state["failureReason"].startswith("Live migration aborted")
    assert (lab.phase(), lab.node_of()) == ("Running", source)
    lab.wait("the target pod to end", lambda: lab.pod_phase(state["targetPod"]) == "Succeeded")


def gone(lab: Lab, migration: Object) -> bool:
    try:
        lab.migration(migration)
    except ApiError as error:
        return error.status == 404
    return False


def test_a_guest_that_never_converges_is_given_up(lab: Lab) -> None:
    source = lab.start()["status"]["nodeName"]
    lab.inject("never-converges", "--vmi", f"{lab.namespace}/vm")
    migration = lab.migrate()
    lab.until(migration, "Failed")
    state = lab.state()
    assert state["failureReason"] == "Live migration is not completed after 150 seconds and has been aborted"
    assert state["abortStatus"] == "Succeeded"
    assert (lab.phase(), lab.node_of()) == ("Running", source)


def test_a_stalled_migration_is_given_up(lab: Lab) -> None:
    lab.policy(completionTimeoutPerGiB=0)
    lab.start()
    lab.inject("migration-stall", "--vmi", f"{lab.namespace}/vm")
    migration = lab.migrate()
    lab.until(migration, "Failed")
    assert lab.state()["failureReason"] == "Live migration stuck for 151 seconds and has been aborted"


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        pytest.param({"allowPostCopy": True}, "PostCopy", id="post-copy"),
        pytest.param({"allowWorkloadDisruption": True}, "Paused", id="paused"),
        pytest.param({"allowAutoConverge": True}, "PreCopy", id="auto-converge"),
    ],
)
def test_a_policy_helps_a_guest_that_does_not_converge(lab: Lab, settings: Object, mode: str) -> None:
    lab.policy(completionTimeoutPerGiB=10, **settings)
    source = lab.start()["status"]["nodeName"]
    lab.inject("never-converges", "--vmi", f"{lab.namespace}/vm")
    migration = lab.migrate()
    lab.until(migration, "Succeeded")
    assert lab.state()["mode"] == mode
    assert lab.node_of() != source


@pytest.mark.gate
def test_an_eviction_becomes_an_evacuation(lab: Lab) -> None:
    source = lab.start(evictionStrategy="LiveMigrate")["status"]["nodeName"]
    (pod,) = lab.pods().values()
    with pytest.raises(ApiError, match="evacuation") as refused:
        evict(lab.api, pod)
    assert refused.value.status == 429
    lab.wait("the VM to move", lambda: lab.node_of() != source)
    lab.wait("the mark to go", lambda: not lab.vmi()["status"].get("evacuationNodeName"))
    assert lab.phase() == "Running"


def test_a_guest_that_shuts_down_in_flight_ends_both(lab: Lab) -> None:
    lab.start()
    lab.never_end()
    migration = lab.migrate()
    lab.until(migration, "Running")
    lab.inject("guest-shutdown", "--vmi", f"{lab.namespace}/vm")
    lab.until(migration, "Failed")
    lab.wait("the VM to end", lambda: lab.phase() == "Succeeded")
    lab.wait("its pods to end", lambda: all(map(ended, lab.pods().values())))
