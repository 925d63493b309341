# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster made of objects alone: what virt-controller, the scheduler and virt-handler would make of them.

Pods are foretold, placed by the project's own model of the scheduler, and never moved again. Tests on a testbed hold
the same objects against the real parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import vmi_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod as parsed
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import cluster_state
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import explain

from testbed.api import Object
from testbed.simulator import migratable
from testbed.simulator.facts import Vmi

LIST_OF = {kind.kind: kind.name for kind in KINDS}
Lists = dict[str, list[Object]]


def world(objects: Iterable[Object]) -> Lists:
    """The lists of a snapshot."""
    lists: defaultdict[str, list[Object]] = defaultdict(list)
    for obj in objects:
        if obj["kind"] == "Deployment":
            lists["replicasets"].append(_replica_set(obj))
        else:
            lists[LIST_OF[obj["kind"]]].append(obj)
    _bind(lists)
    config, namespaces = configuration(lists), Namespaces(lists)
    made: list[tuple[Object | None, Object]] = []
    for item in (*lists["vms"], *lists["vmireplicasets"]):
        for number in range(item["spec"].get("replicas", 1)):
            vmi = vmi_of(item, config, number)
            lists["vmis"].append(vmi)
            made.append((vmi, launcher_pod(vmi, config, namespaces.of(vmi))))
    for owner in lists["replicasets"]:
        made += [(None, _pod(owner, number)) for number in range(owner["spec"]["replicas"])]
    # Who needs a neighbour comes after it.
    _run(sorted(made, key=lambda entry: _needs_company(entry[1])), lists)
    return dict(lists)


def _bind(lists: Lists) -> None:
    """Claims to the volumes that were made for them, as the volume controller does."""
    claims = {(claim["metadata"]["namespace"], claim["metadata"]["name"]): claim for claim in lists["pvcs"]}
    for volume in lists["pvs"]:
        wanted = volume["spec"]["claimRef"]
        claim = claims[wanted["namespace"], wanted["name"]]
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["status"] = volume["status"] = {"phase": "Bound"}


def _run(made: list[tuple[Object | None, Object]], lists: Lists) -> None:
    state = cluster_state(lists)
    for vmi, pod in made:
        pod["metadata"].setdefault("uid", f"uid-{pod['metadata']['namespace']}-{pod['metadata']['name']}")
        lists["pods"].append(pod)
        said = explain(parsed(pod), state, scores=True)
        served = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
        if not served or not said["fit"]:
            pod["status"] = {"phase": "Pending"}
            continue
        node = max(said["scores"], key=lambda name: said["scores"][name])
        pod["spec"]["nodeName"] = node
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        state.add(occupant(pod), node)
        if vmi is not None:
            vmi["status"] = _status(vmi, node, lists)


def _status(vmi: Object, node: str, lists: Lists) -> Object:
    namespace = vmi["metadata"]["namespace"]
    claims = (claim for claim in lists["pvcs"] if claim["metadata"]["namespace"] == namespace)
    modes = {claim["metadata"]["name"]: claim["spec"]["accessModes"] for claim in claims}
    volumes = [
        {"name": volume["name"], "persistentVolumeClaimInfo": {"accessModes": modes[claim["claimName"]]}}
        for volume in vmi["spec"].get("volumes", ())
        if (claim := volume.get("persistentVolumeClaim"))
    ]
    status: dict[str, Any] = {"phase": "Running", "nodeName": node, "selinuxContext": "none", "volumeStatus": volumes}
    return {**status, "conditions": migratable.conditions(Vmi({**vmi, "status": status}))}


def _replica_set(deployment: Object) -> Object:
    metadata = deployment["metadata"]
    owner = {"kind": "Deployment", "name": metadata["name"], "controller": True}
    names = {"name": f"{metadata['name']}-5d9", "namespace": metadata["namespace"], "uid": f"uid-{metadata['name']}"}
    return {"kind": "ReplicaSet", "metadata": {**names, "ownerReferences": [owner]}, "spec": deployment["spec"]}


def _pod(owner: Object, number: int) -> Object:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": metadata["name"], "controller": True}
    names = {"name": f"{metadata['name']}-{number}", "namespace": metadata["namespace"]}
    labels = template["metadata"]["labels"]
    return {
        "metadata": {**names, "labels": labels, "ownerReferences": [reference]},
        "spec": {"schedulerName": "default-scheduler", **template["spec"]},
    }


def _needs_company(pod: Object) -> bool:
    wishes = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    return "requiredDuringSchedulingIgnoredDuringExecution" in wishes
