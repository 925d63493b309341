# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that no other node takes: which of the rules tells of it, and in which words."""

from __future__ import annotations

from integration.lint.case import Place, nodes
from integration.lint.objects import reached_from, vm
from testbed.scenarios.generator.storage import disk_claim, storage_classes
from unit.plugins.module_utils._lint.small import cluster, only, rules
from unit.plugins.module_utils._lint.world import Lists

SSD = {"disk": "ssd"}
ONE = (Place(SSD),)


def beside(lists: Lists, *places: Place) -> Lists:
    """The cluster with more nodes, whose taint nobody tolerates."""
    lists["nodes"] += nodes("tainted", places)
    return lists


def test_one_node_without_a_taint_is_told_as_such() -> None:
    finding = only(beside(cluster(vm(), places=ONE), Place()))
    assert finding.rule.id == "single-eligible-node"
    assert finding.problem.consequence == (
        "Node selector, node affinity and taints leave no other node than detail-1 for VM lint-detail/vm: a migration "
        "stays Pending (0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) "
        "had untolerated taint(s))."
    )


def test_so_is_the_only_node_of_a_cluster() -> None:
    finding = only(cluster(vm(), places=ONE))
    assert finding.rule.id == "single-eligible-node"
    assert finding.problem.consequence.startswith("The cluster has no second node for VM lint-detail/vm: a migration")
    assert finding.problem.remedy == "Add a node."


def test_so_is_the_only_one_that_kubevirt_manages() -> None:
    lists = cluster(vm(), places=(Place(), Place()))
    (running,) = {vmi["status"]["nodeName"] for vmi in lists["vmis"]}
    for node in lists["nodes"]:
        if node["metadata"]["name"] != running:
            node["metadata"]["labels"]["kubevirt.io/schedulable"] = "false"
    finding = only(lists)
    assert finding.rule.id == "single-eligible-node"
    assert f"leave no other node than {running} for" in finding.problem.consequence


def test_a_disk_that_one_node_reaches_is_told_as_such() -> None:
    disk = reached_from("detail-1", disk_claim("lint-detail", "disk", shared=True))
    lists = cluster(vm(claims=["disk"]), *disk, *storage_classes(), places=(Place(), Place()))
    finding = only(lists)
    assert finding.rule.id == "single-eligible-node"
    assert finding.problem.consequence.startswith(
        "No other node that is legal for VM lint-detail/vm can use its volumes: a migration stays Pending"
    )
    assert "volumes" in finding.problem.remedy


def test_a_taint_and_a_selector_are_several() -> None:
    assert rules(beside(cluster(vm(nodeSelector=SSD), places=ONE), Place())) == ["several-rules-together"]


def test_what_opens_a_node_without_its_taint_is_told_first() -> None:
    lists = beside(cluster(vm(memory="2Gi"), places=(Place(), Place(memory="1Gi"))), Place())
    assert rules(lists) == ["no-room-elsewhere"]
