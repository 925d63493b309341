# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about the real scheduler and KubeVirt that the product stands on, with nothing of the product in them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator

import pytest

from integration.clusters import (
    HOST,
    cordoned,
    evict,
    launchers,
    let_time_out,
    loaded,
    migrate,
    pods,
    refreshed,
    scheduling_message,
    vmi_on,
    vmis,
    wait_for_phase,
)
from testbed.api import ApiError, Object
from testbed.handle import RunningTestbed
from testbed.scenarios import files
from testbed.scenarios.model import Scenario, Settled
from testbed.waiting import wait_for

CUSTOMAPP = files.read(files.FOLDER / "customapp.yaml")
NAMESPACE = "customapp"
NODES = tuple(obj for obj in CUSTOMAPP.objects if obj["kind"] == "Node")
HIGH = {"kni-worker2", "kni-worker4", "kni-worker6"}
REGULAR = {"kni-worker", "kni-worker3", "kni-worker5"}


def tier(name: str) -> Object:
    return copy.deepcopy(next(obj for obj in CUSTOMAPP.objects if obj["metadata"]["name"] == name))


def only(workload: Object) -> Scenario:
    """The six nodes of customapp with one of its tiers, of three VMs."""
    namespace = tier(NAMESPACE)
    return Scenario("one tier", (*NODES, namespace, workload), Settled(pods=0, vmis=3))


@pytest.fixture(scope="class")
def customapp(testbed: RunningTestbed) -> Iterator[None]:
    with loaded(testbed.api, CUSTOMAPP):
        yield


@pytest.mark.gate
@pytest.mark.usefixtures("customapp")
class TestCustomapp:
    """Each test leaves the application as it found it."""

    def test_every_tier_starts_where_its_rules_want_it(self, testbed: RunningTestbed) -> None:
        caches = {pod["spec"]["nodeName"] for pod in pods(testbed.api, NAMESPACE, "app=cache")}
        databases = {vmi["status"]["nodeName"] for vmi in vmis(testbed.api, NAMESPACE, app="mssql2016")}
        black_boxes = {vmi["status"]["nodeName"] for vmi in vmis(testbed.api, NAMESPACE, app="blackbox")}
        assert (caches, databases, black_boxes) == (REGULAR, HIGH, REGULAR)

    def test_zone_rule_blocks_the_migration(self, testbed: RunningTestbed) -> None:
        """The database's own pod counts, so that not even the nodes of its own zone are free of databases."""
        database = vmi_on(testbed.api, NAMESPACE, "kni-worker2", "mssql2016")
        migration = migrate(testbed.api, database)
        assert scheduling_message(testbed.api, database) == (
            "0/6 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, "
            "3 node(s) didn't match pod anti-affinity rules."
        )
        let_time_out(testbed.api, migration)
        assert refreshed(testbed.api, database)["status"]["nodeName"] == "kni-worker2"

    def test_a_drained_database_has_no_other_node(self, testbed: RunningTestbed) -> None:
        database = vmi_on(testbed.api, NAMESPACE, "kni-worker2", "mssql2016")
        with cordoned(testbed.api, "kni-worker2"):
            migration = migrate(testbed.api, database)
            message = scheduling_message(testbed.api, database)
            let_time_out(testbed.api, migration)
        assert message == (
            "0/6 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules, "
            "3 node(s) didn't match Pod's node affinity/selector."
        )

    def test_cache_and_blackbox_leave_together_and_come_back_on_request_only(self, testbed: RunningTestbed) -> None:
        api = testbed.api
        black_box = vmi_on(api, NAMESPACE, "kni-worker", "blackbox")
        with cordoned(api, "kni-worker"):
            move_cache(testbed, "kni-worker", "kni-worker2")
            move_black_box(testbed, black_box, "kni-worker", "kni-worker2")
        assert on(testbed, "kni-worker2") == {"cache": 1, "mssql2016": 1, "blackbox": 1}
        assert on(testbed, "kni-worker") == {}

        # The regular node is free again and empty: the cache prefers it, the black box has to follow.
        move_cache(testbed, "kni-worker2", "kni-worker")
        move_black_box(testbed, black_box, "kni-worker2", "kni-worker")
        assert on(testbed, "kni-worker") == {"cache": 1, "blackbox": 1}
        after = refreshed(api, black_box)
        assert after["metadata"]["uid"] == black_box["metadata"]["uid"], "the black box was restarted"
        assert after["status"]["phase"] == "Running"


def on(testbed: RunningTestbed, node: str) -> Counter[str]:
    """The application's running pods on a node, by tier."""
    return Counter(
        pod["metadata"]["labels"]["app"]
        for pod in pods(testbed.api, NAMESPACE, "app")
        if pod["spec"].get("nodeName") == node
    )


def move_cache(testbed: RunningTestbed, source: str, expected: str) -> None:
    """Evict the cache pod of a node and wait until its replacement runs where it is expected."""
    caches = pods(testbed.api, NAMESPACE, "app=cache")
    evict(testbed.api, next(pod for pod in caches if pod["spec"]["nodeName"] == source))
    wait_for(
        f"a cache on {expected} instead of {source}",
        lambda: on(testbed, expected)["cache"] == 1 and on(testbed, source)["cache"] == 0,
    )


def move_black_box(testbed: RunningTestbed, black_box: Object, source: str, target: str) -> None:
    """Migrate it, and wait until nothing of it is left on its old node."""
    wait_for_phase(testbed.api, migrate(testbed.api, black_box, target), "Succeeded")
    wait_for("the end of the black box's old pod", lambda: on(testbed, source)["blackbox"] == 0)


def zone_rule(workload: Object) -> Object:
    affinity = workload["spec"]["template"]["spec"]["affinity"]
    rule: Object = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    return rule


@pytest.mark.gate
def test_zone_rule_alone_refuses_all_nodes(testbed: RunningTestbed) -> None:
    databases = tier("mssql2016")
    del databases["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    with loaded(testbed.api, only(databases)):
        database = vmis(testbed.api, NAMESPACE)[0]
        migration = migrate(testbed.api, database)
        message = scheduling_message(testbed.api, database)
        assert message == "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules."
        let_time_out(testbed.api, migration)
        assert refreshed(testbed.api, database)["status"]["nodeName"] == database["status"]["nodeName"]


@pytest.mark.gate
def test_mismatch_label_keys_free_the_own_zone_and_no_other(testbed: RunningTestbed) -> None:
    api = testbed.api
    databases = tier("mssql2016")
    del databases["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    zone_rule(databases)["mismatchLabelKeys"] = ["kubevirt.io/created-by"]
    with loaded(api, only(databases)):
        database = vmis(api, NAMESPACE)[0]
        source = database["status"]["nodeName"]
        target, foreign = neighbours(source)

        refused = migrate(api, database, foreign)
        assert scheduling_message(api, database) == (
            "0/6 nodes are available: 1 node(s) didn't match pod anti-affinity rules, "
            "5 node(s) didn't match Pod's node affinity/selector."
        )
        let_time_out(api, refused)
        wait_for("the refused target pod to go", lambda: len(launchers(api, database)) == 1)

        wait_for_phase(api, migrate(api, database, target), "Succeeded")
        after = refreshed(api, database)
        assert after["status"]["nodeName"] == target
        assert after["metadata"]["uid"] == database["metadata"]["uid"]
        # How it works: the API server took the VM's own pods out of what the rule selects.
        wait_for("the source pod to end", lambda: len(launchers(api, database)) == 1)
        selector = zone_rule({"spec": {"template": launchers(api, database)[0]}})["labelSelector"]
        own = {"key": "kubevirt.io/created-by", "operator": "NotIn", "values": [database["metadata"]["uid"]]}
        assert own in selector["matchExpressions"]


def neighbours(name: str) -> tuple[str, str]:
    """The other node of a node's zone, and one of another zone."""
    zones = {
        node["metadata"]["labels"][HOST]: node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in NODES
    }
    same = next(other for other, zone in zones.items() if other != name and zone == zones[name])
    return same, next(other for other, zone in zones.items() if zone != zones[name])


def test_with_a_node_selector_alone_a_drain_puts_two_databases_on_one_node(testbed: RunningTestbed) -> None:
    api = testbed.api
    databases = tier("mssql2016")
    del databases["spec"]["template"]["spec"]["affinity"]
    databases["spec"]["template"]["spec"]["nodeSelector"] = {"performance": "high"}
    with loaded(api, only(databases)):
        assert {vmi["status"]["nodeName"] for vmi in vmis(api, NAMESPACE)} == HIGH
        database = vmi_on(api, NAMESPACE, "kni-worker2", "mssql2016")
        with cordoned(api, "kni-worker2"):
            with pytest.raises(ApiError, match="Eviction triggered evacuation") as refusal:
                evict(api, launchers(api, database)[0])
            assert refusal.value.status == 429
            wait_for("the evacuation", lambda: refreshed(api, database)["status"]["nodeName"] != "kni-worker2", 60)
        assert sorted(Counter(vmi["status"]["nodeName"] for vmi in vmis(api, NAMESPACE)).values()) == [1, 2]
