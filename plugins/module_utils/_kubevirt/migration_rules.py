# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a VMI cannot be migrated as wanted, known before anything is tried.

KubeVirt's own admission refuses some of it, but one VMI at a time and after others have begun to move; a colliding
node selector it ignores without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import own_node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

Object = Mapping[str, Any]
HOSTNAME = "kubernetes.io/hostname"


def check(prospects: Iterable[Prospect]) -> None:
    """Raises Mistake, with a clause for each VMI that cannot be migrated."""
    found = ((prospect.wish.title, _problem(prospect)) for prospect in prospects)
    problems = [f"{title}: {text}" for title, text in found if text]
    if problems:
        raise Mistake("migrate the VMIs as wanted", problems, "No migration was started.")


def _problem(prospect: Prospect) -> str | None:
    """What is wrong and what to do, or None."""
    if prospect.vmi is None:
        return "there is no VirtualMachineInstance of this name; check name and namespace, and that the VM is started"
    found = (rule(prospect, prospect.vmi) for rule in _RULES)
    return next(filter(None, found), None)


def _destination(prospect: Prospect, vmi: Object) -> str | None:
    if prospect.nodes and prospect.node_selector:
        return None
    wish = prospect.wish
    if not prospect.nodes:
        return (
            f"there is no node {'' if wish.target_node else 'with the labels '}{wish.destination}; check the spelling"
        )
    return (
        f"node {wish.target_node} has no label {HOSTNAME}, by which the migration would be pinned to it; set the label"
    )


def _collision(prospect: Prospect, vmi: Object) -> str | None:
    own, wish = own_node_selector(vmi), prospect.wish
    for key, value in sorted(prospect.node_selector.items()):
        # A VMI that is bound to the very node it is wanted on loses nothing by it.
        if key in own and not (wish.target_node and own[key] == value):
            return (
                f"the VMI itself asks for nodes with {key}={own[key]}, so KubeVirt would silently ignore the added "
                f"{key}={value}; choose by another label, or change the VMI"
            )
    return None


def _running(prospect: Prospect, vmi: Object) -> str | None:
    phase = (vmi.get("status") or {}).get("phase") or "not started"
    if vmi["metadata"].get("deletionTimestamp"):
        return "the VMI is being deleted; leave it out"
    if phase != "Running":
        return f"the VMI is {phase}, and only a running one can be migrated; wait until it runs, or leave it out"
    return None


def _migratable(prospect: Prospect, vmi: Object) -> str | None:
    for condition in (vmi.get("status") or {}).get("conditions") or ():
        if condition["type"] == "LiveMigratable" and condition["status"] == "False" and not prospect.fulfilled:
            why = ": ".join(filter(None, (condition.get("reason"), condition.get("message"))))
            return f"KubeVirt says that the VMI cannot be live-migrated, {why}; restart or stop it instead"
    return None


def _in_flight(prospect: Prospect, vmi: Object) -> str | None:
    migration = prospect.in_flight
    if migration is None or prospect.on_its_way:
        return None
    return (
        f"VirtualMachineInstanceMigration {migration.name} is migrating the VMI already ({migration.phase or 'new'}); "
        "wait until it has ended, or cancel it with state=absent"
    )


_RULES: tuple[Callable[[Prospect, Object], str | None], ...] = (
    _destination,
    _collision,
    _running,
    _migratable,
    _in_flight,
)
