# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a plan's document says of an undisturbed run stands in the API's history, or is told as a deviation."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.clusters import KUBEVIRT, VMIS, loaded
from integration.departures import Departures, come_elsewhere, otherwise
from integration.journeys import Journeys, Way, kin_title, way
from integration.migration.clusters import peaceful
from integration.test_planned_runs import SPEC, maintain, maintained, planned
from testbed.api import Object, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios.generator import generate
from testbed.scenarios.model import Scenario

TOLD = re.compile(r"not as planned: (?:VM|pod) ([^ ]+) ")
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
    with Departures(testbed.kubeconfig) as seen, Journeys(testbed.kubeconfig, tmp_path.name) as journeys:
        done = maintain(
            testbed,
            tmp_path,
            plan_maintenance_nodes=nodes,
            plan_maintenance_batch=3,
            plan_maintenance_policies=[{"expression": "`true`", "policy": "stop"}],
            plan_maintenance_force=True,
        )
    assert maintained(testbed.api, tmp_path.name) == sorted(crowd.nodes)
    output = " ".join((done.stdout + done.stderr).split())
    told = set(TOLD.findall(output))
    # Stops and evictions, one by one.
    actions = json.loads((tmp_path / "plan.json").read_text())["actions"]
    astray = dict(otherwise(actions, seen.found))
    # And where the scheduler has put what came in their place, as far as the plan is sure of that.
    astray |= come_elsewhere(actions, seen.arrived.values())
    assert {title: what for title, what in astray.items() if title not in told} == {}
    # Migrations, target for target.
    lines = _Lines(planned(tmp_path, "restart") + planned(tmp_path, "stop"))
    wanted, found = lines.count(map(way, planned(tmp_path, "migrate"))), lines.count(journeys.found)
    missed = {entry.vm for entry in (wanted - found) + (found - wanted)}
    assert sorted(missed - set(map(lines.of, told))) == []
    # What the run says of itself is what the history says.
    total, as_planned = map(int, next(iter(SUM.findall(output))))
    leaving = [action for action in actions if action["kind"] in ("migrate", "evict", "stop", "restart")]
    assert (total - as_planned) == len(TOLD.findall(output))
    assert as_planned >= len(leaving) - len(told)
    kinds = {action["kind"] for action in leaving}
    assert {"migrate", "evict", "stop"} <= kinds, "the cluster is too small to show everything"
    # Who keeps its name and may migrate came true without exception.
    steady = {entry for entry in map(way, planned(tmp_path, "migrate")) if not lines.may_be_anew(entry.vm)}
    assert sorted(steady - set(journeys.found)) == []


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
