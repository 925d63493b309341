# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a foretold launcher pod leaves open, as the lists do not tell: never silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.volumes import (
    STATE,
    claims,
    plugged_volumes,
    state_claim,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.target_labels import doubtful_labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.target_resources import are_known

Object = Mapping[str, Any]
Lists = Mapping[str, Sequence[Object]]

_CLASSES = {"PriorityClass": "priorityclasses", "RuntimeClass": "runtimeclasses"}
# By these annotations of a namespace, admission plugins that are off by default, or OpenShift's own, change pods.
_NAMESPACE_ANNOTATIONS = (
    "openshift.io/node-selector",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
    "scheduler.alpha.kubernetes.io/node-selector",
)


def open_questions(item: Object, vmi: Object, configuration: Configuration, lists: Lists) -> list[str]:
    """One phrase for each, with its object first. `item`: what the VMI was made of by `vmi_of`, or the VMI itself."""
    return [
        *_of_owner(item, vmi, configuration),
        *_of_networks(vmi),
        *_of_volumes(vmi, lists),
        *_of_classes(vmi, configuration, lists),
        *_of_namespace(vmi, lists),
    ]


def open_questions_of_migration(
    vmi: Object, source_pod: Object, target_pod: Object, configuration: Configuration, lists: Lists
) -> list[str]:
    """The same for the pod of a migration, which is known better: most of it is as in the running pod."""
    found = [*_plugged(vmi), *_missing_class("RuntimeClass", target_pod["spec"].get("runtimeClassName"), lists)]
    found += [
        f"label {key} of the running pod, which the VMI does not have: admission may give it to the new pod, too"
        for key in doubtful_labels(source_pod, target_pod)
    ]
    if not are_known(configuration):
        found.append(
            f"sizes of the pod if KubeVirt's configuration has changed since the VM started, {_of(configuration)}"
        )
    if traits.needs_state(vmi) and all(volume["name"] != STATE for volume in target_pod["spec"].get("volumes") or ()):
        found.append("PersistentVolumeClaim for the state of the VM, which KubeVirt makes anew for the target")
    return found


def _of(configuration: Configuration) -> str:
    version = configuration.version
    return f"as {version} has rules of its own for them" if version else "as its version is not known"


def _of_owner(item: Object, vmi: Object, configuration: Configuration) -> Iterator[str]:
    for name, sets in (("instancetype", "CPUs, memory and devices"), ("preference", "machine and devices")):
        reference = item["spec"].get(name)
        if reference:
            chosen = reference.get("name") or reference.get("inferFromVolume") or ""
            yield f"{name} {chosen} of the VM, which sets {sets} when the VM starts"
    if "template" in item["spec"] and configuration.tracks_changed_blocks and not traits.needs_state(vmi):
        yield "PersistentVolumeClaim for changed block tracking, if labels choose the VM for it"


def _of_networks(vmi: Object) -> Iterator[str]:
    for network in vmi["spec"].get("networks") or ():
        attached = (network.get("multus") or {}).get("networkName")
        if attached:
            yield f"NetworkAttachmentDefinition {attached}, which may add a device to the pod's requests"
    mesh = (vmi["metadata"].get("annotations") or {}).get("sidecar.istio.io/inject")
    if mesh == "true":
        yield "containers that a service mesh adds to the pod"


def _of_volumes(vmi: Object, lists: Lists) -> Iterator[str]:
    if traits.needs_state(vmi) and not state_claim(vmi, lists):
        yield "PersistentVolumeClaim for the state of the VM, which KubeVirt makes when the VM first starts"
    yield from _plugged(vmi)
    yield from _missing_claims(vmi, lists)
    shared = {entry["name"] for entry in traits.devices(vmi).get("filesystems") or ()}
    for volume in traits.volumes(vmi):
        if volume["name"] in shared and traits.has(volume, "containerPath"):
            yield f"container for volume {volume['name']}, which virt-api adds if the path is there"


def _missing_claims(vmi: Object, lists: Lists) -> Iterator[str]:
    known = {(claim["metadata"]["namespace"], claim["metadata"]["name"]) for claim in lists.get("pvcs") or ()}
    for claim in claims(vmi):
        if (vmi["metadata"]["namespace"], claim) not in known:
            yield f"PersistentVolumeClaim {claim}, which is not there; KubeVirt makes no pod before it is"


def _plugged(vmi: Object) -> Iterator[str]:
    for name in sorted(plugged_volumes(vmi)):
        yield f"volume {name}, which is plugged in by a pod of its own"


def _of_classes(vmi: Object, configuration: Configuration, lists: Lists) -> Iterator[str]:
    yield from _missing_class("PriorityClass", vmi["spec"].get("priorityClassName"), lists)
    yield from _missing_class("RuntimeClass", configuration.runtime_class, lists)


def _missing_class(kind: str, name: str | None, lists: Lists) -> Iterator[str]:
    known = lists.get(_CLASSES[kind]) or ()
    if name and all(item["metadata"]["name"] != name for item in known):
        yield f"{kind} {name}, which is not known"


def _of_namespace(vmi: Object, lists: Lists) -> Iterator[str]:
    name = vmi["metadata"]["namespace"]
    for namespace in lists.get("namespaces") or ():
        if namespace["metadata"]["name"] == name:
            annotations = namespace["metadata"].get("annotations") or {}
            for key in _NAMESPACE_ANNOTATIONS:
                if annotations.get(key):
                    yield f"annotation {key} of the namespace, by which admission may change the pod"
