# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity, blocked_migrations

from unit.plugins.module_utils._kubevirt.machines import vmi

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
OBSOLETE = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
NO_SVM = {"key": "cpu-feature.node.kubevirt.io/svm", "operator": "DoesNotExist"}
IN_A = {"key": "zone", "operator": "In", "values": ["a"]}


def required(found: dict[str, Any]) -> list[dict[str, Any]]:
    terms: list[dict[str, Any]] = found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return terms


def test_nothing_is_asked_for() -> None:
    assert affinity(vmi(domain={"cpu": {"model": "Haswell"}})) == {}


def test_a_host_model_and_none_keep_off_obsolete_hosts() -> None:
    for domain in ({}, {"cpu": {"model": "host-model"}}):
        assert required(affinity(vmi(domain=domain))) == [{"matchExpressions": [OBSOLETE]}]


def test_each_term_refuses_the_same() -> None:
    terms = [{"matchExpressions": [IN_A]}, {"matchFields": [IN_A]}, {}]
    before = {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}, "preferred": ["kept"]},
        "podAffinity": {"kept": True},
    }
    domain = {"cpu": {"model": "host-model", "features": [{"name": "svm", "policy": "forbid"}]}}
    found = affinity(vmi(domain=domain, affinity=before))
    assert required(found) == [
        {"matchExpressions": [IN_A, OBSOLETE, NO_SVM]},
        {"matchFields": [IN_A], "matchExpressions": [OBSOLETE, NO_SVM]},
        {"matchExpressions": [OBSOLETE, NO_SVM]},
    ]
    assert found["nodeAffinity"]["preferred"] == ["kept"]
    assert found["podAffinity"] == {"kept": True}
    assert terms == [{"matchExpressions": [IN_A]}, {"matchFields": [IN_A]}, {}], "the VMI has been changed"


def test_a_forbidden_feature_counts_without_a_model_too() -> None:
    domain = {"cpu": {"model": "host-passthrough", "features": [{"name": "svm", "policy": "forbid"}]}}
    assert required(affinity(vmi(domain=domain))) == [{"matchExpressions": [NO_SVM]}]


def template(affinity: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "db"}}, "spec": {"affinity": affinity}}


def blocked(**term: object) -> list[str]:
    whole: dict[str, Any] = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}, **term}
    return list(blocked_migrations(template({"podAntiAffinity": {REQUIRED: [whole]}}), "shop"))


def test_a_rule_that_counts_the_own_pod_blocks() -> None:
    assert blocked() == [
        f"the required anti-affinity by {ZONE} counts a VM's own pod too, so no VM can be live-migrated within its own "
        f"{ZONE}. Add mismatchLabelKeys: [kubevirt.io/created-by] to the term."
    ]


@pytest.mark.parametrize("term", [{"namespaces": ["shop"]}, {"namespaceSelector": {}}, {"labelSelector": {}}])
def test_wider_rules_block_too(term: dict[str, Any]) -> None:
    assert len(blocked(**term)) == 1


@pytest.mark.parametrize(
    "term",
    [
        {"topologyKey": HOST},
        {"mismatchLabelKeys": ["kubevirt.io/created-by"]},
        {"mismatchLabelKeys": ["app"]},
        {"namespaces": ["bank"]},
        {"namespaces": ["bank"], "namespaceSelector": None},
        {"labelSelector": {"matchLabels": {"app": "web"}}},
        {"labelSelector": None},
    ],
)
def test_rules_that_do_not_count_the_own_pod_block_nothing(term: dict[str, Any]) -> None:
    assert blocked(**term) == []


def test_no_rules_block_nothing() -> None:
    assert list(blocked_migrations(template({}), "shop")) == []
