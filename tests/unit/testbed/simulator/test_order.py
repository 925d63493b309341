# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No step of a VM comes before the one it follows, whatever happens to it, its pods, its nodes and its migration."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from testbed.api import Object
from testbed.simulator.changes import Patch, Replacement
from testbed.simulator.facts import Migration, Vmi, pod_facts, timestamp
from testbed.simulator.fault import PHASES, VM_FAULTS, Fault, Faults
from testbed.simulator.machine import decide
from testbed.simulator.situation import Host, Situation
from unit.testbed.simulator.builders import NOW, pod_object, vmi

NODES = ("a", "b", "c")
LIMIT = 30
WELL = Host(on=True, handled=True, address="10.0.0.1")
BY_SOURCE = {"startTimestamp", "mode", "abortStatus", "failed", "failureReason"}
BY_TARGET = {"targetNodeAddress", "targetNodeDomainDetected", "targetNodeDomainReadyTimestamp", "completed"}
nodes = st.sampled_from(NODES)


class Cluster(RuleBasedStateMachine):
    """One VM on three nodes; the rules are what users, virt-controller and fate do. After each the simulator acts."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.vmi = vmi(phase="Scheduled")
        self.pods: dict[str, Object] = {"pod-0": pod_object("pod-0", "a")}
        self.hosts = dict.fromkeys(NODES, WELL)
        self.faults: tuple[Fault, ...] = ()
        self.now = NOW

    # What the simulator does.

    def situation(self) -> Situation:
        pods = tuple(pod_facts(pod) for pod in self.pods.values())
        return Situation(Vmi(self.vmi), pods, self.hosts, Faults(self.faults, scale=10.0), self.now, attempt=1)

    @rule(steps=st.integers(1, 6))
    def the_simulator_acts(self, steps: int) -> None:
        for _step in range(steps):
            self.act()

    @rule()
    def the_simulator_comes_to_rest(self) -> None:
        for _step in range(LIMIT):
            if not self.act():
                return
        raise AssertionError(f"the simulator still has something to do after {LIMIT} steps")

    def teardown(self) -> None:
        self.the_simulator_comes_to_rest()

    def act(self) -> bool:
        """One change; False when there is none to make."""
        situation = self.situation()
        change = decide(situation).change
        if isinstance(change, Replacement):
            self.check_vmi(situation, change.obj)
            self.vmi = change.obj
        elif isinstance(change, Patch):
            self.check_pod(situation, change)
            name = change.path.split("/")[-2]
            self.pods[name] = {**self.pods[name], "status": {**self.pods[name]["status"], **change.body["status"]}}
            if "deletionTimestamp" in self.pods[name]["metadata"]:
                del self.pods[name]
        return change is not None

    def check_pod(self, situation: Situation, change: Patch) -> None:
        """A pod is ended only when no guest is in it."""
        pod = situation.pod(change.path.split("/")[-2])
        assert pod is not None
        assert pod.live
        assert self.hosts[pod.node].on
        known = situation.vmi
        assert known is not None
        if known.final or known.node != pod.node or pod.migration_uid == self.target_of(known):
            return
        assert pod.deleting, "a pod with a running guest was ended"
        assert known.phase != "Running" or not self.hosts[pod.node].handled, "a guest's end was not reported first"

    @staticmethod
    def target_of(known: Vmi) -> str:
        migration = known.migration
        return migration.uid if migration and migration.target_node == known.node and not migration.done else "none"

    def check_vmi(self, situation: Situation, obj: Object) -> None:
        old, new = situation.vmi, Vmi(obj)
        assert old is not None
        assert not old.final, "a VMI that had ended was changed"
        before, after = old.migration or Migration({}), new.migration or Migration({})
        assert before.uid == after.uid
        if before.done:
            assert before.raw == after.raw, "a migration that was over was changed"
        assert not after.started or after.prepared, "started before prepared"
        assert not after.received or after.started, "received before started"
        assert not after.switched or after.received, "switched before received"
        assert not after.completed or after.switched, "completed before switched"
        assert not (after.completed and after.failed)
        if before.switched and before.mode != "PostCopy":
            assert not after.failed, "failed although the guest already ran on the target"
        if old.node != new.node:
            assert (old.node, new.node) == (after.source_node, after.target_node)
            assert after.completed, "moved before the migration was completed"
        self.check_reporters(old, new, before, after)

    def check_reporters(self, old: Vmi, new: Vmi, before: Migration, after: Migration) -> None:
        """Each value comes from the virt-handler that knows it, and only while it works."""
        changed = {key for key in after.raw if before.raw.get(key) != after.raw[key]}
        if changed & BY_TARGET:
            assert self.hosts[after.target_node].handled, f"nobody was on the target to report {changed}"
        if before.mode == "PostCopy":
            assert self.hosts[after.target_node].handled or self.hosts[after.source_node].handled
        elif changed & BY_SOURCE or old.phase != new.phase:
            assert self.hosts[old.node].handled, f"nobody was on the source to report {changed or new.phase}"

    # What happens.

    @rule(seconds=st.sampled_from([0.05, 0.2, 1.0, 16.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @property
    def migration(self) -> Migration:
        return Migration(self.vmi["status"].get("migrationState") or {})

    def live(self) -> list[Object]:
        return [pod for pod in self.pods.values() if pod["status"]["phase"] == "Running"]

    @rule(to=nodes, steps=st.integers(-1, 8))
    def a_migration_is_made(self, to: str, steps: int) -> None:
        """As virt-controller does: only for a VMI that runs, with one pod, and never to its own node.

        So that much happens to migrations at every point of their way, it is at once handed over and brought so many
        steps forward; -1: not even handed over.
        """
        running = self.vmi["status"]["phase"] == "Running" and len(self.live()) == 1
        if running and to != self.vmi["status"]["nodeName"] and self.hosts[to].on:
            uid = f"migration-{next(self.numbers)}"
            self.pods[f"pod-{uid}"] = pod_object(f"pod-{uid}", to, uid)
            if steps >= 0:
                self.it_is_handed_over()
            for _step in range(steps):
                self.act()
                self.now += 0.05

    @rule()
    def it_is_handed_over(self) -> None:
        if self.vmi["status"]["phase"] != "Running" or (self.migration.uid and not self.migration.done):
            return
        for pod in self.live():
            uid = pod["metadata"]["labels"].get("kubevirt.io/migrationJobUID", "")
            here = pod["spec"]["nodeName"] == self.vmi["status"]["nodeName"]
            if uid and uid != self.migration.uid and not here:
                self.hand_over(pod, uid)
                return

    def hand_over(self, pod: Object, uid: str) -> None:
        source, target = self.vmi["status"]["nodeName"], pod["spec"]["nodeName"]
        source_pod = next((p["metadata"]["name"] for p in self.live() if p["spec"]["nodeName"] == source), "")
        state = {
            "migrationUid": uid,
            "sourceNode": source,
            "sourcePod": source_pod,
            "targetNode": target,
            "targetPod": pod["metadata"]["name"],
            "migrationConfiguration": {
                "completionTimeoutPerGiB": 150,
                "progressTimeout": 150,
                "allowPostCopy": uid[-1] in "13579",
            },
        }
        labels = {**self.vmi["metadata"]["labels"], "kubevirt.io/migrationTargetNodeName": target}
        self.vmi = {
            **self.vmi,
            "metadata": {**self.vmi["metadata"], "labels": labels},
            "status": {**self.vmi["status"], "migrationState": state},
        }

    @rule()
    def the_migration_is_cancelled(self) -> None:
        if self.migration.started and not self.migration.done:
            state = {**self.migration.raw, "abortRequested": True}
            self.vmi = {**self.vmi, "status": {**self.vmi["status"], "migrationState": state}}

    @rule(number=st.integers(0, 9))
    def a_pod_is_deleted(self, number: int) -> None:
        """Or, when the VMI has ended, it is replaced by a new one."""
        if self.vmi["status"]["phase"] in {"Succeeded", "Failed"} and not self.live():
            self.vmi, self.pods = vmi(phase="Scheduled"), {"pod": pod_object("pod", "a")}
            self.vmi["metadata"]["creationTimestamp"] = timestamp(self.now + 1)
        elif number < len(self.pods):
            name = sorted(self.pods)[number]
            if self.pods[name]["status"]["phase"] == "Running":
                metadata = {**self.pods[name]["metadata"], "deletionTimestamp": "2027-01-01T00:00:00Z"}
                self.pods[name] = {**self.pods[name], "metadata": metadata}
            else:
                del self.pods[name]

    @rule(name=nodes, power=st.booleans())
    def a_node_goes(self, name: str, power: bool) -> None:
        """Its virt-handler alone, or the whole machine."""
        if self.hosts[name].handled:
            self.hosts[name] = (
                Host(on=False, handled=False, off_since=self.now) if power else replace(WELL, handled=False)
            )
            self.act()

    @rule()
    def all_nodes_come_back(self) -> None:
        """Guests do not survive their machine."""
        for pod in self.live():
            if not self.hosts[pod["spec"]["nodeName"]].on:
                self.pods[pod["metadata"]["name"]] = {**pod, "status": {**pod["status"], "phase": "Failed"}}
        self.hosts = dict.fromkeys(NODES, WELL)

    @rule(
        kind=st.sampled_from((*VM_FAULTS, *VM_FAULTS[:-1])),
        phase=st.sampled_from(PHASES),
        probability=st.sampled_from([0.5, 1.0]),
    )
    def a_fault_is_injected(self, kind: str, phase: str, probability: float) -> None:
        fault = Fault(f"f-{next(self.numbers)}", kind, phase=phase, probability=probability, since=self.now)
        self.faults = (*self.faults, fault)

    @rule()
    def all_faults_are_cleared(self) -> None:
        self.faults = ()


TestOrder = Cluster.TestCase
TestOrder.settings = settings(max_examples=400, stateful_step_count=60, deadline=None)
