# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims, volumes, disks and zones."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters import (
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict

from unit.plugins.module_utils._scheduler.asking import fit, message, reasons
from unit.plugins.module_utils._scheduler.builders import (
    Json,
    claim,
    expression,
    mounts,
    node,
    pod,
    storage_class,
    volume,
)

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
NODES = [node("a", **{ZONE: "x"}), node("b", **{ZONE: "y"})]
IN_X = [{"matchExpressions": [expression(ZONE, "In", "x")]}]
MANUAL = storage_class("manual", "kubernetes.io/no-provisioner")
DYNAMIC = storage_class("dynamic")


def test_zones_are_looked_at_when_claims_have_been() -> None:
    order = [plugin.name for plugin in FILTERS]
    assert order.index("VolumeBinding") < order.index("VolumeZone")


def test_a_missing_claim_rejects_the_pod() -> None:
    found = message(pod(volumes=mounts("data")), nodes=NODES)
    assert found == '0/2 nodes are available: persistentvolumeclaim "data" not found.'


BROKEN: list[tuple[str, Json, str]] = [
    (
        "lost",
        claim("data", volume="pv") | {"status": {"phase": "Lost"}},
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
    ),
    (
        "terminating",
        claim("data", volume="pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        'persistentvolumeclaim "data" is being deleted',
    ),
    ("immediate and unbound", claim("data", storage_class="now"), volume_binding.UNBOUND),
    ("of no class", claim("data"), volume_binding.UNBOUND),
    ("bound by name only", claim("data", storage_class="manual", volumeName="pv"), volume_binding.UNBOUND),
    ("bound to nothing", claim("data", volume="gone"), 'persistentvolume "gone" not found'),
]


@pytest.mark.parametrize(("_what", "broken", "reason"), BROKEN, ids=[case[0] for case in BROKEN])
def test_claims_that_reject_the_pod(_what: str, broken: Json, reason: str) -> None:
    classes = [MANUAL, storage_class("now", immediate=True)]
    found = message(pod(volumes=mounts("data")), nodes=NODES, pvcs=[broken], storageclasses=classes)
    assert found == f"0/2 nodes are available: {reason}."


def test_a_bound_volume_is_reached_from_some_nodes() -> None:
    lists = {"nodes": NODES, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv", terms=IN_X)]}
    assert reasons(pod(volumes=mounts("data")), **lists) == {"a": [], "b": [volume_binding.NODE_CONFLICT]}


def test_names_in_the_affinity_of_a_volume_are_ignored() -> None:
    by_name = [{"matchFields": [expression("metadata.name", "In", "b")]}]
    lists = {"nodes": NODES, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv", terms=by_name)]}
    assert fit(pod(volumes=mounts("data")), **lists) == ["a", "b"]


def test_a_volume_of_a_generic_ephemeral_claim_that_is_gone() -> None:
    volumes = [{"name": "scratch", "ephemeral": {}}]
    owned = claim(
        "new-scratch",
        volume="gone",
        metadata={
            "ownerReferences": [{"uid": "uid-new", "controller": True}],
            "annotations": {"pv.kubernetes.io/bind-completed": ""},
        },
    )
    assert reasons(pod(volumes=volumes), nodes=NODES[:1], pvcs=[owned]) == {"a": [volume_binding.VOLUME_MISSING]}
    awaited = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"'
    assert message(pod(volumes=volumes), nodes=NODES) == f"0/2 nodes are available: {awaited}."
    foreign = "PVC default/new-scratch was not created for pod default/new (pod is not owner)"
    assert (
        message(pod(volumes=volumes), nodes=NODES, pvcs=[claim("new-scratch")])
        == f"0/2 nodes are available: {foreign}."
    )


MATCHING: list[tuple[str, Json, Json, list[str]]] = [
    ("fits", {}, {}, ["a", "b"]),
    ("exactly large enough", {"size": "1Gi"}, {"size": "1024Mi"}, ["a", "b"]),
    ("too small", {"size": "1Gi"}, {"size": "1023Mi"}, []),
    ("elsewhere", {}, {"terms": IN_X}, ["a"]),
    ("another class", {}, {"storageClassName": "other"}, []),
    ("another mode", {"mode": "ReadWriteMany"}, {}, []),
    ("a block device", {"volumeMode": "Block"}, {}, []),
    ("not available", {}, {"phase": "Released"}, []),
    ("reserved for another", {}, {"claimRef": {"namespace": "default", "name": "other"}}, []),
    (
        "reserved for this one, in any phase",
        {},
        {"claimRef": {"namespace": "default", "name": "data"}, "phase": "Pending"},
        ["a", "b"],
    ),
    (
        "reserved for this one, elsewhere",
        {},
        {"claimRef": {"namespace": "default", "name": "data"}, "terms": IN_X},
        ["a"],
    ),
    (
        "reserved for a claim of the same name before it",
        {"metadata": {"uid": "2"}},
        {"claimRef": {"namespace": "default", "name": "data", "uid": "1"}},
        [],
    ),
    ("not selected", {"selector": {"matchLabels": {"disk": "fast"}}}, {}, []),
    ("selected", {"selector": {"matchLabels": {"disk": "fast"}}}, {"labels": {"disk": "fast"}}, ["a", "b"]),
    ("another attributes class", {"volumeAttributesClassName": "gold"}, {}, []),
]


@pytest.mark.parametrize(("_what", "asked", "offered", "names"), MATCHING, ids=[case[0] for case in MATCHING])
def test_a_waiting_claim_takes_an_existing_volume(_what: str, asked: Json, offered: Json, names: list[str]) -> None:
    lists = {
        "nodes": NODES,
        "pvcs": [claim("data", storage_class="manual", **asked)],
        "pvs": [volume("pv", **{"storageClassName": "manual", **offered})],
        "storageclasses": [MANUAL],
    }
    found = reasons(pod(volumes=mounts("data")), **lists)
    assert [name for name, why in found.items() if not why] == names
    assert {why[0] for why in found.values() if why} <= {volume_binding.BIND_CONFLICT}


def test_two_claims_do_not_take_the_same_volume() -> None:
    lists: dict[str, Any] = {
        "nodes": NODES,
        "pvcs": [claim("one", storage_class="manual", size="2Gi"), claim("two", storage_class="manual")],
        "pvs": [
            volume("large", size="3Gi", storageClassName="manual"),
            volume("small", storageClassName="manual", terms=IN_X),
        ],
        "storageclasses": [MANUAL],
    }
    assert fit(pod(volumes=mounts("one", "two")), **lists) == ["a"]


def test_the_smallest_claim_chooses_first() -> None:
    lists: dict[str, Any] = {
        "nodes": NODES[:1],
        "pvcs": [claim("large", storage_class="dynamic", size="2Gi"), claim("small", storage_class="dynamic")],
        "pvs": [volume("pv", size="2Gi", storageClassName="dynamic")],
        "storageclasses": [DYNAMIC],
        "csidrivers": [{"metadata": {"name": "csi.example.org"}, "spec": {"storageCapacity": True}}],
        "csistoragecapacities": [
            {"metadata": {"name": "c"}, "storageClassName": "dynamic", "capacity": "1Gi", "nodeTopology": {}}
        ],
    }
    # The volume would do for the large claim, and there is space to make a small one, but the small claim takes it.
    assert reasons(pod(volumes=mounts("large", "small")), **lists) == {"a": [volume_binding.NOT_ENOUGH_SPACE]}


def test_volumes_are_made_where_the_class_allows() -> None:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["y"]}]}]
    lists = {
        "nodes": NODES,
        "pvcs": [claim("data", storage_class="dynamic")],
        "storageclasses": [DYNAMIC | {"allowedTopologies": topologies}],
    }
    assert reasons(pod(volumes=mounts("data")), **lists) == {"a": [volume_binding.BIND_CONFLICT], "b": []}


def test_a_node_chosen_for_a_claim_is_kept() -> None:
    chosen = claim(
        "data", storage_class="dynamic", metadata={"annotations": {"volume.kubernetes.io/selected-node": "b"}}
    )
    assert fit(pod(volumes=mounts("data")), nodes=NODES, pvcs=[chosen], storageclasses=[DYNAMIC]) == ["b"]


CAPACITIES: list[tuple[str, Json, list[str]]] = [
    ("enough in x", {"capacity": "1Gi", "nodeTopology": {"matchLabels": {ZONE: "x"}}}, ["a"]),
    ("too little", {"capacity": "1023Mi", "nodeTopology": {}}, []),
    ("too small volumes", {"capacity": "9Gi", "maximumVolumeSize": "1023Mi", "nodeTopology": {}}, []),
    ("no topology", {"capacity": "9Gi"}, []),
    ("another class", {"capacity": "9Gi", "nodeTopology": {}, "storageClassName": "other"}, []),
]


@pytest.mark.parametrize(("_what", "capacity", "names"), CAPACITIES, ids=[case[0] for case in CAPACITIES])
def test_space_where_the_driver_publishes_it(_what: str, capacity: Json, names: list[str]) -> None:
    lists = {
        "nodes": NODES,
        "pvcs": [claim("data", storage_class="dynamic")],
        "storageclasses": [DYNAMIC],
        "csidrivers": [{"metadata": {"name": "csi.example.org"}, "spec": {"storageCapacity": True}}],
        "csistoragecapacities": [{"metadata": {"name": "c"}, "storageClassName": "dynamic", **capacity}],
    }
    found = reasons(pod(volumes=mounts("data")), **lists)
    assert [name for name, why in found.items() if not why] == names
    assert {why[0] for why in found.values() if why} <= {volume_binding.NOT_ENOUGH_SPACE}


def test_several_reasons_at_once() -> None:
    lists = {
        "nodes": NODES,
        "pvcs": [claim("bound", volume="pv"), claim("waiting", storage_class="manual")],
        "pvs": [volume("pv", terms=IN_X)],
        "storageclasses": [MANUAL],
    }
    found = reasons(pod(volumes=mounts("bound", "waiting")), **lists)
    assert found["b"] == [volume_binding.BIND_CONFLICT, volume_binding.NODE_CONFLICT]


ZONES: list[tuple[str, Json, list[str]]] = [
    ("x", {ZONE: "x"}, ["a", "old", "bare"]),
    ("x or y", {ZONE: "x__y"}, ["a", "b", "old", "bare"]),
    ("x, by its old name", {BETA_ZONE: "x"}, ["a", "old", "bare"]),
    ("a list with a gap is ignored", {ZONE: "z__"}, ["a", "b", "old", "bare"]),
    ("nowhere", {ZONE: "z"}, ["bare"]),
]


@pytest.mark.parametrize(("_what", "labels", "names"), ZONES, ids=[case[0] for case in ZONES])
def test_zones_in_the_labels_of_a_volume(_what: str, labels: Json, names: list[str]) -> None:
    nodes = [*NODES, node("old", **{BETA_ZONE: "x", ZONE: "x"}), node("bare")]
    lists = {"nodes": nodes, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv", labels=labels)]}
    found = reasons(pod(volumes=mounts("data")), **lists)
    assert [name for name, why in found.items() if not why] == names
    assert {why[0] for why in found.values() if why} <= {volume_zone.REASON}


def test_an_exclusive_claim_in_use_anywhere_closes_every_node() -> None:
    lists = {"nodes": NODES, "pvcs": [claim("data", volume="pv", mode="ReadWriteOncePod")], "pvs": [volume("pv")]}
    user = pod("p", on="a", volumes=mounts("data"))
    wanted = pod(volumes=mounts("data"))
    assert reasons(wanted, **lists, pods=[user]) == {
        "a": [volume_restrictions.IN_USE],
        "b": [volume_restrictions.IN_USE],
    }
    assert fit(wanted, **lists, pods=[pod("p", on="gone", volumes=mounts("data"))]) == ["a", "b"]


def test_read_write_once_is_about_nodes_and_not_checked() -> None:
    lists = {"nodes": NODES, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv")]}
    assert fit(pod(volumes=mounts("data")), **lists, pods=[pod("p", on="a", volumes=mounts("data"))]) == ["a", "b"]


DISKS: list[tuple[str, Json, Json, bool]] = [
    ("gce", {"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, False),
    (
        "gce, read by all",
        {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        True,
    ),
    (
        "aws, even if read",
        {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
        {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
        False,
    ),
    ("iscsi", {"iscsi": {"iqn": "d"}}, {"iscsi": {"iqn": "d"}}, False),
    ("another iscsi", {"iscsi": {"iqn": "d"}}, {"iscsi": {"iqn": "e"}}, True),
    (
        "rbd with a monitor in common",
        {"rbd": {"monitors": ["1", "2"], "pool": "p", "image": "i"}},
        {"rbd": {"monitors": ["2"], "pool": "p", "image": "i"}},
        False,
    ),
    (
        "rbd of another cluster",
        {"rbd": {"monitors": ["1"], "pool": "p", "image": "i"}},
        {"rbd": {"monitors": ["2"], "pool": "p", "image": "i"}},
        True,
    ),
]


@pytest.mark.parametrize(("_what", "used", "wanted", "fits"), DISKS, ids=[case[0] for case in DISKS])
def test_disks_named_in_pods(_what: str, used: Json, wanted: Json, fits: bool) -> None:
    user = pod("p", on="a", volumes=[{"name": "v", **used}])
    found = reasons(pod(volumes=[{"name": "v", **wanted}]), nodes=NODES, pods=[user])
    assert found == {"a": [] if fits else [volume_restrictions.DISK_CONFLICT], "b": []}


GCE = {"gcePersistentDisk": {"pdName": "d"}}
MIGRATED = [
    {
        "metadata": {
            "name": "a",
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"},
        },
        "spec": {},
    }
]


def test_a_volume_of_a_built_in_type_is_found_in_the_words_of_its_driver() -> None:
    nodes = [node("a", **{ZONE: "x", "topology.gke.io/zone": "q"}), node("b", **{ZONE: "x"})]
    lists = {"nodes": nodes, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv", terms=IN_X, **GCE)]}
    assert fit(pod(volumes=mounts("data")), **lists) == ["a", "b"]
    assert reasons(pod(volumes=mounts("data")), **lists, csinodes=MIGRATED) == {
        "a": [volume_binding.NODE_CONFLICT],
        "b": [],
    }


def test_one_that_cannot_be_translated_fails_the_pod() -> None:
    lists = {"nodes": NODES, "pvcs": [claim("data", volume="pv")], "pvs": [volume("pv", labels={ZONE: "x__y"}, **GCE)]}
    assert fit(pod(volumes=mounts("data")), **lists) == ["a", "b"]
    answer = verdict({**lists, "csinodes": MIGRATED}, pod(volumes=mounts("data")))
    assert "pv cannot be translated for its CSI driver" in answer["error"]
