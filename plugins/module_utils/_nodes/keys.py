# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of node labels: which say where a node is, which are out of date, and which belong to somebody else."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, MISTAKEN_HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import is_label_value, is_qualified_name

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
# What rules for VMs and pods count by: a node without one of them is in no domain at all.
TOPOLOGY_LABELS = (ZONE, REGION, HOSTNAME)

# Deprecated since Kubernetes 1.17, and what they are called now.
FORMER_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
}

_KUBELET = "the kubelet sets it by itself"
_KUBEVIRT = "KubeVirt sets it by itself"
_OWNERS = {
    HOSTNAME: _KUBELET,
    "kubernetes.io/arch": _KUBELET,
    "kubernetes.io/os": _KUBELET,
    "kubevirt.io/schedulable": _KUBEVIRT,
    MISTAKEN_HOSTNAME: f"nothing knows it; the key of a host is {HOSTNAME}",
}
_LABELLER = ".node.kubevirt.io"  # the domains of KubeVirt's node labeller


def key_problem(key: str) -> str | None:
    """Why a key cannot be set on a node, as a clause, or None if it can."""
    if not is_qualified_name(key):
        return f"{key!r} cannot be the key of a label"
    if key in FORMER_LABELS:
        return f"the key {key} is deprecated, it is {FORMER_LABELS[key]} now"
    reason = _KUBEVIRT if is_labellers(key) else _OWNERS.get(key)
    return f"the key {key} cannot be chosen, {reason}" if reason else None


def is_labellers(key: str) -> bool:
    """Whether KubeVirt's node labeller writes it. It writes hundreds on each node."""
    return key.rpartition("/")[0].endswith(_LABELLER)


def value_problem(key: str, value: object) -> str | None:
    """Why a value cannot be that of a key, as a clause, or None if it can."""
    if not isinstance(value, str):
        return f"the value {value!r} of {key} is no text"
    if key in TOPOLOGY_LABELS and not value:
        return f"the value of {key} is empty"
    return None if is_label_value(value) else f"{value!r} cannot be the value of the label {key}"
