# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes, volumes and claims that belong together, or nearly."""

from __future__ import annotations

from differential.cases import vocabulary as words
from differential.cases.dice import Dice, Json
from differential.cases.volumes import DRIVER, MODES

CLASSES = ("late", "zoned", "now", "local")
GIB = 1 << 30
SIZES = (GIB, 2 * GIB, 5 * GIB)


def classes() -> list[Json]:
    """`late` waits for its pod, `zoned` is made in two zones only, `now` does not wait, `local` makes no volumes."""
    zones = [{"matchLabelExpressions": [{"key": words.ZONE, "values": ["e0", "e1"]}]}]
    wait = {"volumeBindingMode": "WaitForFirstConsumer"}
    return [
        {"metadata": {"name": "late"}, "provisioner": DRIVER, **wait},
        {"metadata": {"name": "zoned"}, "provisioner": DRIVER, "allowedTopologies": zones, **wait},
        {"metadata": {"name": "now"}, "provisioner": DRIVER},
        {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **wait},
    ]


def storage(dice: Dice, nodes: list[str]) -> tuple[list[Json], list[Json]]:
    """(claims, volumes) of the case."""
    if dice.feature("binding"):
        return rivals(dice, nodes)
    volumes = [volume(dice, f"v{number}", nodes) for number in range(dice.number(2, 8))]
    claims = []
    for number in range(dice.number(3, 9)):
        bound = dice.pick(volumes) if dice.chance(0.5) else None
        claims.append(claim(dice, f"claim{number}", bound))
    return claims, volumes


def rivals(dice: Dice, nodes: list[str]) -> tuple[list[Json], list[Json]]:
    """Unbound claims and volumes of nearly the same size, so that one pod's claims compete for the same volumes."""
    volumes = [volume(dice, f"v{number}", nodes) for number in range(dice.number(3, 8))]
    claims = [claim(dice, f"claim{number}", None) for number in range(9)]
    for one in (*volumes, *claims):
        one["spec"] |= {"storageClassName": "local", "volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"]}
        one["metadata"].pop("deletionTimestamp", None)
    for number, one in enumerate(volumes):
        one["spec"]["capacity"] = {"storage": str(GIB + number)}
        one["status"]["phase"] = "Available"
    for one in claims:
        one["spec"]["resources"] = {"requests": {"storage": str(GIB + dice.number(0, len(volumes)))}}
    for one, reserved in zip(claims, dice.some(volumes, 3), strict=False):
        # Kept for a claim before either is bound; the claim's identity may be left open.
        names = ("name", "namespace", "uid") if dice.chance(0.5) else ("name", "namespace")
        reserved["spec"]["claimRef"] = {name: one["metadata"][name] for name in names}
    return claims, volumes


def volume(dice: Dice, name: str, nodes: list[str]) -> Json:
    """No two of a case have the same size: of such, upstream takes whichever comes first in its unordered list."""
    spec: Json = {
        "capacity": {"storage": str(dice.pick(SIZES) + int(name[1:]))},
        "accessModes": dice.some(MODES[1:4], 2, 1) if dice.chance(0.8) else ["ReadWriteOncePod"],
        "storageClassName": dice.pick((*CLASSES, "local", "")),
        "volumeMode": dice.pick(("Filesystem",) * 5 + ("Block",)),
        **source(dice, name, nodes),
    }
    metadata: Json = {"name": name, "uid": f"pv-{name}", "labels": zone_labels(dice)}
    if dice.chance(0.3):
        metadata["labels"]["kind"] = dice.pick(("fast", "slow"))
    if dice.chance(0.05):
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pv-protection"]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": dice.pick(("Available", "Available", "Released"))}}


def source(dice: Dice, name: str, nodes: list[str]) -> Json:
    form = dice.number(0, 6)
    if form == 0 and nodes:
        return {"local": {"path": "/disk"}, "nodeAffinity": affinity(words.HOST, dice.some(nodes, 2, 1))}
    if form == 1:
        return {"gcePersistentDisk": {"pdName": name}}
    csi: Json = {"csi": {"driver": DRIVER, "volumeHandle": dice.pick((name, "shared-handle"))}}
    if form == 6 and nodes:
        # Of the node, upstream shows a volume's affinity the labels alone: a term on its name matches nowhere.
        field = {"key": "metadata.name", "operator": dice.pick(("In", "NotIn")), "values": [dice.pick(nodes)]}
        return {**csi, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
    if form in (2, 3):
        return {**csi, "nodeAffinity": affinity(words.ZONE, dice.some(("e0", "e1", "e2"), 2, 1))}
    return csi


def affinity(key: str, values: list[str]) -> Json:
    return {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]}
    }


def zone_labels(dice: Dice) -> dict[str, str]:
    """Labels of volumes that older clusters put in zones; one volume may be in several."""
    found = {}
    if dice.chance(0.3):
        key = dice.pick((words.ZONE, words.OLD_ZONE, words.REGION))
        found[key] = dice.pick(("e0", "e1", "e0__e1", "e2__e1", "n0", "n1__n0"))
    return found


def claim(dice: Dice, name: str, bound: Json | None) -> Json:
    spec: Json = {
        "accessModes": [dice.pick(MODES)],
        "resources": {"requests": {"storage": str(dice.pick(SIZES) + dice.number(0, 5))}},
        "storageClassName": dice.pick(("late", "late", "zoned", "now", "local", "local", "", "unknown")),
        "volumeMode": dice.pick(("Filesystem",) * 5 + ("Block",)),
    }
    metadata: Json = {"name": name, "namespace": dice.pick(words.NAMESPACES), "uid": f"claim-{name}"}
    phase = "Pending"
    if bound is not None:
        phase = bind(dice, metadata, spec, bound)
    elif dice.chance(0.2):
        spec["selector"] = {"matchLabels": {"kind": dice.pick(("fast", "slow"))}}
    elif dice.chance(0.2):
        metadata["annotations"] = {"volume.kubernetes.io/selected-node": dice.pick(("n0", "n1"))}
    if dice.chance(0.06):
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def bind(dice: Dice, metadata: Json, spec: Json, volume: Json) -> str:
    """Tie a claim to a volume; the answer is the claim's phase."""
    spec["volumeName"] = volume["metadata"]["name"] if dice.chance(0.93) else "vanished"
    if dice.chance(0.9):
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    if dice.chance(0.9):
        reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
        volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **reference}
        volume["status"]["phase"] = "Bound"
    return "Bound" if dice.chance(0.95) else "Lost"


def generic_claims(dice: Dice, pods: list[Json]) -> list[Json]:
    """The claims that a controller makes for pods' own volumes: made already or not, or another's of the same name."""
    found = []
    for pod in pods:
        if any("ephemeral" in volume for volume in pod["spec"].get("volumes", [])) and dice.chance(0.7):
            meta: Json = {"name": f"{pod['metadata']['name']}-generic", "namespace": pod["metadata"]["namespace"]}
            if dice.chance(0.8):
                owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "controller": True}
                meta["ownerReferences"] = [{**owner, "uid": pod["metadata"]["uid"]}]
            made = claim(dice, meta["name"], None)
            found.append({**made, "metadata": {**made["metadata"], **meta}})
    return found
