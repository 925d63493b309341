# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a foretold launcher pod leaves open, as the lists do not tell: never silently."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import doubtful_labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits, volumes
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.devices import unknown_networks
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.target_resources import are_known
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

# By these annotations of a namespace, admission plugins that are off by default, or OpenShift's own, change pods.
_NAMESPACE_ANNOTATIONS = (
    "openshift.io/node-selector",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
    "scheduler.alpha.kubernetes.io/node-selector",
)


def open_questions(item: Object, vmi: Object, configuration: Configuration, namespace: Namespace) -> list[str]:
    """One phrase for each, with its object first. `item`: what the VMI was made of by `vmi_of`, or the VMI itself."""
    return [
        *_of_owner(item, vmi, configuration),
        *_of_networks(vmi, configuration, namespace),
        *_of_volumes(vmi, namespace),
        *_of_classes(vmi, configuration, namespace),
        *_of_namespace(namespace),
    ]


def open_questions_of_migration(
    vmi: Object, source_pod: Object, target_pod: Object, configuration: Configuration, namespace: Namespace
) -> list[str]:
    """The same for the pod of a migration, which is known better: most of it is as in the running pod."""
    found = [*_plugged(vmi), *_missing_runtime_class(target_pod["spec"].get("runtimeClassName"), namespace)]
    found += [
        f"label {key} of the running pod, which the VMI does not have: admission may give it to the new pod, too"
        for key in doubtful_labels(source_pod, target_pod)
    ]
    if not are_known(configuration):
        found.append(
            f"sizes of the pod if KubeVirt's configuration has changed since the VM started, {_of(configuration)}"
        )
    if traits.needs_state(vmi) and all(
        volume["name"] != volumes.STATE for volume in target_pod["spec"].get("volumes") or ()
    ):
        found.append("PersistentVolumeClaim for the state of the VM, which KubeVirt makes anew for the target")
    return found


def _of(configuration: Configuration) -> str:
    version = configuration.version
    return f"as {version} has rules of its own for them" if version else "as its version is not known"


def _of_owner(item: Object, vmi: Object, configuration: Configuration) -> Iterator[str]:
    if "template" in item["spec"] and configuration.tracks_changed_blocks and not traits.needs_state(vmi):
        yield "PersistentVolumeClaim for changed block tracking, if labels choose the VM for it"


def _of_networks(vmi: Object, configuration: Configuration, namespace: Namespace) -> Iterator[str]:
    for title in unknown_networks(vmi, configuration, namespace):
        yield f"NetworkAttachmentDefinition {title}, which may add a device to the pod's requests"
    mesh = (vmi["metadata"].get("annotations") or {}).get("sidecar.istio.io/inject")
    if mesh == "true":
        yield "containers that a service mesh adds to the pod"


def _of_volumes(vmi: Object, namespace: Namespace) -> Iterator[str]:
    if traits.needs_state(vmi) and not volumes.state_claim(vmi, namespace):
        yield "PersistentVolumeClaim for the state of the VM, which KubeVirt makes when the VM first starts"
    yield from _plugged(vmi)
    yield from _missing_claims(vmi, namespace)
    for name in traits.container_paths(vmi):
        yield f"path of volume {name}; if nothing is mounted there, KubeVirt adds no container and starts no guest"


def _missing_claims(vmi: Object, namespace: Namespace) -> Iterator[str]:
    for claim in volumes.claims(vmi):
        if claim not in namespace.claims:
            yield f"PersistentVolumeClaim {claim}, which is not there; KubeVirt makes no pod before it is"


def _plugged(vmi: Object) -> Iterator[str]:
    for name in sorted(volumes.plugged_volumes(vmi)):
        yield f"volume {name}, which is plugged in by a pod of its own"


def _of_classes(vmi: Object, configuration: Configuration, namespace: Namespace) -> Iterator[str]:
    name = vmi["spec"].get("priorityClassName")
    if name and name not in namespace.priority_classes:
        yield f"PriorityClass {name}, which is not known"
    yield from _missing_runtime_class(configuration.runtime_class, namespace)


def _missing_runtime_class(name: str | None, namespace: Namespace) -> Iterator[str]:
    if name and name not in namespace.runtime_classes:
        yield f"RuntimeClass {name}, which is not known"


def _of_namespace(namespace: Namespace) -> Iterator[str]:
    for key in _NAMESPACE_ANNOTATIONS:
        if namespace.annotations.get(key):
            yield f"annotation {key} of the namespace, by which admission may change the pod"
