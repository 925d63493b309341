# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Terms of anti-affinity that count the pod of the VM itself, which stays on the source until the migration ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY, HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, label_selector

Object = Mapping[str, Any]

MISMATCH = "mismatchLabelKeys"
# What every launcher pod carries beside the labels of its VMI.
_LAUNCHER: Labels = {"kubevirt.io": "virt-launcher"}


def counts_own_kind(term: Object, labels: Labels, namespace: str) -> bool:
    """Whether a term selects launcher pods of VMIs with these labels in this namespace.

    `mismatchLabelKeys`, by which it may look past some of them, are not considered. Raises `SelectorError`.
    """
    # Which labels a namespace carries is not known here: a selector of namespaces is taken to reach the VM's own.
    if term.get("namespaceSelector") is None and namespace not in (term.get("namespaces") or (namespace,)):
        return False
    return label_selector(term.get("labelSelector")).matches({**labels, **_LAUNCHER})


def blocks_migration(term: Object, labels: Labels, namespace: str) -> bool:
    """Whether a required anti-affinity term keeps a VM with these labels from moving within its own domain.

    The node of the source is out of question anyway, so a rule by host takes nothing away. Raises `SelectorError`.
    """
    carried = {*labels, *_LAUNCHER, CREATED_BY}
    if term.get("topologyKey") == HOSTNAME or carried.intersection(term.get(MISMATCH) or ()):
        return False
    return counts_own_kind(term, labels, namespace)
