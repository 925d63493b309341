# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set becomes what the task says, once, and the module tells where its VMIs are, go, and cannot go."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.secret_fields import (
    HOOK_SIDECARS,
    IGNITION,
    SECRET_FIELDS,
)
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_replicaset import main

from testbed.pki import Authority
from unit.plugins.support import confidential
from unit.plugins.support.fake_api import Object, serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.replicas_api import SETS, ReplicasApi, shop

TEMPLATE: Object = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}},
}
LARGER: Object = {**TEMPLATE, "spec": {"domain": {"devices": {}, "memory": {"guest": "2Gi"}}}}
ZONES = {"keep_apart": [{"per": "zone"}]}
CROWDED = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


class Apply(Protocol):
    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[ReplicasApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def apply(run_module: ModuleRunner, connection: dict[str, Any]) -> Apply:
    return partial(run_module, main, namespace="shop", name="db", **connection)


def written(api: ReplicasApi) -> list[Object]:
    """What was written to replica sets so far, dry runs left out."""
    return [request.body for request in api.writes() if request.path.startswith(SETS) and "dryRun" not in request.query]


def warnings(result: Result) -> list[str]:
    return [warning["event"]["msg"] for warning in result.get("warnings", ())]


def test_it_is_created_and_waited_for(apply: Apply, api: ReplicasApi) -> None:
    result = apply(replicas=2, template=TEMPLATE)
    assert result["changed"]
    assert [(one["node"], one["ready"], one["foretold"]) for one in result["replicas"]] == [("n1", True, False)] * 2
    assert api.replica_set()["spec"]["replicas"] == 2
    assert result["result"]["metadata"]["name"] == "db"
    assert "managedFields" not in result["result"]["metadata"]


def test_a_second_run_changes_nothing(apply: Apply, api: ReplicasApi) -> None:
    task: Object = {"replicas": 2, "template": TEMPLATE, "placement": ZONES}
    apply(**task)
    # As virt-controller writes it back.
    api.replica_set()["spec"]["template"]["spec"]["domain"] |= {"memory": {"guest": "1024Mi"}, "resources": {}}
    count = len(written(api))
    again = apply(**task)
    assert not again["changed"]
    assert again["outdated"] == []
    assert len(written(api)) == count
    assert len(api.asked("pods")) == 1, "nothing is foretold when nothing is to come"


def test_words_and_raw_affinity_make_the_same_object(apply: Apply) -> None:
    apply(replicas=2, template=TEMPLATE, placement=ZONES)
    term = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "mismatchLabelKeys": ["kubevirt.io/created-by"],
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    again = apply(template=TEMPLATE, placement={"affinity": affinity}, diff=True)
    assert not again["changed"]
    assert again["diff"]["before"] == again["diff"]["after"]
    within = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "affinity": affinity}}
    assert not apply(template=within)["changed"]


def test_check_mode_foretells_and_writes_nothing(apply: Apply, api: ReplicasApi) -> None:
    result = apply(replicas=3, template=TEMPLATE, placement=ZONES, check=True, diff=True)
    assert result["changed"]
    assert not written(api)
    assert [(one["node"], one["foretold"], one["message"]) for one in result["replicas"]] == [
        ("n1", True, ""),
        ("n2", True, ""),
        ("", False, CROWDED),
    ]
    assert warnings(result) == [f"Replica set shop/db: 1 of 3 replicas cannot be placed now: {CROWDED}"]
    assert result["diff"]["before"] == {}
    assert result["diff"]["after"]["replicas"] == 3


def test_it_can_be_told_to_refuse(apply: Apply, api: ReplicasApi) -> None:
    result = apply(replicas=3, template=TEMPLATE, placement=ZONES, unplaceable="fail")
    assert result["failed"]
    assert not result["changed"]
    assert result["error"]["reason"] == "Unplaceable"
    assert CROWDED.rstrip(".") in result["msg"]
    assert [bool(one["node"]) for one in result["replicas"]] == [True, True, False]
    assert not written(api)


def test_it_can_be_told_not_to_look(apply: Apply, api: ReplicasApi) -> None:
    result = apply(replicas=3, template=TEMPLATE, placement=ZONES, unplaceable="ignore", check=True)
    assert not api.asked("pods")
    assert warnings(result) == []
    assert {one["node"] for one in result["replicas"]} == {""}


@pytest.mark.parametrize(
    ("key", "ending"),
    [
        ("example.com/rack", "which a rule counts by."),
        ("topology.kubernetes.io/zon", "which a rule counts by; is it topology.kubernetes.io/zone?"),
    ],
)
def test_a_key_that_no_node_carries_is_told(apply: Apply, key: str, ending: str) -> None:
    result = apply(template=TEMPLATE, placement={"keep_apart": [{"per": key}]}, check=True)
    assert warnings(result)[0] == f"No node carries the label {key}, {ending}"


def test_outdated_vmis_are_listed_and_left_alone(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=2, template=TEMPLATE)
    names = [vmi["metadata"]["name"] for vmi in api.vmis()]
    result = apply(template=LARGER)
    assert result["changed"]
    assert [one["name"] for one in result["outdated"]] == names
    assert [vmi["metadata"]["name"] for vmi in api.vmis()] == names
    again = apply(template=LARGER)
    assert not again["changed"]
    assert [one["name"] for one in again["outdated"]] == names


def test_a_template_that_fits_nowhere_is_refused_though_its_vmis_run(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=2, template=TEMPLATE)
    huge = {**TEMPLATE, "spec": {"domain": {"devices": {}, "memory": {"guest": "64Gi"}}}}
    count = len(written(api))
    result = apply(template=huge, unplaceable="fail")
    assert (
        "2 of 2 replicas are outdated and could not be replaced now: 0/2 nodes are available: 2 Insufficient memory"
        in (result["msg"])
    )
    assert {one["successor_message"] for one in result["outdated"]} == {
        "0/2 nodes are available: 2 Insufficient memory."
    }
    assert len(written(api)) == count


def test_raw_rules_that_block_migration_are_told(apply: Apply) -> None:
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (warning,) = warnings(apply(template=TEMPLATE, placement={"affinity": affinity}))
    assert "no VM can be live-migrated within its own topology.kubernetes.io/zone" in warning


def test_rules_in_words_that_block_migration_are_meant_so(apply: Apply) -> None:
    words = {"keep_apart": [{"per": "zone", "ignore_own_pod": False}]}
    assert warnings(apply(template=TEMPLATE, placement=words)) == []


def test_replicas_alone_scale_it(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=2, template=TEMPLATE)
    result = apply(replicas=1)
    assert result["changed"]
    assert len(api.vmis()) == len(result["replicas"]) == 1
    assert not apply(replicas=1)["changed"]


def test_a_paused_one_is_not_waited_for(apply: Apply, api: ReplicasApi) -> None:
    result = apply(replicas=2, template=TEMPLATE, paused=True)
    assert [one["name"] for one in result["replicas"]] == ["", ""]
    assert not api.vmis()
    apply(paused=False)
    assert len(api.vmis()) == 2


def test_virt_controller_may_write_in_between(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=1, template=TEMPLATE)
    api.conflicts = 2
    assert apply(replicas=2)["changed"]
    assert api.replica_set()["spec"]["replicas"] == 2


def test_absent_waits_for_the_end_of_its_vmis(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=2, template=TEMPLATE)
    foretold = apply(state="absent", check=True, diff=True)
    assert foretold["changed"]
    assert foretold["diff"]["after"] == {}
    assert len(api.vmis()) == 2
    result = apply(state="absent")
    assert result["changed"]
    assert result["result"]["metadata"]["name"] == "db"
    assert api.vmis() == []
    again = apply(state="absent")
    assert not again["changed"]
    assert again["result"] == {}


def test_absent_waits_for_what_an_interrupted_run_left(apply: Apply, api: ReplicasApi) -> None:
    apply(replicas=2, template=TEMPLATE)
    apply(state="absent", wait=False)
    assert len(api.vmis()) == 2
    assert not apply(state="absent")["changed"]
    assert api.vmis() == []


def test_guests_secrets_stay_secret(apply: Apply) -> None:
    """In each place where one can stand; only that they change is told."""

    def template(secret: str) -> Object:
        spec = {"domain": {**TEMPLATE["spec"]["domain"], **confidential.domain(secret)}, **confidential.spec(secret)}
        return {"metadata": {**TEMPLATE["metadata"], "annotations": confidential.notes(secret)}, "spec": spec}

    apply(template=template("open-sesame-1"))
    result = apply(template=template("open-sesame-2"), diff=True)
    assert result["changed"]
    assert "open-sesame" not in str(result)
    told = str(result["diff"]["after"])
    assert told.count("(hidden, changed)") == len(SECRET_FIELDS | {IGNITION, HOOK_SIDECARS}), told


@pytest.mark.parametrize("arguments", [{"replicas": 3}, {"state": "absent"}, {"replicas": 2}])
def test_what_kubectl_and_ignition_left_in_annotations_stays_secret(
    apply: Apply, api: ReplicasApi, arguments: dict[str, Any]
) -> None:
    """Of a replica set that was written with kubectl."""
    apply(replicas=2, template=TEMPLATE)
    stored = api.replica_set()
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec": {"userData": "open-sesame\\n"}}'}
    stored["metadata"]["annotations"] = {**copy, "team": "a"}
    template = stored["spec"]["template"]
    template["metadata"]["annotations"] = {**copy, "kubevirt.io/ignitiondata": '{"passwd": "open-sesame"}'}
    result = apply(**arguments, diff=True)
    assert "open-sesame" not in str(result)
    assert result["result"]["metadata"]["annotations"] == {"team": "a"}
    if "replicas" in arguments:
        assert api.replica_set()["metadata"]["annotations"] == {**copy, "team": "a"}
