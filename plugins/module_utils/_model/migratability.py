# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt's own word on whether a VMI can be migrated: its condition LiveMigratable.

Follows calculateLiveMigrationCondition in pkg/virt-handler/vm.go, and isMigratable in
admitters/migration-create-admitter.go. Two ask, and a missing condition tells them different things: a migration is
refused only by one that says no, and an eviction is answered by a migration only if one says yes.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_CONDITION = "LiveMigratable"
# How a reason begins that is this very word, so that it is known again in a plan.
REFUSED = "the VMI cannot be live-migrated"


def condition_of(vmi: Object) -> Object | None:
    """The condition; None while KubeVirt says nothing."""
    for condition in (vmi.get("status") or {}).get("conditions") or ():
        if condition["type"] == _CONDITION:
            return dict(condition)
    return None


def refusal_of(vmi: Object) -> Object | None:
    """The condition by which KubeVirt says that the VMI cannot be migrated; None if it does not say so."""
    condition = condition_of(vmi)
    return condition if condition is not None and condition["status"] == "False" else None


def is_refused(vmi: Object) -> bool:
    """Whether it says so."""
    return refusal_of(vmi) is not None


def is_live_migratable(vmi: Object) -> bool:
    """Whether KubeVirt says that the VMI can be migrated; before it runs, it does not say so."""
    condition = condition_of(vmi)
    return condition is not None and condition["status"] == "True"
