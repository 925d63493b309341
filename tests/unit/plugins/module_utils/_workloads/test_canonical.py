# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways of saying the same compare equal, and nothing else does; a diff shows what differs alone."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.canonical import (
    canonical,
    complete,
    in_words_of,
)

from unit.plugins.module_utils._workloads.wording import Json


def spec(domain: Json, **fields: object) -> Json:
    return {"replicas": 1, "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"domain": domain, **fields}}}


# As a user writes it, and as virt-controller writes it back.
SAME: list[tuple[Json, Json]] = [
    (spec({"devices": {}}), spec({"devices": {}, "resources": {}})),
    (spec({"memory": {"guest": "2048Mi"}}), spec({"memory": {"guest": "2Gi"}})),
    (spec({"resources": {"requests": {"cpu": 2}}}), spec({"resources": {"requests": {"cpu": "2"}}})),
    (spec({"resources": {"limits": {"memory": "1.5Gi"}}}), spec({"resources": {"limits": {"memory": "1536Mi"}}})),
    (
        spec({}, volumes=[{"name": "e", "emptyDisk": {"capacity": "1024Mi"}}]),
        spec({}, volumes=[{"name": "e", "emptyDisk": {"capacity": "1Gi"}}]),
    ),
    (spec({"cpu": None}), spec({})),
    (spec({"devices": {"disks": []}}, nodeSelector={}, tolerations=[]), spec({})),
    (spec({"features": {}}), spec({"features": {"acpi": {}}})),
    (spec({"cpu": {"cores": 2, "dedicatedCpuPlacement": False}}), spec({"cpu": {"cores": 2}})),
    ({"replicas": 0, "paused": False}, {"replicas": 0}),
    (
        spec({}, volumes=[{"hostDisk": {"path": "/d"}}]),
        spec({}, volumes=[{"hostDisk": {"path": "/d", "capacity": "0"}}]),
    ),
    (
        spec({"devices": {"disks": [{"disk": {"bus": "virtio", "readonly": False}}]}}),
        spec({"devices": {"disks": [{"disk": {"bus": "virtio"}}]}}),
    ),
]


@pytest.mark.parametrize(("given", "stored"), SAME)
def test_the_same(given: Json, stored: Json) -> None:
    assert canonical(given) == canonical(stored)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (spec({"memory": {"guest": "2Gi"}}), spec({"memory": {"guest": "2G"}})),
        (spec({}, volumes=[{"name": "a"}]), spec({}, volumes=[])),
        (spec({"devices": {"rng": {}}}), spec({"devices": {}})),
        # An empty object says that there is something, even if nothing more is to be said about it.
        (spec({"features": {}}), spec({})),
        (spec({"devices": {"disks": [{"cdrom": {"readonly": False}}]}}), spec({"devices": {"disks": [{"cdrom": {}}]}})),
        (spec({"devices": {"autoattachPodInterface": False}}), spec({})),
        (spec({}, nodeSelector={"paused": "0"}), spec({})),
        ({"replicas": 0}, {}),
        # Only amounts are read as amounts.
        (spec({}, hostname="1000"), spec({}, hostname="1k")),
        (spec({"memory": {"guest": "much"}}), spec({"memory": {"guest": "more"}})),
    ],
)
def test_not_the_same(one: Json, other: Json) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(("given", "stored"), SAME[1:4])
def test_a_diff_shows_what_differs_alone(given: Json, stored: Json) -> None:
    before, after = complete(stored), complete({**given, "replicas": 2})
    assert in_words_of(before, after) == {**before, "replicas": 2}
