# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that cannot be meant so are told with their place in the task, all at once."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement_problems import placement_problems

from unit.plugins.module_utils._workloads.wording import Json, worded


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"keep_apart": [{"per": "zoen"}]}, "in placement.keep_apart[0] per is zoen (is it zone?)"),
        (
            {"spread": [{"per": "topology.kubernetes.io/hostname"}]},
            "in placement.spread[0] per is topology.kubernetes.io/hostname, a label that no node carries; the key of a "
            "host is kubernetes.io/hostname, or say host",
        ),
        ({"keep_apart": [{"per": "a b"}]}, "in placement.keep_apart[0] 'a b' cannot be the key of a label"),
        (
            {"keep_apart": [{"per": "host", "weight": 0}]},
            "in placement.keep_apart[0] weight is 0; give a number from 1 to 100",
        ),
        (
            {"node_labels": [{"key": "disk", "operator": "NotIn"}]},
            "in placement.node_labels[0] the operator NotIn on disk needs values",
        ),
        (
            {"node_labels": [{"key": "disk", "operator": "Exists", "values": ["ssd"]}]},
            "in placement.node_labels[0] the operator Exists on disk takes no values",
        ),
        (
            {"node_labels": [{"key": "cores", "operator": "Gt", "values": ["many"]}]},
            "in placement.node_labels[0] the operator Gt on cores needs one integer as its value",
        ),
        (
            {"node_labels": [{"key": "disk", "values": [True]}]},
            "in placement.node_labels[0] the value True of disk is no text; put it in quotes",
        ),
        (
            {"node_labels": [{"key": "disk", "values": ["s d"]}]},
            "in placement.node_labels[0] 's d' cannot be the value of the label disk",
        ),
        (
            {"keep_together": [{"per": "host"}]},
            "in placement.keep_together[0] it names nobody to be together with; give labels, expressions or vms",
        ),
        (
            {"keep_together": [{"per": "host", "labels": {"app": False}}]},
            "in placement.keep_together[0] the value False of app is no text; put it in quotes",
        ),
        (
            {"keep_apart": [{"per": "host", "vms": ["a" * 64]}]},
            f"in placement.keep_apart[0] {'a' * 64!r} cannot be the name of a VM whose pods are selected",
        ),
        (
            {"spread": [{"per": "zone", "max_skew": 0}]},
            "in placement.spread[0] max_skew is 0; give a number of at least 1",
        ),
        (
            {"spread": [{"per": "zone", "min_domains": 2, "when_unsatisfiable": "ScheduleAnyway"}]},
            "in placement.spread[0] min_domains needs when_unsatisfiable=DoNotSchedule",
        ),
        (
            {"tolerations": [{"value": "x"}]},
            "in placement.tolerations[0] it has no key; give one, or operator=Exists to tolerate all taints",
        ),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists", "value": "x"}]},
            "in placement.tolerations[0] the operator Exists takes no value",
        ),
        (
            {"tolerations": [{"key": "gpu", "toleration_seconds": 5}]},
            "in placement.tolerations[0] toleration_seconds needs effect=NoExecute",
        ),
        (
            {"affinity": {"nodeAffinity": {}}, "keep_apart": [{"per": "zone"}]},
            "placement.affinity and placement.keep_apart say the same in two ways; give one of them",
        ),
    ],
)
def test_one_problem(options: Json, problem: str) -> None:
    assert placement_problems(worded(**options)) == [problem]


def test_all_problems_at_once() -> None:
    options: Json = {"node_labels": [{"key": "ok"}, {"key": "-"}], "keep_apart": [{"per": "zone", "weight": 101}]}
    assert len(placement_problems(worded(**options))) == 2


@pytest.mark.parametrize("per", ["zone", "host", "region", "rack", "example.com/room", "kubernetes.io/hostname"])
def test_any_key_is_a_domain(per: str) -> None:
    assert placement_problems(worded(keep_apart=[{"per": per}], spread=[{"per": per}])) == []
