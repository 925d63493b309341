# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cases leave open: when a rule is silent, offers no patch, or means a running VMI and not its template."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Severity

from integration.lint.case import Place
from integration.lint.objects import HOST, PREFERRED, ZONE, apart, budget, deployment, on, term, vm, vms
from testbed.api import Object
from unit.plugins.module_utils._lint.json_patch import patched
from unit.plugins.module_utils._lint.small import cluster, only, rules
from unit.plugins.module_utils._lint.world import Lists

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def cordon(lists: Lists, node: str) -> None:
    spec = next(item for item in lists["nodes"] if item["metadata"]["name"] == node)["spec"]
    spec["unschedulable"] = True
    spec["taints"].append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})


def test_a_cordon_is_no_fault() -> None:
    lists = cluster(vm())
    for node in ("detail-1", "detail-2"):
        cordon(lists, node)
    assert rules(lists) == []


def test_a_template_that_was_mended_leaves_the_vms_that_run() -> None:
    lists = cluster(vms(evictionStrategy=None))
    lists["vmireplicasets"][0]["spec"]["template"]["spec"]["evictionStrategy"] = "LiveMigrate"
    findings = lint(lists)
    assert {finding.problem.subject.kind for finding in findings} == {"VirtualMachineInstance"}
    assert [finding.problem.vmis for finding in findings] == [("lint-detail/vms0",), ("lint-detail/vms1",)]
    assert not any(finding.problem.patch for finding in findings), "nobody can edit a VMI that runs"


def test_the_clusters_default_is_a_strategy() -> None:
    lists = cluster(vms(evictionStrategy=None))
    for vmi in lists["vmis"]:
        del vmi["spec"]["evictionStrategy"]
    spec = {"configuration": {"evictionStrategy": "LiveMigrate"}}
    metadata = {"name": "kubevirt", "namespace": "kubevirt"}
    lists["kubevirts"] = [{"metadata": metadata, "spec": spec, "status": {"phase": "Deployed"}}]
    assert rules(lists) == []


def test_a_vm_that_migrates_is_not_tried() -> None:
    lists = cluster(vms(affinity=apart(term(HOST, "vms"))))
    assert rules(lists) == ["anti-affinity-fills-domains"]
    for pod in list(lists["pods"]):
        second = copy.deepcopy(pod)
        second["metadata"] |= {"name": f"{pod['metadata']['name']}-target", "uid": "second"}
        lists["pods"].append(second)
    assert rules(lists) == []


def test_a_preference_for_no_label_is_a_warning() -> None:
    preference = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term("rack", "vm")}]}}
    finding = only(cluster(vm(affinity=preference)))
    assert (finding.rule.id, finding.severity) == ("topology-key-unknown", Severity.WARNING)
    assert finding.problem.patch == ()


def test_several_named_hosts_are_a_warning_without_a_patch() -> None:
    finding = only(cluster(vm(affinity=on(HOST, "detail-1", "detail-2"))))
    assert (finding.rule.id, finding.severity) == ("host-name-in-selector", Severity.WARNING)
    assert finding.problem.patch == ()


def test_an_alternative_to_a_named_host_frees_the_vm() -> None:
    affinity = on(HOST, "detail-1")
    (terms,) = affinity["nodeAffinity"].values()
    terms["nodeSelectorTerms"] += on(ZONE, "b")["nodeAffinity"].popitem()[1]["nodeSelectorTerms"]
    assert rules(cluster(vm(affinity=affinity))) == []


def test_a_label_that_says_something_else_is_not_renamed() -> None:
    old = Place({BETA_ZONE: "old", ZONE: "new"})
    finding = only(cluster(vm(nodeSelector={BETA_ZONE: "old"}), places=(old, old)))
    assert finding.rule.id == "deprecated-labels"
    assert finding.problem.patch == ()


def test_a_scheduler_that_is_named_or_seen_serves() -> None:
    lists = cluster(vm(schedulerName="second"))
    assert rules(lists) == ["unknown-scheduler"]
    assert rules(lists, schedulers=["second"]) == []
    lists["pods"][0]["spec"]["nodeName"] = "detail-1"
    assert "unknown-scheduler" not in rules(lists)


BUDGETS: list[tuple[Object, list[str]]] = [
    ({"minAvailable": "100%"}, ["pdb-never-allows"]),
    ({"minAvailable": "51%"}, ["pdb-never-allows"]),
    ({"minAvailable": "50%"}, []),
    ({"maxUnavailable": "0%"}, ["pdb-never-allows"]),
    ({"maxUnavailable": "1%"}, []),
    ({"minAvailable": 1}, []),
]


@pytest.mark.parametrize(("rule", "expected"), BUDGETS)
def test_shares_are_rounded_up(rule: Object, expected: list[str]) -> None:
    assert rules(cluster(deployment(), budget("pods", **rule))) == expected


def test_a_budget_over_vms_that_migrate_is_never_asked() -> None:
    assert rules(cluster(vms(), budget("vms", minAvailable=2))) == []


def test_time_matters_only_within_a_window() -> None:
    lists = cluster(vms(replicas=4))
    assert rules(lists) == []
    assert rules(lists, window=11) == []
    assert rules(lists, window=10) == ["drain-exceeds-window", "drain-exceeds-window"]


def test_limits_of_the_cluster_are_mended_there() -> None:
    lists = cluster(vms())
    migrations = {"bandwidthPerMigration": "1Mi", "completionTimeoutPerGiB": 100}
    metadata = {"name": "kubevirt", "namespace": "kubevirt"}
    kubevirt = {"metadata": metadata, "spec": {"configuration": {"migrations": migrations}}}
    lists["kubevirts"] = [{**kubevirt, "status": {"phase": "Deployed"}}]
    finding = only(lists, rules=["migration-times-out"])
    assert finding.problem.subject.title == "KubeVirt kubevirt/kubevirt"
    lists["kubevirts"] = [patched(lists["kubevirts"][0], finding.to_json()["patch"])]
    assert rules(lists, rules=["migration-times-out"]) == []


def test_the_worst_comes_first_and_less_is_left_out_on_request() -> None:
    lists = cluster(vm(evictionStrategy=None, affinity=on(HOST, "detail-1", "detail-2")))
    assert rules(lists) == ["no-eviction-strategy", "host-name-in-selector"]
    assert rules(lists, severity=Severity.ERROR) == ["no-eviction-strategy"]


def immovable(lists: Lists, *reasons: tuple[str, str]) -> Lists:
    """The cluster's VMIs as KubeVirt calls them not live-migratable, one after the other."""
    for vmi, (reason, message) in zip(lists["vmis"], reasons, strict=True):
        condition = {"type": "LiveMigratable", "status": "False", "reason": reason, "message": message}
        vmi["status"]["conditions"] = [condition]
    return lists


def test_vmis_that_do_not_migrate_for_one_reason_are_one_finding() -> None:
    reason = "HostDeviceNotLiveMigratable"
    lists = immovable(cluster(vms()), (reason, "gpu 1 is there"), (reason, "gpu 2 is there"))
    finding = only(lists)
    assert finding.id == f"not-live-migratable:VirtualMachineInstanceReplicaSet/lint-detail/vms:{reason}"
    assert finding.problem.field == ""
    assert "2 VMs (lint-detail/vms0, lint-detail/vms1) (HostDeviceNotLiveMigratable: gpu 1 is there)" in (
        finding.problem.consequence
    )


def test_reasons_have_a_finding_each() -> None:
    lists = immovable(cluster(vms()), ("SEVNotLiveMigratable", "it is sealed"), ("HostDevice", "it has a gpu"))
    assert [(finding.problem.vmis, finding.problem.field) for finding in lint(lists)] == [
        (("lint-detail/vms1",), ""),
        (("lint-detail/vms0",), ""),
    ]
    assert len({finding.id for finding in lint(lists)}) == 2
