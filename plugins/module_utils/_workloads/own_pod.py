# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Anti-affinity that keeps a VM from migrating, as its own source pod stays until the migration ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import MISMATCH, blocks_migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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
