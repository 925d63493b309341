# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas are placed one after the other, each where the ones before leave room for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import vmi_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.forecast import copies, places, with_places
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import Outlook, Place

from testbed.nodes import fake_node
from unit.plugins.module_utils._workloads.wording import Json, template

FULL = "0/2 nodes are available: 2 Insufficient memory."


def lists(*pods: Json) -> dict[str, Sequence[Json]]:
    """Two nodes that hold one VMI of 1 GiB each."""
    return {"nodes": [fake_node(name, memory="2Gi") for name in ("n1", "n2")], "pods": list(pods)}


def vmi(name: str = "", node: str = "", **spec: Any) -> Json:
    """Of the replica set shop/db; without a name a new one."""
    given = template(**spec)
    metadata = {"name": name or "tried", "namespace": "shop", "uid": f"uid-{name}", **given["metadata"]}
    made = vmi_of({"kind": "VirtualMachineInstance", "metadata": metadata, "spec": given["spec"]}, Configuration())
    return {**made, "status": {"phase": "Running" if node else "Pending", **({"nodeName": node} if node else {})}}


def pod_of(of: Json, node: str) -> Json:
    pod = launcher_pod(of, Configuration(), Namespace())
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def spec(replicas: int) -> Json:
    return {"replicas": replicas, "template": template()}


def test_each_takes_room_from_the_next() -> None:
    assert places(lists(), copies(vmi(), "db", 3)) == [Place("n1", ""), Place("n2", ""), Place("", FULL)]


def test_running_pods_take_room() -> None:
    there = pod_of(vmi("db1"), "n1")
    assert places(lists(there), copies(vmi(), "db", 2)) == [Place("n2", ""), Place("", FULL)]


def test_pods_of_vmis_that_leave_do_not() -> None:
    there = pod_of(vmi("db1"), "n1")
    assert places(lists(there), copies(vmi(), "db", 1), without={"uid-db1"}) == [Place("n1", "")]


def test_a_vmi_whose_pod_has_its_node_is_not_placed_again() -> None:
    waiting = vmi("db1")
    assert places(lists(pod_of(waiting, "n2")), [waiting, *copies(vmi(), "db", 1)]) == [
        Place("n2", ""),
        Place("n1", ""),
    ]


def test_what_kubevirt_cannot_make_a_pod_of_is_told() -> None:
    domain = {"devices": {"hostDevices": [{"name": "d", "deviceName": "example.com/card"}]}}
    settings: Json = {"permittedHostDevices": {"pciHostDevices": []}}
    kubevirt = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": settings}, "status": {"phase": "Deployed"}}
    (place,) = places({**lists(), "kubevirts": [kubevirt]}, copies(vmi(domain=domain), "db", 1))
    assert place.node == ""
    assert "example.com/card is not among the permittedHostDevices" in place.message


def test_a_quota_lets_in_so_many_as_it_has_room_for() -> None:
    status = {"hard": {"pods": "2"}, "used": {"pods": "1"}}
    quota = {"metadata": {"namespace": "shop", "name": "q"}, "spec": {}, "status": status}
    there = vmi("db1", node="n1")
    given = {**lists(pod_of(there, "n1")), "resourcequotas": [quota]}
    first, second = places({**given, "nodes": [fake_node("n1", memory="9Gi")]}, copies(vmi(), "db", 2))
    assert first == Place("n1", "")
    assert second.message.startswith(
        "ResourceQuota q does not allow the pod with which shop/db-new-2 would start (pods"
    )
    # Those that leave make room in it, and a pod that there is already is not asked about again.
    waiting = {**pod_of(vmi("db2"), ""), "status": {"phase": "Pending"}}
    full = {**quota, "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
    assert places({**given, "resourcequotas": [full]}, copies(vmi(), "db", 1), without={"uid-db1"}) == [Place("n1", "")]
    again = {**lists(waiting), "resourcequotas": [full]}
    assert places(again, [vmi("db2")]) == [Place("n1", "")]


def test_missing_replicas_are_placed_beside_the_living() -> None:
    living = vmi("db1", node="n1")
    view = with_places(Outlook(spec(3), [living], vmi()), vmi(), "db", lists(pod_of(living, "n1")))
    assert [(one.name, place) for one, place in view.replicas()] == [
        ("db1", None),
        ("", Place("n2", "")),
        ("", Place("", FULL)),
    ]
    assert list(view.problems()) == [f"1 of 3 replicas cannot be placed now: {FULL.rstrip('.')}"]


def test_outdated_ones_are_replaced_in_thought() -> None:
    living = [vmi("db1", node="n1"), vmi("db2", node="n2")]
    pods = [pod_of(one, node) for one, node in zip(living, ("n1", "n2"), strict=True)]
    fresh = vmi(hostname="new")
    view = with_places(Outlook(spec(2), living, fresh), fresh, "db", lists(*pods))
    assert view.outdated == living
    assert view.successors == [Place("n1", ""), Place("n2", "")]
    assert not list(view.problems())


def test_a_set_that_shrinks_does_not_ask_for_room() -> None:
    waiting = [vmi("db1"), vmi("db2"), vmi("db3")]
    view = with_places(Outlook(spec(2), waiting, vmi()), vmi(), "db", lists())
    assert view.expected == []
    assert view.missing == 0


def test_vmis_on_their_way_out_do_not_count() -> None:
    ending = vmi("db1", node="n1")
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended = {**vmi("db2"), "status": {"phase": "Failed"}}
    assert Outlook(spec(2), [ending, ended], vmi()).missing == 2
