# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the API server does not take the pod with which a VM would start: limit ranges and quotas of its namespace."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.limit_range import of_limit_ranges
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.quota import of_quotas
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quota import excesses


def start_refusals(
    pod: Object, name: str, namespace: Namespace, *, gone: Sequence[Object] = (), come: Sequence[Object] = ()
) -> tuple[str, ...]:
    """Clauses. `name`: namespace/name of the VMI. gone, come: as for `excesses`. Raises `QuantityError`."""
    called = f"the pod with which {name} would start"
    over = excesses(pod, namespace.quotas, gone=gone, come=come)
    found = (
        *of_limit_ranges(pod, namespace.limit_ranges, called),
        *of_quotas(pod, over, called, "raise the quota, or free some of it"),
    )
    return tuple(blocker.clause for blocker in found)
