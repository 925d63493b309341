# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.admission import (
    admitted,
    merged_affinity,
    merged_spread,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces

from unit.plugins.module_utils._kubevirt.launcher.vms import listed

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"rev": "7", "uid": "u"}
KEYS = {"matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["uid"]}
BOTH = [
    {"key": "rev", "operator": "In", "values": ["7"]},
    {"key": "uid", "operator": "NotIn", "values": ["u"]},
]


def store(lists: Any = None, *, resources: Object | None = None, **spec: Any) -> Any:
    container = {"name": "compute", "resources": resources or {}}
    metadata = {"namespace": "shop", "name": "p", "labels": {"app": "a"}}
    return admitted(
        {"metadata": metadata, "spec": {"containers": [container], **spec}}, Namespaces(lists or {}).named("shop")
    )["spec"]


def test_requests_come_from_limits() -> None:
    found = store(resources={"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}})
    assert found["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_defaults_of_the_namespace() -> None:
    limits = [
        {"type": "Container", "default": {"cpu": "8"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}},
        {"type": "Pod", "max": {"cpu": "9"}},
    ]
    lists = {"limitranges": [listed("l", spec={"limits": limits}), listed("m", "other", spec={"limits": limits})]}
    given = {"limits": {"memory": "2Gi"}}
    assert store(lists, resources=given)["containers"][0]["resources"] == {
        "limits": {"memory": "2Gi", "cpu": "8"},
        "requests": {"memory": "2Gi", "cpu": "1"},
    }
    elsewhere = {"limitranges": lists["limitranges"][1:]}
    assert store(elsewhere)["containers"][0]["resources"] == {}


CLASSES = [
    {"metadata": {"name": "high"}, "value": 9, "preemptionPolicy": "Never"},
    {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True},
    {"metadata": {"name": "usual-too"}, "value": 2, "globalDefault": True},
]


@pytest.mark.parametrize(
    ("name", "classes", "priority"),
    [
        ("high", CLASSES, ("high", 9, "Never")),
        (None, CLASSES, ("usual-too", 2, "PreemptLowerPriority")),
        (None, CLASSES[:1], (None, 0, "PreemptLowerPriority")),
        (None, [], (None, None, None)),
        ("lost", CLASSES, ("lost", None, None)),
    ],
)
def test_priorities(name: str | None, classes: list[Object], priority: tuple[Any, ...]) -> None:
    found = store({"priorityclasses": classes}, priorityClassName=name)
    assert tuple(found.get(key) for key in ("priorityClassName", "priority", "preemptionPolicy")) == priority


def test_runtime_classes() -> None:
    boxed = {
        "metadata": {"name": "boxed"},
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": {"nodeSelector": {"box": "yes"}, "tolerations": [{"key": "box"}, {"key": "other"}]},
    }
    lists = {"runtimeclasses": [boxed]}
    found = store(lists, runtimeClassName="boxed", nodeSelector={"a": "b"}, tolerations=[{"key": "box"}])
    assert found["overhead"] == {"cpu": "1"}
    assert found["nodeSelector"] == {"a": "b", "box": "yes"}
    assert [entry["key"] for entry in found["tolerations"]].count("box") == 1
    assert found["tolerations"][-1] == {"key": "other"}


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ([], 2),
        ([{"operator": "Exists"}], 0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 2),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}], 1),
    ],
)
def test_how_long_it_waits_for_its_node(own: list[Object], added: int) -> None:
    assert len(store(tolerations=own)["tolerations"]) == len(own) + added


def test_label_keys_are_merged() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["app"]}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = {"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}, "matchLabelKeys": ["app"]}
    found = store(affinity={"podAntiAffinity": anti}, topologySpreadConstraints=[spread])
    stored = found["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert stored["labelSelector"]["matchExpressions"][0]["operator"] == "NotIn"
    assert found["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"][0]["values"] == ["a"]


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


def test_a_selector_that_was_not_given_stays_so() -> None:
    without_selector = {"topologyKey": "zone", **KEYS}
    without_label = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["absent"]}
    assert merged_spread([without_selector, without_label], LABELS) == [without_selector, without_label]
