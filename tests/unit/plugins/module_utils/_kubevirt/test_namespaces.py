# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces

PODS = [
    {"metadata": {"name": "web"}, "spec": {"containers": [{"image": "nginx"}]}},
    {"metadata": {"name": "vm", "labels": {"kubevirt.io": "virt-launcher"}}, "spec": {"containers": [{"image": "l"}]}},
]


def item(name: str, namespace: str = "") -> Any:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}


def host(name: str, frequency: str, schedulable: str = "true") -> Any:
    labels = {"cpu-timer.node.kubevirt.io/tsc-frequency": frequency, "kubevirt.io/schedulable": schedulable}
    return {"metadata": {"name": name, "labels": labels}}


def test_each_has_its_own_and_all_have_the_classes() -> None:
    found = Namespaces(
        {
            "namespaces": [{"metadata": {"name": "shop", "labels": {"a": "b"}, "annotations": {"c": "d"}}}],
            "limitranges": [item("range", "shop")],
            "resourcequotas": [item("quota", "shop"), item("other", "bank")],
            "pvcs": [item("disk", "shop"), item("disk", "bank"), item("stray")],
            "priorityclasses": [item("high")],
            "runtimeclasses": [item("boxed")],
            "networkattachmentdefinitions": [item("blue", "bank")],
            "pods": PODS,
        }
    )
    shop, bank = found.of(item("db", "shop")), found.named("bank")
    assert (shop.labels, shop.annotations) == ({"a": "b"}, {"c": "d"})
    assert bank.labels is None
    assert [len(own) for own in (shop.limit_ranges, shop.quotas, shop.claims)] == [1, 1, 1]
    assert [len(own) for own in (bank.limit_ranges, bank.quotas, bank.claims)] == [0, 1, 1]
    assert [*found.of(item("db")).claims] == ["stray"]
    for known in (shop, bank):
        assert known.network_devices == {"bank/blue": ""}
        assert [*known.priority_classes, *known.runtime_classes, known.launcher_image] == ["high", "boxed", "l"]


def test_nothing_is_known_of_an_empty_cluster() -> None:
    assert Namespaces({}).named("shop") == Namespace()
    assert not Namespaces({}).claims_known


def test_the_lowest_frequency_is_of_nodes_that_run_vms_or_may() -> None:
    nodes = [host("a", "1800"), host("b", "1500", "false"), host("c", "1200", "false"), host("d", "none")]
    vmis = [{"metadata": {"name": "vm"}, "status": {"nodeName": "b"}}]
    assert Namespaces({"nodes": nodes, "vmis": vmis}).named("shop").tsc_frequency == 1500
