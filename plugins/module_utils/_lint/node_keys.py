# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of node labels: which are outdated or often mistaken, and what stands in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

# Kubernetes' labels of the time before their names were settled, with today's.
DEPRECATED: Mapping[str, str] = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
# Keys that never existed, with what was meant.
MISTAKEN: Mapping[str, str] = {
    "topology.kubernetes.io/hostname": "kubernetes.io/hostname",
    "topology.kubernetes.io/host": "kubernetes.io/hostname",
    "kubernetes.io/host": "kubernetes.io/hostname",
    "hostname": "kubernetes.io/hostname",
    "kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "zone": "topology.kubernetes.io/zone",
    "kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.kubernetes.io/region": "topology.kubernetes.io/region",
    "region": "topology.kubernetes.io/region",
}


def holders(key: str, nodes: Mapping[str, Labels]) -> frozenset[str]:
    """Names of the nodes that have a label."""
    return frozenset(name for name, labels in nodes.items() if key in labels)


def meant(key: str, nodes: Mapping[str, Labels]) -> str | None:
    """The key that was meant by one that no node has, if all nodes have that one."""
    right = MISTAKEN.get(key) or DEPRECATED.get(key)
    return right if right and nodes and len(holders(right, nodes)) == len(nodes) else None


def says_the_same(old: str, new: str, nodes: Iterable[Labels]) -> bool:
    """Whether the new key has the old one's value on each node that has the old one."""
    return all(labels.get(new) == labels[old] for labels in nodes if old in labels)
