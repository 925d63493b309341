# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a plan's document says of an undisturbed run stands in the API's history, or is told as a deviation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.clusters import KUBEVIRT, VMIS, loaded
from integration.departures import Departures, otherwise
from integration.migration.clusters import peaceful
from integration.test_planned_runs import SPEC, Way, maintain, maintained, migrated, planned, way
from testbed.api import resource_path
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
    with Departures(testbed.kubeconfig) as seen:
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
    assert {title: what for title, what in astray.items() if title not in told} == {}
    # Migrations, target for target.
    wanted, found = set(map(way, planned(tmp_path, "migrate"))), set(migrated(testbed.api, tmp_path.name))
    missed = {entry.vm for entry in wanted ^ found}
    assert sorted(missed - told) == []
    # What the run says of itself is what the history says.
    total, as_planned = map(int, next(iter(SUM.findall(output))))
    leaving = [action for action in actions if action["kind"] in ("migrate", "evict", "stop", "restart")]
    assert (total - as_planned) == len(TOLD.findall(output))
    assert as_planned >= len(leaving) - len(told)
    kinds = {action["kind"] for action in leaving}
    assert {"migrate", "evict", "stop"} <= kinds, "the cluster is too small to show everything"
    # Who keeps its name and may migrate came true without exception.
    started = {entry["object"]["name"] for kind in ("restart", "stop") for entry in planned(tmp_path, kind)}
    steady = {entry for entry in wanted if not _was_made_anew(entry, started)}
    assert sorted(steady - found) == []


def _was_made_anew(entry: Way, started: set[str]) -> bool:
    """Whether it is, or may be, one that took the place of a VM that was shut down, in this run."""
    name = entry.vm.partition("/")[2]
    return any(name == other or name[:-5] == other[:-5] for other in started)
