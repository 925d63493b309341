# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a plan's document says of an undisturbed run stands in the API's history, in its order.

Where what is made anew comes to is the scheduler's lot. That alone may come otherwise, and is told as a deviation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import NO_NODE

from integration.chronicle import MARK, Chronicle, disorder, find_spans
from integration.clusters import KUBEVIRT, TIMEOUT, VMIS, loaded, remove
from integration.departures import POD, VMI, Departures, Stray, come_elsewhere, otherwise, paired
from integration.journeys import Journeys, Way, kin_title, way
from integration.migration.clusters import peaceful
from integration.simulator.lab import new_vmi
from integration.test_planned_runs import SPEC, ZONE, is_fit, maintain, maintained, planned
from testbed.api import Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.scenarios.generator import generate
from testbed.scenarios.load import load
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

TOLD = re.compile(r"not as planned: (?:VM|pod) ([^ ]+) (.+?); instead: ")
SUM = re.compile(r"Of (\d+) virtual machines and pods (\d+) have left as planned")


@pytest.fixture
def crowd(testbed: RunningTestbed) -> Iterator[Scenario]:
    """Twelve nodes in three zones with sixty VMs of all kinds, and pods beside them."""
    found = generate(SPEC)
    scenario = replace(found, objects=tuple(map(peaceful, found.objects)))
    with loaded(testbed.api, scenario):
        yield scenario


def test_the_history_of_a_run_is_its_plan(testbed: RunningTestbed, crowd: Scenario, tmp_path: Path) -> None:
    # Neighbours have the same taints and labels: a batch of them would leave their VMs no node.
    nodes = [name for first in range(SPEC.nodes // 3) for name in crowd.nodes[first :: SPEC.nodes // 3]]
    assert len(testbed.api.items(resource_path(KUBEVIRT, VMIS))) == SPEC.vmis
    with watching(testbed.kubeconfig, tmp_path.name) as (seen, journeys, chronicle):
        done = maintain(
            testbed,
            tmp_path,
            plan_maintenance_nodes=nodes,
            plan_maintenance_batch=3,
            plan_maintenance_policies=[{"expression": "`true`", "policy": "stop"}],
            plan_maintenance_force=True,
            rolling_maintenance_tasks=str(marking(testbed.kubeconfig, tmp_path)),
        )
    assert maintained(testbed.api, tmp_path.name) == sorted(crowd.nodes)
    output = " ".join((done.stdout + done.stderr).split())
    told = TOLD.findall(output)
    titles = {title for title, _planned in told}
    actions = json.loads((tmp_path / "plan.json").read_text())["actions"]
    lines = _Lines(planned(tmp_path, "restart") + planned(tmp_path, "stop"))
    # Only what was made anew in this run may come otherwise, and whom a pod's replacement is.
    first = [item["metadata"] for kind in (POD, VMI) for item in seen.first[kind]["items"]]
    there = {_title(metadata): metadata["uid"] for metadata in first}
    assert [
        (title, what)
        for title, what in told
        if title in there and not lines.may_be_anew(title) and not what.startswith("comes back on ")
    ] == []
    # Stops and evictions, one by one.
    uids = set(there.values())
    astray = list(otherwise(actions, seen.found))
    assert [stray for stray in astray if stray.title not in titles or not _is_by_lot(stray, uids)] == []
    # And where the scheduler has put what came in their place, as far as the plan is sure of that.
    elsewhere = come_elsewhere(actions, seen.arrived.values())
    assert {
        title: what
        for title, what in elsewhere
        if title not in titles or (title in there and not lines.may_be_anew(title))
    } == {}
    # Migrations, target for target: each of a VM that is never shut down, and no other one.
    wanted, found = Counter(map(way, planned(tmp_path, "migrate"))), Counter(journeys.found.keys())
    steady = {entry for entry in wanted | found if not lines.may_be_anew(entry.vm)}
    assert {entry: (wanted[entry], found[entry]) for entry in steady if (wanted[entry], found[entry]) != (1, 1)} == {}
    wanted, found = lines.count(wanted.elements()), lines.count(found.elements())
    missed = {entry.vm for entry in (wanted - found) + (found - wanted)}
    assert sorted(missed - set(map(lines.of, titles))) == []
    # What the run says of itself is what the history says.
    total, as_planned = map(int, next(iter(SUM.findall(output))))
    leaving = [action for action in actions if action["kind"] in ("migrate", "evict", "stop", "restart")]
    assert (total - as_planned) == len(told)
    assert as_planned >= len(leaving) - len(titles)
    kinds = {action["kind"] for action in leaving}
    assert {"migrate", "evict", "stop"} <= kinds, "the cluster is too small to show everything"
    # Nothing began before all had ended that it was to wait for. What by lot was not there was no reason to wait.
    pairs = paired(actions, seen.found)
    departed = {
        action["id"]: departure.uid
        for action in actions
        if (departure := pairs.get(action["id"])) and departure.node == action["from"]
    }
    spans = find_spans(actions, chronicle.events, tmp_path.name, departed)
    assert list(disorder(actions, spans)) == []
    timeless = [action for action in actions if action["id"] not in spans and action["kind"] != "start"]
    timeless = [action for action in timeless if action["object"]["uid"] and _title(action["object"]) not in titles]
    assert [action["id"] for action in timeless] == []


@pytest.fixture
def still(testbed: RunningTestbed) -> Iterator[Scenario]:
    """Twelve nodes in three zones, two more, and 60 VMs that all may migrate; KubeVirt's own pods are on these two.

    Of three zones two have a VM that never shares one: its own pod would be in the way where all have.
    """
    namespace = "still"
    zones = {
        "house-a": "a",
        "house-b": "b",
        **{f"still-{zone}{number}": zone for number in range(1, 5) for zone in "abc"},
    }
    nodes = [fake_node(name, labels={ZONE: zone}) for name, zone in zones.items()]
    vmis = [new_vmi(namespace, f"single-{number}", "1Gi") for number in range(55)]
    for group, key, size in (("hosts", "kubernetes.io/hostname", 3), ("zones", ZONE, 2)):
        for number in range(size):
            term = {"topologyKey": key, "labelSelector": {"matchLabels": {"group": group}}}
            apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            vmi = new_vmi(namespace, f"{group}-{number}", "1Gi", affinity=apart)
            vmi["metadata"]["labels"]["group"] = group
            vmis.append(vmi)
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    empty = Scenario("still", (own, *nodes), Settled(pods=0, vmis=0))
    scenario = replace(empty, objects=(*empty.objects, *vmis), settled=Settled(pods=0, vmis=len(vmis)))
    with loaded(testbed.api, empty):
        # A node that is not fit for VMs yet would get none.
        wait_for("fit nodes", lambda: all(is_fit(node) for node in testbed.api.items("/api/v1/nodes")))
        try:
            load(testbed.api, scenario, TIMEOUT)
            yield scenario
        finally:
            remove(testbed.api, scenario)


def test_where_nothing_is_left_to_the_scheduler_all_comes_true(
    testbed: RunningTestbed, still: Scenario, tmp_path: Path
) -> None:
    nodes = [name for name in still.nodes if name.startswith("still-")]
    with watching(testbed.kubeconfig, tmp_path.name) as (seen, journeys, chronicle):
        done = maintain(
            testbed,
            tmp_path,
            plan_maintenance_nodes=nodes,
            plan_maintenance_batch=2,
            rolling_maintenance_tasks=str(marking(testbed.kubeconfig, tmp_path)),
        )
    assert maintained(testbed.api, tmp_path.name) == sorted(nodes)
    actions = json.loads((tmp_path / "plan.json").read_text())["actions"]
    assert {action["kind"] for action in actions} == {"cordon", "migrate", "maintain", "uncordon"}
    moves = planned(tmp_path, "migrate")
    assert len({action["batch"] for action in moves}) == 6, "the VMs are not on all nodes"
    assert sorted(journeys.found) == sorted(map(way, moves))
    assert list(otherwise(actions, seen.found)) == []
    assert "not as planned" not in done.stdout + done.stderr
    spans = find_spans(actions, chronicle.events, tmp_path.name, {})
    assert (list(disorder(actions, spans)), [action["id"] for action in actions if action["id"] not in spans]) == (
        [],
        [],
    )


@contextmanager
def watching(kubeconfig: Path, run: str) -> Iterator[tuple[Departures, Journeys, Chronicle]]:
    with Departures(kubeconfig) as seen, Journeys(kubeconfig, run) as journeys, Chronicle(kubeconfig) as chronicle:
        yield seen, journeys, chronicle


def marking(kubeconfig: Path, folder: Path) -> Path:
    """The tasks of a maintenance that leaves a mark on the node."""
    metadata = {"name": "{{ inventory_hostname }}", "annotations": {MARK: folder.name}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    task = {"kubernetes.core.k8s": {"kubeconfig": str(kubeconfig), "state": "patched", "definition": node}}
    tasks = folder / "marking.yml"
    tasks.write_text(yaml.safe_dump([{"name": "Mark the node", **task, "delegate_to": "localhost"}]))
    return tasks


def _title(reference: Object) -> str:
    """namespace/name; of a node no such title is ever told."""
    return f"{reference['namespace']}/{reference['name']}"


def _is_by_lot(stray: Stray, uids: Collection[str]) -> bool:
    """Of what was made anew; and of a VM that stops for want of a node, which may have one when its turn comes.

    uids: of what was there when the run was planned.
    """
    return stray.uid not in uids or (stray.kind in ("stop", "restart") and NO_NODE in stray.why)


class _Lines:
    """Who is taken for whom, as a VM that was shut down has another name afterwards if a replica set has made it.

    interrupted: the actions that shut VMs down.
    """

    def __init__(self, interrupted: Iterable[Object]) -> None:
        objects = (action["object"] for action in interrupted)
        self._started = {kin_title(f"{entry['namespace']}/{entry['name']}") for entry in objects}

    def may_be_anew(self, title: str) -> bool:
        """Whether it is, or may be, one that was shut down in this run, or took the place of one."""
        return kin_title(title) in self._started

    def of(self, title: str) -> str:
        """The title, or what all those have in common who may be made anew."""
        return kin_title(title) if self.may_be_anew(title) else title

    def count(self, ways: Iterable[Way]) -> Counter[Way]:
        return Counter(replace(entry, vm=self.of(entry.vm)) for entry in ways)
