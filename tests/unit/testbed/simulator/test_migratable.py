# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from testbed.simulator.facts import Vmi
from testbed.simulator.migratable import conditions, method
from unit.testbed.simulator.builders import vmi

CLAIM = {"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}
POD_NETWORK = [{"name": "default", "pod": {}}]


def built(spec: dict[str, Any], **status: Any) -> Vmi:
    raw = vmi(**status)
    raw["spec"] = {"domain": {"devices": {}}, **spec}
    return Vmi(raw)


def devices(**devices: Any) -> dict[str, Any]:
    return {"domain": {"devices": devices}}


def claim(*modes: str) -> dict[str, Any]:
    return {"volumeStatus": [{"name": "disk", "persistentVolumeClaimInfo": {"accessModes": list(modes)}}]}


@pytest.mark.parametrize(
    ("spec", "status", "reason"),
    [
        ({}, {}, None),
        (devices(interfaces=[{"name": "default", "masquerade": {}}]) | {"networks": POD_NETWORK}, {}, None),
        (
            devices(interfaces=[{"name": "default", "bridge": {}}]) | {"networks": POD_NETWORK},
            {},
            "InterfaceNotLiveMigratable",
        ),
        (devices(gpus=[{"name": "gpu"}]), {}, "HostDeviceNotLiveMigratable"),
        ({"domain": {"launchSecurity": {"sev": {}}}}, {}, "SEVNotLiveMigratable"),
        ({"volumes": [CLAIM]}, claim("ReadWriteMany"), None),
        ({"volumes": [CLAIM]}, claim("ReadWriteOnce"), "DisksNotLiveMigratable"),
        ({"volumes": [CLAIM]}, {}, "DisksNotLiveMigratable"),
        ({"volumes": [{"name": "disk", "hostDisk": {"path": "/x"}}]}, {}, "DisksNotLiveMigratable"),
        ({"volumes": [{"name": "disk", "hostDisk": {"path": "/x", "shared": True}}]}, {}, None),
    ],
)
def test_live_migratable(spec: dict[str, Any], status: dict[str, Any], reason: str | None) -> None:
    live = conditions(built(spec, **status))[0]
    assert (live["type"], live["status"], live.get("reason")) == ("LiveMigratable", str(reason is None), reason)


def test_disks_stand_not_against_a_storage_migration() -> None:
    live, storage = conditions(built({"volumes": [CLAIM]}, **claim("ReadWriteOnce")))
    assert (live["status"], storage["status"]) == ("False", "True")


def test_local_disks_are_copied() -> None:
    assert method(built({"volumes": [{"name": "disk", "emptyDisk": {}}]})) == "BlockMigration"
    cdrom = {**devices(disks=[{"name": "disk", "cdrom": {}}]), "volumes": [{"name": "disk", "containerDisk": {}}]}
    assert method(built(cdrom)) == "LiveMigration"
