# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a specification admits by labels and taints, whatever runs on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import np
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.tables.node_table import NodeTable

Object = Mapping[str, Any]


def eligible_nodes(
    spec: Object, configuration: Configuration | None, nodes: NodeTable, selected: bool, tainted: bool
) -> frozenset[str]:
    """Names of nodes. `configuration`: KubeVirt's, which adds its own conditions; None for ordinary pods.

    `selected`: look at the specification's own node selector and node affinity. `tainted`: take nodes with taints too.
    """
    if not selected:
        others = {side: terms for side, terms in (spec.get("affinity") or {}).items() if side != "nodeAffinity"}
        spec = {**spec, "nodeSelector": {}, "affinity": others}
    if configuration is None:
        selector, wishes = spec.get("nodeSelector") or {}, spec.get("affinity") or {}
    else:
        vmi = {"metadata": {}, "spec": spec, "status": {}}
        selector, wishes = node_selector(vmi, configuration), affinity(vmi)
    parsed = pod(
        {
            "metadata": {},
            "spec": {
                "nodeSelector": selector,
                "affinity": {"nodeAffinity": wishes.get("nodeAffinity")},
                "tolerations": spec.get("tolerations"),
            },
        }
    )
    admitted = nodes.admitted_by_affinity(parsed.node_affinity)
    if not tainted:
        admitted = admitted & nodes.tolerable(parsed.tolerations)
    return frozenset(nodes.names[number] for number in np.flatnonzero(admitted))
