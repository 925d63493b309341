# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity

from unit.plugins.module_utils._kubevirt.machines import vmi

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
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
