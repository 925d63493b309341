# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each word on placement becomes what the API says for it; the same through words and as raw affinity."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement import Own, placement_fields

from unit.plugins.module_utils._workloads.wording import HOST, OWN, SELECTOR, ZONE, Json, worded

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
OTHERS: Json = {"matchLabels": {"app": "web"}}
IGNORING: Json = {"mismatchLabelKeys": ["kubevirt.io/created-by"]}


def term(key: str, selector: Json, **more: object) -> Json:
    return {"topologyKey": key, "labelSelector": selector, **more}


def apart(*terms: Json) -> Json:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def together(*terms: Json) -> Json:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


@pytest.mark.parametrize(
    ("entries", "expressions"),
    [
        ([{"key": "disk", "values": ["ssd"]}], [{"key": "disk", "operator": "In", "values": ["ssd"]}]),
        ([{"key": "disk"}], [{"key": "disk", "operator": "Exists"}]),
        (
            [{"key": "disk", "operator": "DoesNotExist"}, {"key": "cores", "operator": "Gt", "values": [8]}],
            [{"key": "disk", "operator": "DoesNotExist"}, {"key": "cores", "operator": "Gt", "values": ["8"]}],
        ),
    ],
)
def test_required_labels_stand_in_one_term(entries: list[Json], expressions: list[Json]) -> None:
    side = placement_fields(worded(node_labels=entries), OWN)["affinity"]["nodeAffinity"]
    assert side == {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


def test_each_preferred_label_has_its_weight() -> None:
    words = worded(
        node_labels=[
            {"key": "disk", "values": ["ssd"], "weight": 10},
            {"key": "performance", "operator": "NotIn", "values": ["high"], "weight": 1},
        ]
    )
    (first, second) = placement_fields(words, OWN)["affinity"]["nodeAffinity"][PREFERRED]
    assert first == {
        "weight": 10,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    }
    assert second["weight"] == 1


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        # From its own, per zone: the own pod would block the migration.
        ({"per": "zone"}, term(ZONE, SELECTOR, **IGNORING)),
        ({"per": "rack"}, term("rack", SELECTOR, **IGNORING)),
        ({"per": "zone", "ignore_own_pod": False}, term(ZONE, SELECTOR)),
        # A migration leaves the host anyway.
        ({"per": "host"}, term(HOST, SELECTOR)),
        ({"per": HOST}, term(HOST, SELECTOR)),
        # The own pod is none of the others.
        ({"per": "zone", "labels": {"app": "web"}}, term(ZONE, OTHERS)),
        ({"per": "zone", "namespaces": ["bank"]}, term(ZONE, SELECTOR, namespaces=["bank"])),
        (
            {"per": "zone", "namespaces": ["bank", "shop"]},
            term(ZONE, SELECTOR, namespaces=["bank", "shop"], **IGNORING),
        ),
        # It is one of all VMs, and of all that are no web servers.
        (
            {"per": "zone", "labels": {"kubevirt.io": "virt-launcher"}},
            term(ZONE, {"matchLabels": {"kubevirt.io": "virt-launcher"}}, **IGNORING),
        ),
        (
            {"per": "zone", "expressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
            term(ZONE, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, **IGNORING),
        ),
        (
            {"per": "host", "vms": ["web-1"]},
            term(HOST, {"matchExpressions": [{"key": "vmi.kubevirt.io/id", "operator": "In", "values": ["web-1"]}]}),
        ),
    ],
)
def test_keep_apart(entry: Json, expected: Json) -> None:
    assert placement_fields(worded(keep_apart=[entry]), OWN) == apart(expected)


def test_a_preference_needs_no_exception_for_the_own_pod() -> None:
    fields = placement_fields(worded(keep_apart=[{"per": "zone", "weight": 50}]), OWN)
    weighted = {"weight": 50, "podAffinityTerm": term(ZONE, SELECTOR)}
    assert fields == {"affinity": {"podAntiAffinity": {PREFERRED: [weighted]}}}


def test_keep_apart_looks_at_the_labels_of_the_vms_not_at_the_selector() -> None:
    own = Own("shop", SELECTOR, {"app": "db", "tier": "data"})
    fields = placement_fields(worded(keep_apart=[{"per": "zone", "labels": {"tier": "data"}}]), own)
    assert fields == apart(term(ZONE, {"matchLabels": {"tier": "data"}}, **IGNORING))


def test_keep_together() -> None:
    words = worded(keep_together=[{"per": "host", "labels": {"app": "web"}, "namespaces": ["front"]}])
    assert placement_fields(words, OWN) == together(term(HOST, OTHERS, namespaces=["front"]))


def test_tolerations_spread_and_scheduler() -> None:
    words = worded(
        tolerations=[
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "toleration_seconds": 0},
        ],
        spread=[
            {"per": "zone", "min_domains": 3, "node_taints_policy": "Honor"},
            {"per": "host", "max_skew": 2, "when_unsatisfiable": "ScheduleAnyway", "labels": {"app": "web"}},
        ],
        scheduler_name="second",
    )
    assert placement_fields(words, OWN) == {
        "tolerations": [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        ],
        "topologySpreadConstraints": [
            {
                "topologyKey": ZONE,
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": SELECTOR,
                "minDomains": 3,
                "nodeTaintsPolicy": "Honor",
            },
            {"topologyKey": HOST, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": OTHERS},
        ],
        "schedulerName": "second",
    }


def test_raw_affinity_is_taken_as_it_is() -> None:
    raw = apart(term(ZONE, SELECTOR))["affinity"]
    assert placement_fields(worded(affinity=raw), OWN) == {"affinity": raw}


def test_no_words_make_no_fields() -> None:
    assert placement_fields(worded(), OWN) == {}
