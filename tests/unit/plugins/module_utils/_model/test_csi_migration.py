# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CSI drivers call volumes of built-in types, and the zones they are in."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.csi_migration import (
    CsiVolume,
    inline_volume,
    migration,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import node_selector_term

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
GKE_ZONE = "topology.gke.io/zone"
GCE = {"gcePersistentDisk": {"pdName": "d"}}

INLINE: list[tuple[dict[str, Any], CsiVolume | None]] = [
    ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, CsiVolume("ebs.csi.aws.com", "vol-1")),
    ({"awsElasticBlockStore": {"volumeID": "aws://eu-west-1a/vol-1"}}, CsiVolume("ebs.csi.aws.com", "vol-1")),
    ({"azureDisk": {"diskURI": "/d"}}, CsiVolume("disk.csi.azure.com", "/d")),
    ({"cinder": {"volumeID": "d"}}, CsiVolume("cinder.csi.openstack.org", "d")),
    ({"portworxVolume": {"volumeID": "d"}}, CsiVolume("pxd.portworx.com", "d")),
    (GCE, CsiVolume("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
    ({"azureFile": {"shareName": "s"}}, None),
    ({"emptyDir": {}}, None),
]


@pytest.mark.parametrize(("source", "expected"), INLINE)
def test_volumes_named_in_pods(source: dict[str, Any], expected: CsiVolume | None) -> None:
    assert inline_volume(source) == expected


PLACES = [
    ("a-b-c", "zones/a-b-c"),
    ("a-b-c__a-b-d", "regions/a-b"),
]


@pytest.mark.parametrize(("zones", "place"), PLACES)
def test_a_disk_of_google_is_named_by_its_place(zones: str, place: str) -> None:
    found = migration(GCE, {ZONE: zones}, None)
    assert found is not None
    assert found.csi == CsiVolume("pd.csi.storage.gke.io", f"projects/UNSPECIFIED/{place}/disks/d")


@pytest.mark.parametrize("zones", ["a-b-c__x-y-z", "a__b"])
def test_zones_without_a_common_region_cannot_be_translated(zones: str) -> None:
    found = migration(GCE, {ZONE: zones}, None)
    assert found is not None
    assert found.csi is None
    assert "have no common region" in found.error


def terms(*keys: str) -> tuple[Any, ...]:
    expressions = [{"key": key, "operator": "In", "values": ["x"]} for key in keys]
    return (node_selector_term({"matchExpressions": expressions}),)


TOPOLOGIES: list[tuple[str, dict[str, str], Any, Any]] = [
    ("renamed", {}, terms(ZONE, "disk"), terms(GKE_ZONE, "disk")),
    ("renamed, and the region modernised", {}, terms(OLD_ZONE, OLD_REGION), terms(GKE_ZONE, REGION)),
    ("a modern region stays", {}, terms(ZONE, REGION), terms(GKE_ZONE, REGION)),
    ("conditions come before labels", {ZONE: "y"}, terms(ZONE), terms(GKE_ZONE)),
    ("added from the labels", {ZONE: "x"}, None, terms(GKE_ZONE)),
    ("added from old labels", {OLD_ZONE: "x"}, None, terms(GKE_ZONE)),
    ("added to what there is", {ZONE: "x"}, terms("disk"), terms("disk", GKE_ZONE)),
    ("no valid zone in the labels", {ZONE: "__"}, None, None),
    ("nothing known", {}, None, None),
]


@pytest.mark.parametrize(("_what", "labels", "given", "expected"), TOPOLOGIES, ids=[case[0] for case in TOPOLOGIES])
def test_zones_in_the_words_of_the_driver(_what: str, labels: dict[str, str], given: Any, expected: Any) -> None:
    found = migration(GCE, labels, given)
    assert found is not None
    assert found.topology == expected


def test_drivers_without_zones_of_their_own_keep_the_conditions() -> None:
    found = migration({"azureDisk": {"diskURI": "/d"}}, {ZONE: "y"}, terms(ZONE))
    assert found is not None
    assert found.topology == terms(ZONE)


def test_other_volumes_have_not_migrated() -> None:
    assert migration({"csi": {"driver": "d", "volumeHandle": "h"}}, {}, None) is None
