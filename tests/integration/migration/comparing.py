# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target pods that the collection foretells for migrations, against those that KubeVirt makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import MIGRATION_JOB
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespaces
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import Workloads
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod

from testbed.api import Api, Object, resource_path

_LISTS = {
    "nodes": ("v1", "nodes"),
    "pods": ("v1", "pods"),
    "vmis": ("kubevirt.io/v1", "virtualmachineinstances"),
    "kubevirts": ("kubevirt.io/v1", "kubevirts"),
    "namespaces": ("v1", "namespaces"),
    "networkattachmentdefinitions": ("k8s.cni.cncf.io/v1", "network-attachment-definitions"),
    "limitranges": ("v1", "limitranges"),
    "resourcequotas": ("v1", "resourcequotas"),
    "runtimeclasses": ("node.k8s.io/v1", "runtimeclasses"),
}
# Not the scheduler's concern; the command holds a timeout that KubeVirt draws by lot.
_LEFT_OUT = frozenset({"command", "securityContext"})
_NEW_CLAIM = "vm-state"
# The volume of a service account's token, to which the API server gives a name by lot.
_TOKEN = re.compile(r"\bkube-api-access-\w+")


def read(api: Api) -> dict[str, list[Object]]:
    return {name: api.items(resource_path(*where)) for name, where in _LISTS.items()}


class Foresight:
    """Lists of a cluster, and what they let foretell."""

    def __init__(self, lists: Mapping[str, list[Object]]) -> None:
        self._workloads = Workloads(lists)
        self._configuration = configuration(lists)
        self._namespaces = Namespaces(lists)

    def target_pod(self, vmi: Object, added: Mapping[str, str]) -> Object | NoTargetPod:
        source = self._workloads.source_pod(vmi)
        assert source is not None
        node = self._workloads.node(vmi["status"]["nodeName"])
        return target_pod(vmi, source, node, self._configuration, self._namespaces.of(vmi), added)


def differences(foretold: Object, real: Object) -> list[str]:
    """One line for each field that differs: all of a pod's specification, and what the scheduler makes of the pod.

    A claim that KubeVirt makes anew cannot be foretold, and its volume not be compared.
    """
    known = {volume["name"] for volume in foretold["spec"]["volumes"]}
    volumes = [volume for volume in real["spec"]["volumes"] if volume["name"] in known or volume["name"] != _NEW_CLAIM]
    expected, found = _comparable(foretold), _comparable({**real, "spec": {**real["spec"], "volumes": volumes}})
    return [f"{path}: foretold {one!r}, is {other!r}" for path, one, other in _walk("", expected, found)]


def _comparable(raw: Object) -> Object:
    raw = json.loads(_TOKEN.sub("kube-api-access", json.dumps(raw)))
    spec = _without(raw["spec"], _LEFT_OUT)
    spec["containers"] = [_without(container, _LEFT_OUT) for container in spec["containers"]]
    labels = _without(raw["metadata"]["labels"], {MIGRATION_JOB})
    parsed = pod({"metadata": {**raw["metadata"], "uid": "", "name": "", "labels": labels}, "spec": spec})
    return {"labels": labels, "spec": spec, "parsed": asdict(parsed)}


def _without(fields: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _walk(path: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _walk(f"{path}.{key}", one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _walk(f"{path}[{number}]", left, right)
    elif one != other and (one or other):
        yield path, one, other
