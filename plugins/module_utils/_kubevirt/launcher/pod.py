# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher pod of a VMI that does not run: what virt-controller would create, as the API server would store it.

Follows renderLaunchManifest in pkg/virt-controller/services/template.go of KubeVirt 1.8. It has what the scheduler, a
drain and a quota look at, and no more: no commands, probes, ports, security contexts or annotations.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import pod_labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.admission import (
    admitted,
    with_defaults_of_namespace,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.containers import (
    HookError,
    containers,
    hooks,
    init_containers,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.devices import forbidden_devices
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.resources import compute_resources
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.volumes import volumes
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    JsonObject,
    Object,
)

_GRACE_SECONDS = 30
# virt-launcher is given longer than the guest, and the pod longer than virt-launcher.
_GRACE_PADDING = 30


class LauncherError(ExpectedError, ValueError):
    """KubeVirt cannot make the pod: one sentence that says for which VMI, why, and what to do."""


def launcher_pod(vmi: Object, configuration: Configuration, namespace: Namespace) -> JsonObject:
    """A v1.Pod for a VMI of this namespace as `vmi_of` gives it. Parts of the VMI are shared, not copied.

    Some 200 microseconds. Raises LauncherError, `QuantityError`, `SelectorError`.
    """
    vmi = _with_topology_hints(vmi, configuration, namespace)
    spec = vmi["spec"]
    _check(vmi, configuration)
    image = namespace.launcher_image
    sidecars = _hooks(vmi, configuration)
    pod_spec: JsonObject = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _grace_seconds(spec) + _GRACE_PADDING,
        "nodeSelector": node_selector(vmi, configuration),
        "affinity": affinity(vmi),
        "tolerations": spec.get("tolerations") or [],
        "topologySpreadConstraints": spec.get("topologySpreadConstraints") or [],
        "schedulerName": spec.get("schedulerName") or "",
        "priorityClassName": spec.get("priorityClassName") or "",
        "runtimeClassName": configuration.runtime_class,
        "resourceClaims": spec.get("resourceClaims") or [],
        "containers": containers(vmi, configuration, sidecars, compute_resources(vmi, configuration, namespace), image),
        "initContainers": init_containers(vmi, configuration, image),
        "volumes": volumes(vmi, configuration, sidecars, namespace),
    }
    metadata = {
        "name": f"virt-launcher-{vmi['metadata']['name']}",
        "namespace": vmi["metadata"]["namespace"],
        "labels": pod_labels(vmi),
        "ownerReferences": [_owner(vmi)],
    }
    pod_spec = {name: value for name, value in pod_spec.items() if value not in ("", [], {})}
    return admitted({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec}, namespace)


def rendered_containers(
    vmi: Object, configuration: Configuration, namespace: Namespace
) -> dict[str, dict[str, Object]]:
    """Of the same pod only the containers: by field of the pod spec, and by name. Raises likewise."""
    compute = compute_resources(vmi, configuration, namespace)
    spec = {
        "containers": containers(vmi, configuration, _hooks(vmi, configuration), compute, ""),
        "initContainers": init_containers(vmi, configuration, ""),
    }
    stored = with_defaults_of_namespace(spec, namespace)
    return {field: {entry["name"]: entry for entry in found} for field, found in stored.items()}


def _grace_seconds(spec: Object) -> int:
    given = spec.get("terminationGracePeriodSeconds")
    return _GRACE_SECONDS if given is None else int(given)


def _check(vmi: Object, configuration: Configuration) -> None:
    if forbidden := forbidden_devices(vmi, configuration):
        raise LauncherError(
            f"KubeVirt makes no pod for {title(vmi)}: {', '.join(forbidden)} is not among the permittedHostDevices of "
            "its configuration. Permit it there, or take it out of the VM."
        )


def _hooks(vmi: Object, configuration: Configuration) -> Any:
    try:
        return hooks(vmi, configuration)
    except HookError as error:
        raise LauncherError(f"KubeVirt makes no pod for {title(vmi)}: {error}. Correct the VM.") from error


def _owner(vmi: Object) -> JsonObject:
    metadata = vmi["metadata"]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": VMI,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _with_topology_hints(vmi: Object, configuration: Configuration, namespace: Namespace) -> Object:
    """The VMI with the hint that KubeVirt notes in its status before it makes the pod, if it needs one.

    It says at which frequency the time stamp counter is to run: one that the cluster's nodes can offer. Follows
    pkg/virt-controller/watch/topology/hinter.go and tsc.go.
    """
    status = vmi.get("status") or {}
    if status.get("topologyHints") or vmi["spec"].get("architecture") != "amd64" or not _needs_frequency(vmi):
        return vmi
    frequency = configuration.minimum_tsc_frequency
    if frequency is None:
        frequency = namespace.tsc_frequency
    return {**vmi, "status": {**status, "topologyHints": {"tscFrequency": frequency}}}


def _needs_frequency(vmi: Object) -> bool:
    domain = traits.domain(vmi)
    for feature in (domain.get("cpu") or {}).get("features") or ():
        if feature["name"] == "invtsc" and feature.get("policy") in ("require", "force"):
            return True
    hyperv = (domain.get("features") or {}).get("hyperv") or {}
    return bool((hyperv.get("reenlightenment") or {}).get("enabled"))
