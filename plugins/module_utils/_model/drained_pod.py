# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain makes of a pod: whether it stays, and what has to be allowed before it may go.

Follows k8s.io/kubectl/pkg/drain/filters.go, except that a virtual machine's pods are never evicted: they go with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import FINISHED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import CORDON, tolerated, toleration

Object = Mapping[str, Any]

_MIRROR = "kubernetes.io/config.mirror"
_KUBEVIRT = "kubevirt.io"
# Pods of a VMI: where it runs, and what attaches hotplugged volumes beside it.
_OF_A_MACHINE = frozenset({"virt-launcher", "hotplug-disk"})

# What an eviction needs, by kubectl's names.
FORCE, DELETE_EMPTYDIR_DATA = "force", "delete_emptydir_data"


def has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


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


def needs(pod: Object) -> Iterator[str]:
    """What has to be allowed before it may be evicted: data would be lost, or nothing would replace it."""
    if not controller_kind(pod):
        yield FORCE
    if any(volume.get("emptyDir") is not None for volume in pod["spec"].get("volumes") or ()):
        yield DELETE_EMPTYDIR_DATA


def controller_kind(pod: Object) -> str:
    """Of the object that replaces it; empty if there is none."""
    owner = controller(pod)
    return "" if owner is None else str(owner["kind"])
