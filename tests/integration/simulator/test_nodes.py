# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes lose power, reboot, and lose their virt-handler."""

from __future__ import annotations

from integration.simulator.lab import Lab, heartbeat, ready, schedulable
from testbed.api import Object

# The control plane gives a silent node up after a minute.
UNKNOWN = 300.0


def in_flight(lab: Lab) -> Object:
    lab.start()
    lab.never_end()
    migration = lab.migrate()
    lab.until(migration, "Running")
    lab.wait("the target to receive", lambda: bool(lab.state().get("targetNodeDomainDetected")))
    return migration


def test_the_target_node_is_lost(lab: Lab) -> None:
    migration = in_flight(lab)
    state = lab.state()
    lab.inject("node-lost", "--node", state["targetNode"])
    lab.until(migration, "Failed")
    assert "keepalive" in lab.state()["failureReason"]
    assert (lab.phase(), lab.node_of()) == ("Running", state["sourceNode"])
    # Nobody is left there who could end the target's pod.
    assert lab.pod_phase(state["targetPod"]) == "Running"
    lab.wait("the node to be given up", lambda: ready(lab.node(state["targetNode"])) == "Unknown", UNKNOWN)
    lab.inject("clear")
    lab.wait("the target pod to fail when the node is back", lambda: lab.pod_phase(state["targetPod"]) == "Failed")
    lab.settle()
    again = lab.migrate()
    lab.until(again, "Succeeded")


def taints(node: Object) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints") or ()}


def test_the_source_node_is_lost(lab: Lab) -> None:
    migration = in_flight(lab)
    state = lab.state()
    before = lab.node(state["sourceNode"])["status"]["nodeInfo"]["bootID"]
    lab.inject("node-lost", "--node", state["sourceNode"])
    lab.wait("the node to be given up", lambda: ready(lab.node(state["sourceNode"])) == "Unknown", UNKNOWN)
    lab.wait("its taint", lambda: "node.kubernetes.io/unreachable" in taints(lab.node(state["sourceNode"])))
    # With the source's virt-handler gone, nobody reports the end of the migration or of the guest.
    assert lab.migration(migration)["status"]["phase"] == "Running"
    assert lab.phase() == "Running"
    lab.wait("its VM not to be ready any more", lambda: lab.condition("vm", "Ready") == "False")
    lab.inject("clear")
    lab.until(migration, "Failed")
    lab.wait("the VM to be found dead", lambda: lab.phase() == "Failed")
    lab.settle()
    assert lab.node(state["sourceNode"])["status"]["nodeInfo"]["bootID"] != before


def test_a_stale_heartbeat_makes_the_node_unschedulable(lab: Lab) -> None:
    node = lab.start()["status"]["nodeName"]
    lab.inject("stale-heartbeat", "--node", node)
    lab.wait("virt-controller to give virt-handler up", lambda: schedulable(lab.node(node)) == "false")
    assert ready(lab.node(node)) == "True"
    assert lab.phase() == "Running"
    lab.inject("clear")
    lab.wait("virt-handler to be back", lambda: schedulable(lab.node(node)) == "true")


def test_a_node_reboots(lab: Lab) -> None:
    node = lab.start()["status"]["nodeName"]
    before, restarts = lab.node(node), handler_restarts(lab, node)
    seen: list[tuple[str, str]] = []
    lab.inject("node-reboot", "--node", node, "--duration", "120s")

    def back() -> bool:
        now = lab.node(node)
        state = (ready(now), schedulable(now))
        if state not in seen[-1:]:
            seen.append(state)
        return state == ("True", "true") and ("False", "false") in seen

    lab.wait("the node to be back", back)
    # virt-handler is the first to go and the last to come back.
    assert ("False", "true") not in seen
    assert seen[-2:] == [("True", "false"), ("True", "true")]
    after = lab.node(node)
    assert after["status"]["nodeInfo"]["bootID"] != before["status"]["nodeInfo"]["bootID"]
    assert heartbeat(after) > heartbeat(before)
    assert handler_restarts(lab, node) == restarts + 1
    lab.wait("the VM to be found dead", lambda: lab.phase() == "Failed")


def test_a_power_cycle_leaves_no_trace_but_the_boot_id(lab: Lab) -> None:
    node = lab.start()["status"]["nodeName"]
    before, restarts = lab.node(node), handler_restarts(lab, node)
    lab.inject("silent-handler", "--node", node)
    lab.inject("node-lost", "--node", node, "--for", "1s")
    lab.wait("the node to boot", lambda: boot_id(lab.node(node)) != boot_id(before))
    lab.wait("its kubelet to be back", lambda: ready(lab.node(node)) == "True")
    lab.wait("virt-handler's pod to be back", lambda: handler_restarts(lab, node) == restarts + 1)
    # Old words, which sound as if all were well.
    assert lab.stays(lambda: heartbeat(lab.node(node)) == heartbeat(before) and schedulable(lab.node(node)) == "true")
    lab.inject("clear")
    lab.wait("virt-handler to speak", lambda: heartbeat(lab.node(node)) > heartbeat(before))


def boot_id(node: Object) -> str:
    return str(node["status"]["nodeInfo"]["bootID"])


def handler_restarts(lab: Lab, node: str) -> int:
    (handler,) = lab.api.items(
        "/api/v1/namespaces/kubevirt/pods",
        fieldSelector=f"spec.nodeName={node}",
        labelSelector="kubevirt.io=virt-handler",
    )
    return int(handler["status"]["containerStatuses"][0]["restartCount"])
