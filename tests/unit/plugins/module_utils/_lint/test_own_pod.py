# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which terms of anti-affinity count a VM's own pod, as the launcher pod has its labels and its namespace."""

from __future__ import annotations

import pytest

from integration.lint.case import Place
from integration.lint.objects import REQUIRED, ZONE, apart, on, term, vms
from testbed.api import Object
from unit.plugins.module_utils._lint.json_patch import patched
from unit.plugins.module_utils._lint.small import cluster, only, rules

A, B = Place({ZONE: "a"}), Place({ZONE: "b"})
ZONES = (A, A, B, B)
LAUNCHERS: Object = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}}}
ANY = {"key": "vmi.kubevirt.io/id", "operator": "Exists"}
ALL_VMS: Object = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [ANY]}}
OTHERS = {"mismatchLabelKeys": ["kubevirt.io/created-by"]}
TERMS = f"/spec/template/spec/affinity/podAntiAffinity/{REQUIRED}"


@pytest.mark.parametrize("over", [LAUNCHERS, ALL_VMS])
def test_a_term_over_the_launchers_own_label_is_mended(over: Object) -> None:
    planted = vms(affinity=apart(over))
    finding = only(cluster(planted, places=ZONES))
    assert (finding.rule.id, finding.problem.field) == ("own-pod-blocks-migration", f"{TERMS}/0")
    mended = patched(planted, finding.to_json()["patch"])
    assert rules(cluster(mended, places=ZONES)) == []


@pytest.mark.parametrize(
    "other",
    [
        term(ZONE, "vms", namespaces=["bank"]),
        term(ZONE, "vms", mismatchLabelKeys=["app"]),
        term(ZONE, "vms", **OTHERS),
    ],
)
def test_a_term_that_does_not_count_it_is_left_alone(other: Object) -> None:
    planted = vms(affinity=apart(other, LAUNCHERS))
    finding = only(cluster(planted, places=ZONES), rules=["own-pod-blocks-migration"])
    assert [operation["path"] for operation in finding.problem.patch] == [f"{TERMS}/1/mismatchLabelKeys"]


SSD = {"disk": "ssd"}
ONE_SSD_EACH = (Place({ZONE: "a", **SSD}), A, Place({ZONE: "b", **SSD}), B)


def test_a_zone_kept_by_the_launchers_own_label_is_told_as_such() -> None:
    affinity = {**apart({**LAUNCHERS, **OTHERS}), **on("disk", "ssd")}
    assert rules(cluster(vms(affinity=affinity), places=ONE_SSD_EACH)) == ["single-eligible-node"]


def test_a_zone_is_not_kept_by_a_term_about_other_namespaces() -> None:
    hosts = {**LAUNCHERS, "topologyKey": "kubernetes.io/hostname"}
    affinity = {**apart(hosts, term(ZONE, "vms", namespaces=["bank"])), **on("disk", "ssd")}
    found = rules(cluster(vms(affinity=affinity), places=ONE_SSD_EACH))
    assert "anti-affinity-fills-domains" in found
    assert "single-eligible-node" not in found
