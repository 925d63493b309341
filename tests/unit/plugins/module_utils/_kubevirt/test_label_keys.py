# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.label_keys import (
    merged_affinity,
    merged_spread,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"rev": "7", "uid": "u"}
KEYS = {"matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["uid"]}
BOTH = [
    {"key": "rev", "operator": "In", "values": ["7"]},
    {"key": "uid", "operator": "NotIn", "values": ["u"]},
]


def test_terms_of_both_kinds_on_both_sides_get_the_pods_own_values() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **KEYS}
    merged = {**term, "labelSelector": {"matchLabels": {"app": "db"}, "matchExpressions": BOTH}}
    found = merged_affinity(
        {
            "nodeAffinity": {"kept": True},
            "podAffinity": {REQUIRED: [term]},
            "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]},
        },
        LABELS,
    )
    assert found == {
        "nodeAffinity": {"kept": True},
        "podAffinity": {REQUIRED: [merged]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": merged}]},
    }
    assert "matchExpressions" not in term["labelSelector"], "the VMI has been changed"


def test_expressions_that_are_there_come_first() -> None:
    own = {"key": "app", "operator": "Exists"}
    (found,) = merged_spread([{"labelSelector": {"matchExpressions": [own]}, "matchLabelKeys": ["rev"]}], LABELS)
    assert found["labelSelector"]["matchExpressions"] == [own, BOTH[0]]


def test_what_was_not_given_stays_so() -> None:
    without_selector = {"topologyKey": "zone", **KEYS}
    without_label = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["absent"]}
    assert merged_spread([without_selector, without_label], LABELS) == [without_selector, without_label]
