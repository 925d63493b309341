# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods mount: disks of their own, claims in every state, and the storage around them."""

from __future__ import annotations

from differential.cases.dice import Dice, Json

# The volumes of which a node holds only so many, or which one pod alone may write.
DRIVER = "csi.example.org"
# Around what claims ask for.
SIZES = ("1Gi", "1073741825", "1073741826", "2Gi", "2147483649", "10Gi")
MODES = ("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")


def pod_volumes(dice: Dice, claims: list[str]) -> list[Json]:
    found: list[Json] = []
    if dice.feature("claims"):
        for number, claim in enumerate(dice.some([*claims, "missing"] if dice.chance(0.1) else claims, 3)):
            source = {"claimName": claim, **({"readOnly": True} if dice.chance(0.1) else {})}
            found.append({"name": f"claim{number}", "persistentVolumeClaim": source})
    if dice.feature("inline"):
        found.append({"name": "inline", **inline(dice)})
    if dice.feature("generic"):
        template = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        found.append({"name": "generic", "ephemeral": {"volumeClaimTemplate": {"spec": template}}})
    return found


def inline(dice: Dice) -> Json:
    """Disks named in the pod itself, of which VolumeRestrictions knows who may share them."""
    only = {"readOnly": True} if dice.chance(0.4) else {}
    return dice.pick(
        (
            {"gcePersistentDisk": {"pdName": dice.pick(("d1", "d2")), **only}},
            {"awsElasticBlockStore": {"volumeID": dice.pick(("d1", "d2")), **only}},
            {
                "iscsi": {
                    "targetPortal": "t",
                    "iqn": dice.pick(("iqn.2001-04.example:a", "iqn.2001-04.example:b")),
                    "lun": 0,
                    **only,
                }
            },
            {"rbd": {"monitors": dice.some(("m1", "m2"), 2, 1), "image": dice.pick(("i", "j")), "pool": "p", **only}},
            {"csi": {"driver": DRIVER}},
        )
    )


def csi_nodes(dice: Dice, names: list[str]) -> list[Json]:
    found = []
    for name in names:
        if dice.chance(0.15):
            continue
        driver: Json = {"name": DRIVER, "nodeID": name, "topologyKeys": ["topology.kubernetes.io/zone"]}
        if dice.chance(0.8):
            driver["allocatable"] = {"count": dice.number(0, 3)}
        drivers = [driver, {"name": "pd.csi.storage.gke.io", "nodeID": name, "topologyKeys": None}][: dice.number(1, 2)]
        migrated = {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}}
        metadata = {"name": name, **(migrated if dice.chance(0.7) else {})}
        found.append({"metadata": metadata, "spec": {"drivers": drivers}})
    return found


def csi_drivers(dice: Dice) -> list[Json]:
    return [{"metadata": {"name": DRIVER}, "spec": {"storageCapacity": dice.chance(0.5), "attachRequired": True}}]


def capacities(dice: Dice) -> list[Json]:
    """How much a class can still give, by zone."""
    found = []
    for zone in ("e0", "e1", "e2"):
        if dice.chance(0.7):
            body: Json = {
                "metadata": {"name": f"capacity-{zone}", "namespace": "blue"},
                "storageClassName": dice.pick(("late", "zoned")),
                "nodeTopology": {"matchLabels": {"topology.kubernetes.io/zone": zone}},
                "capacity": dice.pick(SIZES),
            }
            if dice.chance(0.3):
                body["maximumVolumeSize"] = dice.pick(SIZES)
            found.append(body)
    return found


def attachments(dice: Dice, nodes: list[str], volumes: list[str]) -> list[Json]:
    return [
        {
            "metadata": {"name": f"attachment-{number}"},
            "spec": {
                "attacher": DRIVER,
                "nodeName": dice.pick([*nodes, "vanished"]),
                "source": {"persistentVolumeName": dice.pick(volumes)},
            },
            "status": {"attached": True},
        }
        for number in range(dice.number(0, 3))
        if volumes
    ]
