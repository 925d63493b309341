# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is foretold of a drain and of a lost node really happens: evictions are sent, a machine goes off."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fate import (
    Awaits,
    Event,
    Fate,
    FateOutcome,
    Where,
    fate,
)

from integration.clusters import remove_deserted, vmis
from integration.fate.population import HOME, POOL, SET, Machine, create, pause, remove, vmis_of
from integration.fate.watching import Before, all_ready, evict_all, lists, nodes_of, outcomes, projected, remember
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.home import TestbedError
from testbed.nodes import fake_node
from testbed.waiting import wait_for

DRAINED, LOST, FREE = "fate-drained", "fate-lost", "fate-free"
# The control plane gives a silent node up after a minute; the pod garbage collector looks every 20 s.
READY, SETTLED, GIVEN_UP, COLLECTED = 300.0, 300.0, 300.0, 300.0
# So long nothing else may happen; a VM that is to be started again is so within a second.
STEADY = 3.0
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}

MIGRATES, RESTARTS, BLOCKS, STAYS_DOWN = (
    FateOutcome.MIGRATES,
    FateOutcome.RESTARTS,
    FateOutcome.BLOCKS,
    FateOutcome.STAYS_DOWN,
)

TO_DRAIN = (
    Machine(DRAINED, "migrates", strategy="LiveMigrate"),
    Machine(DRAINED, "migrates-guarded", strategy="LiveMigrate", guarded=True),
    Machine(DRAINED, "migrates-if-possible", "Always", "LiveMigrateIfPossible"),
    Machine(DRAINED, "migrates-in-a-set", SET, "LiveMigrate"),
    Machine(DRAINED, "cannot", strategy="LiveMigrate", migratable=False),
    Machine(DRAINED, "cannot-if-possible", "Always", "LiveMigrateIfPossible", migratable=False),
    Machine(DRAINED, "for-others", strategy="External"),
    Machine(DRAINED, "guarded", guarded=True),
    Machine(DRAINED, "undecided", strategy=None),
    Machine(DRAINED, "alone"),
    Machine(DRAINED, "always", "Always"),
    Machine(DRAINED, "rerun", "RerunOnFailure"),
    Machine(DRAINED, "once", "Once"),
    Machine(DRAINED, "manual", "Manual"),
    Machine(DRAINED, "in-a-set", SET),
    Machine(DRAINED, "in-a-paused-set", SET, paused=True),
    Machine(DRAINED, "in-a-pool", POOL),
)
TO_LOSE = (
    Machine(LOST, "lost-alone"),
    Machine(LOST, "lost-always", "Always", "LiveMigrate"),
    Machine(LOST, "lost-rerun", "RerunOnFailure"),
    Machine(LOST, "lost-once", "Once"),
    Machine(LOST, "lost-manual", "Manual"),
    Machine(LOST, "lost-in-a-set", SET, "LiveMigrate"),
    Machine(LOST, "lost-in-a-paused-set", SET, paused=True),
    Machine(LOST, "lost-in-a-patient-set", SET, tolerates=None),
)
ALL = (*TO_DRAIN, *TO_LOSE)


@dataclass(frozen=True)
class Site:
    """VMs on a node that is cordoned and VMs on a node that has gone off, with a third node for them to go to."""

    testbed: RunningTestbed
    namespace: str
    before: dict[str, Before]
    drained: dict[str, Fate]
    lost: dict[str, Fate]

    @property
    def api(self) -> Api:
        return self.testbed.api

    def outcomes(self, machines: Sequence[Machine]) -> dict[str, str]:
        return outcomes(self.api, self.namespace, self.before, machines)

    def settle(self, machines: Sequence[Machine], expected: dict[str, str], timeout: float) -> None:
        """Wait until everything is as foretold, and see that it stays so."""
        with suppress(TestbedError):
            wait_for("what was foretold", lambda: self.outcomes(machines) == expected, timeout, 0.5)
        assert self.outcomes(machines) == expected
        time.sleep(STEADY)
        assert self.outcomes(machines) == expected

    def expect_nodes(self, machines: Sequence[Machine], fates: dict[str, Fate]) -> None:
        """Who is to be elsewhere is on the only node that is left."""
        for machine in machines:
            gone = fates[machine.name].where is not Where.NOWHERE
            assert (nodes_of(self.api, self.namespace, machine) == {FREE}) is gone, machine.name


@pytest.fixture(scope="module")
def site(testbed: RunningTestbed) -> Iterator[Site]:
    api, namespace = testbed.api, testbed.namespace()
    for node in (DRAINED, LOST):
        api.create("/api/v1/nodes", fake_node(node, taints=[{"key": HOME, "value": node, "effect": "NoSchedule"}]))
    try:
        create(api, namespace, ALL)
        wait_for("the VMs to run", partial(all_ready, api, namespace, ALL), READY, interval=0.5)
        for node in (DRAINED, LOST):
            api.patch(resource_path("v1", "nodes", name=node), {"spec": {"unschedulable": True}})
        api.create("/api/v1/nodes", fake_node(FREE))
        pause(api, namespace, ALL)
        wait_for("the budgets to count", partial(budgets_count, api, namespace))
        whole = lists(api)
        drained = foretell(whole, namespace, TO_DRAIN, Event.DRAIN)
        lost = foretell(whole, namespace, TO_LOSE, Event.NODE_FAILURE)
        before = remember(vmis(api, namespace), ALL)
        testbed.inject("node-lost", "--node", LOST)
        yield Site(testbed, namespace, before, drained, lost)
    finally:
        testbed.inject("clear")
        remove(api, namespace, ALL)
        remove_deserted(api, {node["metadata"]["name"] for node in api.items("/api/v1/nodes")} & {DRAINED, LOST, FREE})
        testbed.drop_namespace(namespace)


def foretell(
    whole: dict[str, list[Object]], namespace: str, machines: Sequence[Machine], event: Event
) -> dict[str, Fate]:
    """The same from whole objects and from what a snapshot keeps of them."""
    told = []
    for around in (whole, projected(whole)):
        known, found = surroundings(around), [v for v in around["vmis"] if v["metadata"]["namespace"] == namespace]
        told.append({machine.name: fate(vmis_of(found, machine)[0], event, known) for machine in machines})
    assert told[0] == told[1]
    return told[0]


def budgets_count(api: Api, namespace: str) -> bool:
    budgets = api.items(resource_path("policy/v1", "poddisruptionbudgets", namespace))
    return all(budget["status"].get("currentHealthy") == 1 for budget in budgets)


def named(fates: dict[str, Fate]) -> dict[str, str]:
    return {name: entry.outcome.value for name, entry in fates.items()}


def test_a_drain(site: Site) -> None:
    refusals = evict_all(site.api, site.namespace, TO_DRAIN)
    refused = {name for name, text in refusals.items() if text}
    assert refused == {name for name, entry in site.drained.items() if entry.outcome in (MIGRATES, BLOCKS)}
    site.settle(TO_DRAIN, named(site.drained), SETTLED)
    site.expect_nodes(TO_DRAIN, site.drained)
    stuck = [machine for machine in TO_DRAIN if site.drained[machine.name].outcome is BLOCKS]
    assert all(evict_all(site.api, site.namespace, stuck).values())


def test_a_lost_node(site: Site) -> None:
    untouched = {name: "block" if entry.awaits is Awaits.FENCING else "restart" for name, entry in site.lost.items()}
    site.settle(TO_LOSE, untouched, GIVEN_UP)
    node = resource_path("v1", "nodes", name=LOST)
    taints = site.api.get(node)["spec"]["taints"]
    site.api.patch(node, {"spec": {"taints": [*taints, OUT_OF_SERVICE]}})
    site.settle(TO_LOSE, named(site.lost), COLLECTED)
    site.expect_nodes(TO_LOSE, site.lost)


def test_everything_that_can_become_of_a_vm_is_seen(site: Site) -> None:
    assert {entry.outcome for entry in site.drained.values()} == {MIGRATES, BLOCKS, RESTARTS, STAYS_DOWN}
    assert {entry.outcome for entry in site.lost.values()} == {RESTARTS, STAYS_DOWN}
    assert {entry.awaits for entry in site.lost.values()} == {Awaits.NOTHING, Awaits.FENCING}
