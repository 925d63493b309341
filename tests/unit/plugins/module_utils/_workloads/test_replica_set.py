# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted replica set is what the task says, laid over what is there, and migratable unless it says otherwise."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.replica_set import wanted_spec

from unit.plugins.module_utils._workloads.wording import Json, template, wish, worded

NETWORK: Json = {"networks": [{"name": "default", "pod": {}}]}


def stored() -> Json:
    return wanted_spec(wish(replicas=3, template=template()), {})


def test_a_new_one_knows_its_vmis_by_the_template_s_labels() -> None:
    spec = wanted_spec(wish(template=template()), {})
    assert spec["selector"] == {"matchLabels": {"app": "db"}}
    assert spec["replicas"] == 1
    assert "paused" not in spec


def test_labels_come_from_the_selector() -> None:
    spec = wanted_spec(wish(template=template(labels={}), selector={"matchLabels": {"tier": "data"}}), {})
    assert spec["template"]["metadata"]["labels"] == {"tier": "data"}


def test_what_makes_a_vm_migratable_is_filled_in() -> None:
    spec = wanted_spec(wish(template=template()), {})["template"]["spec"]
    assert spec["evictionStrategy"] == "LiveMigrate"
    assert spec["domain"]["devices"]["interfaces"] == [{"name": "default", "masquerade": {}}]
    assert spec["networks"] == NETWORK["networks"]


@pytest.mark.parametrize(
    "fields",
    [
        NETWORK,
        {"domain": {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}}},
        {"domain": {"devices": {"autoattachPodInterface": False}}},
    ],
)
def test_a_network_of_the_template_s_own_stays(fields: Json) -> None:
    spec = wanted_spec(wish(template=template(evictionStrategy="None", **fields)), {})["template"]["spec"]
    assert spec["evictionStrategy"] == "None"
    assert {"networks": spec.get("networks")} == {"networks": fields.get("networks")}


def test_nothing_is_filled_in_on_request() -> None:
    spec = wanted_spec(wish(template=template(), masquerade=False, eviction_strategy="External"), {})["template"][
        "spec"
    ]
    assert "networks" not in spec
    assert spec["evictionStrategy"] == "External"


def test_what_the_task_leaves_open_stays() -> None:
    before = {**stored(), "paused": True}
    assert wanted_spec(wish(), before) == before
    assert wanted_spec(wish(replicas=0), before) == {**before, "replicas": 0}
    assert wanted_spec(wish(paused=False), before) == stored()


def test_a_template_replaces_the_whole_template_that_is_there() -> None:
    spec = wanted_spec(wish(template=template(hostname="x")), {**stored(), "replicas": 7})
    assert spec["template"]["spec"]["hostname"] == "x"
    again = wanted_spec(wish(template=template()), spec)
    assert "hostname" not in again["template"]["spec"]
    assert again["replicas"] == 7


def test_placement_alone_replaces_the_rules_and_leaves_the_rest() -> None:
    before = wanted_spec(wish(template=template(hostname="x", tolerations=[{"operator": "Exists"}])), {})
    after = wanted_spec(wish(placement=worded(scheduler_name="second")), before)
    assert after["template"]["spec"]["schedulerName"] == "second"
    assert after["template"]["spec"]["hostname"] == "x"
    assert "tolerations" not in after["template"]["spec"]


def test_nulls_say_nothing() -> None:
    spec = wanted_spec(wish(template=template(hostname=None, domain={"devices": {"rng": None}})), {})
    assert "hostname" not in spec["template"]["spec"]
    assert "rng" not in spec["template"]["spec"]["domain"]["devices"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "there is no such replica set yet, so template is needed"),
        ({"template": {"metadata": {}}}, "template has no spec; give that of a VirtualMachineInstance"),
        ({"template": {"spec": "x"}}, "template.spec is no mapping"),
        ({"template": template(), "replicas": -1}, "replicas is -1; give 0 or more"),
        (
            {"template": template(labels={})},
            "neither template.metadata.labels nor selector say by which labels the set knows its VMIs",
        ),
        (
            {"template": template(), "selector": {"matchLabels": {"app": True}}},
            "in selector.matchLabels the value True of app is no text; put it in quotes",
        ),
        (
            {"template": template(), "selector": {"matchExpressions": [{"key": "app", "operator": "Gt"}]}},
            "selector.matchExpressions is no list of key, operator and values, "
            "'Gt' is not a valid label selector operator",
        ),
        (
            {
                "template": template(affinity={"nodeAffinity": {}}, tolerations=[{"operator": "Exists"}]),
                "placement": {},
            },
            "template.spec.tolerations and placement both say where VMIs run; give one of them",
        ),
    ],
)
def test_problems(options: Json, problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        wanted_spec(wish(**options), {})
    assert problem in caught.value.problems
    assert str(caught.value).startswith("Cannot write replica set shop/db")
