# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Anti-affinity that keeps a VM from migrating, as its own source pod stays until the migration ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY, HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, label_selector

Object = Mapping[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MISMATCH = "mismatchLabelKeys"
# What every launcher pod carries beside the labels of its VMI.
_LAUNCHER: Labels = {"kubevirt.io": "virt-launcher"}


def blocks_migration(term: Object, labels: Labels, namespace: str) -> bool:
    """Whether a required anti-affinity term keeps a VM with these labels from moving within its own domain.

    The node of the source is out of question anyway, so a rule by host takes nothing away. Raises `SelectorError`.
    """
    if term.get("topologyKey") == HOSTNAME or CREATED_BY in (term.get(MISMATCH) or ()):
        return False
    # Which labels a namespace carries is not known here: a selector of namespaces is taken to reach the VM's own.
    if "namespaceSelector" not in term and namespace not in (term.get("namespaces") or (namespace,)):
        return False
    return label_selector(term.get("labelSelector")).matches({**labels, **_LAUNCHER})


def ignoring_own_pod(term: Object) -> dict[str, Any]:
    """The term for all other VMs: the API server adds that pods of the same VMI do not count."""
    return {**term, MISMATCH: [CREATED_BY]}


def blocked_migrations(template: Object, namespace: str) -> Iterator[str]:
    """A sentence on each term in the template of a VMI that blocks its migration. Raises `SelectorError`."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    apart = (template["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    for term in apart.get(REQUIRED) or ():
        if blocks_migration(term, labels, namespace):
            key = term["topologyKey"]
            yield (
                f"the required anti-affinity by {key} counts a VM's own pod too, so no VM can be live-migrated within "
                f"its own {key}. Add {MISMATCH}: [{CREATED_BY}] to the term."
            )
