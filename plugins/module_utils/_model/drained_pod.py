# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain makes of a pod: whether it stays, and what has to be allowed before it may go.

Follows k8s.io/kubectl/pkg/drain/filters.go, except that a virtual machine's pods are never evicted: they go with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, controller, has_ended
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON, tolerated, toleration

_MIRROR = "kubernetes.io/config.mirror"
_KUBEVIRT = "kubevirt.io"
# Pods of a VMI: where it runs, and what attaches hotplugged volumes beside it.
_OF_A_MACHINE = frozenset({"virt-launcher", "hotplug-disk"})

# What an eviction needs, by kubectl's names.
FORCE, DELETE_EMPTYDIR_DATA = "force", "delete_emptydir_data"


def of_a_machine(pod: Object) -> bool:
    """Whether it belongs to a VMI."""
    return (pod["metadata"].get("labels") or {}).get(_KUBEVIRT) in _OF_A_MACHINE


def stays(pod: Object) -> bool:
    """Whether a drain leaves it: it has ended, or would come back at once (DaemonSet) or never go (mirror pod)."""
    annotations = pod["metadata"].get("annotations") or {}
    return has_ended(pod) or _MIRROR in annotations or controller_kind(pod) == "DaemonSet"


def tolerates_cordon(pod: Object) -> bool:
    """Whether it, or what replaces it, may come to a cordoned node."""
    return tolerated(CORDON, map(toleration, pod["spec"].get("tolerations") or ()))


def needs(pod: Object, *, kubevirt: str = "") -> Iterator[str]:
    """What has to be allowed before it may be evicted: data would be lost, or nothing would replace it.

    kubevirt: the namespace where KubeVirt itself runs, empty if it is not known. Its own pods keep nothing of worth.
    """
    if not controller_kind(pod):
        yield FORCE
    has_data = any(volume.get("emptyDir") is not None for volume in pod["spec"].get("volumes") or ())
    if has_data and not is_kubevirts(pod, kubevirt):
        yield DELETE_EMPTYDIR_DATA


def is_kubevirts(pod: Object, namespace: str) -> bool:
    """Whether it is one of KubeVirt's own, such as virt-api, where KubeVirt runs in this namespace.

    virt-operator puts all of them, with this label, where the KubeVirt object is
    (pkg/virt-operator/resource/generate/components). Anybody may set the label on a pod, but only who administers
    KubeVirt may put one there.
    """
    component = (pod["metadata"].get("labels") or {}).get(_KUBEVIRT)
    return bool(namespace and component) and pod["metadata"].get("namespace") == namespace and not of_a_machine(pod)


def controller_kind(pod: Object) -> str:
    """Of the object that replaces it; empty if there is none."""
    owner = controller(pod)
    return "" if owner is None else str(owner["kind"])
