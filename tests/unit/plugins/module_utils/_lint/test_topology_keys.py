# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels that nodes have on which the pods in question cannot run are no better than labels that no node has."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Severity

from integration.lint.case import Place, nodes
from integration.lint.objects import PREFERRED, ZONE, apart, near, spread, term, vms
from testbed.api import Object
from unit.plugins.module_utils._lint.small import TWO, cluster, only, rules
from unit.plugins.module_utils._lint.world import Lists

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
ELSEWHERE = "None of the nodes that its pods may run on has the label rack"
PREFERENCE = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term("rack", "vms")}]}}


def with_racks_elsewhere(*planted: Object, places: tuple[Place, ...] = TWO) -> Lists:
    """The label rack is on one more node, whose taint nobody tolerates."""
    lists = cluster(*planted, places=places)
    lists["nodes"] += nodes("control-plane", (Place({"rack": "1"}),))
    return lists


RULES: list[tuple[Object, str, Severity]] = [
    ({"affinity": apart(term("rack", "vms"))}, "the required anti-affinity keeps nothing apart", Severity.ERROR),
    ({"affinity": near(term("rack", "vms"))}, "the required affinity can be met nowhere", Severity.ERROR),
    (
        {"topologySpreadConstraints": spread("rack", "vms")},
        "the spread constraint can be met nowhere",
        Severity.ERROR,
    ),
    ({"affinity": PREFERENCE}, "the preference has no effect", Severity.WARNING),
]


@pytest.mark.parametrize(("fields", "effect", "severity"), RULES)
def test_a_label_of_nodes_that_are_out_of_question_is_unknown(fields: Object, effect: str, severity: Severity) -> None:
    finding = only(with_racks_elsewhere(vms(**fields)))
    assert (finding.rule.id, finding.severity) == ("topology-key-unknown", severity)
    assert finding.problem.consequence.startswith(f"{ELSEWHERE}, so {effect}")
    assert finding.problem.remedy == "Use a label that these nodes have, or label them with rack."


def test_what_was_meant_by_a_label_that_exists_is_not_guessed() -> None:
    lists = cluster(vms(affinity=apart(term("zone", "vms"))))
    assert only(lists).problem.patch
    lists["nodes"] += nodes("control-plane", (Place({"zone": "1", "topology.kubernetes.io/zone": "c"}),))
    assert only(lists).problem.patch == ()


def test_a_label_that_some_of_the_nodes_have_is_known() -> None:
    racks = (Place({"rack": "1"}), Place({"rack": "2"}))
    assert "topology-key-unknown" not in rules(with_racks_elsewhere(vms(affinity=PREFERENCE), places=racks))
    assert rules(with_racks_elsewhere(vms(affinity=apart(term("rack", "vms"))), places=(*racks, Place()))) == [
        "topology-key-partial"
    ]


def test_where_pods_may_run_nowhere_all_nodes_count() -> None:
    lists = with_racks_elsewhere(vms(nodeSelector={"disk": "ssd"}, affinity=apart(term("rack", "vms"))))
    assert rules(lists) == ["node-selector-matches-nothing"]


def test_a_deprecated_label_that_no_node_has_is_as_bad_as_any_other() -> None:
    finding = only(cluster(vms(affinity=apart(term(BETA_ZONE, "vms")))))
    assert (finding.rule.id, finding.severity) == ("deprecated-labels", Severity.ERROR)
    assert finding.problem.consequence == (
        f"It goes by the label {BETA_ZONE}, which is deprecated and which no node has, so the required anti-affinity "
        "keeps nothing apart: all of its pods may come to one node."
    )
    assert finding.problem.remedy == f"Use {ZONE} instead."
    assert finding.problem.patch


def test_so_is_one_of_nodes_that_are_out_of_question() -> None:
    lists = cluster(vms(topologySpreadConstraints=spread(BETA_ZONE, "vms")), places=(Place(), Place()))
    lists["nodes"] += nodes("old", (Place({BETA_ZONE: "a", ZONE: "a"}),))
    finding = only(lists)
    assert (finding.rule.id, finding.severity) == ("deprecated-labels", Severity.ERROR)
    assert "which none of the nodes that its pods may run on has, so the spread constraint can be met" in (
        finding.problem.consequence
    )
    # The new label is not on those nodes either.
    assert finding.problem.remedy == f"Use {ZONE} instead, and label the nodes with it first."
    assert finding.problem.patch == ()


def test_a_preference_for_a_deprecated_label_that_no_node_has_is_a_warning() -> None:
    preference = {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term(BETA_ZONE, "vms")}]}}
    finding = only(cluster(vms(affinity=preference)))
    assert (finding.rule.id, finding.severity) == ("deprecated-labels", Severity.WARNING)
    assert finding.problem.consequence.endswith("which no node has, so the preference has no effect.")


def test_a_deprecated_label_that_nodes_have_is_a_warning() -> None:
    old = (Place({BETA_ZONE: "a", ZONE: "a"}), Place({BETA_ZONE: "b", ZONE: "b"}))
    finding = only(cluster(vms(affinity=apart(term(BETA_ZONE, "other"))), places=old), rules=["deprecated-labels"])
    assert finding.severity == Severity.WARNING
