# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a VMI cannot be migrated as wanted, known before anything is tried.

KubeVirt's own admission refuses some of it, but one VMI at a time and after others have begun to move; a colliding
node selector it ignores without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import (
    Blocker,
    Candidate,
    Effect,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.registry import BLOCKER_RULES
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import own_node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

# What matters to a VMI that need not move, as it is where it is wanted.
_OF_THOSE_THERE = frozenset(
    {"being-deleted", "not-running", "migration-in-flight", "evacuation-in-progress", "added-selector-ignored"}
)


def check(prospects: Iterable[Prospect]) -> None:
    """Raises InvalidRequest, with a clause for each VMI that cannot be migrated."""
    found = ((prospect.request.title, _problem(prospect)) for prospect in prospects)
    problems = [f"{title}: {text}" for title, text in found if text]
    if problems:
        raise InvalidRequest("migrate the VMIs as wanted", problems, "No migration was started.")


def passing(prospect: Prospect) -> str | None:
    """What keeps a VMI for now, if that is all and goes away by itself; None otherwise."""
    found = [] if prospect.vmi is None or not _has_destination(prospect) else list(_found(prospect, prospect.vmi))
    return found[0].clause if found and all(blocker.passing for blocker in found) else None


def _problem(prospect: Prospect) -> str | None:
    """What is wrong and what to do, or None."""
    if prospect.vmi is None:
        return "there is no VirtualMachineInstance of this name; check name and namespace, and that the VM is started"
    request = prospect.request
    if request.uid not in ("", prospect.uid):
        return "it is another one of this name than was planned for; plan anew"
    if not _has_destination(prospect):
        return _no_destination(prospect)
    if request.source_node not in ("", prospect.source_node) and not prospect.fulfilled:
        return f"it is on {prospect.node or 'no node'}, and was planned to leave {request.source_node}; plan anew"
    return next((blocker.clause for blocker in _found(prospect, prospect.vmi)), None)


def _found(prospect: Prospect, vmi: Object) -> Iterator[Blocker]:
    candidate = _candidate(prospect, vmi)
    for blocker in filter(_is_final, (blocker for rule in BLOCKER_RULES for blocker in rule(candidate))):
        if not prospect.fulfilled or blocker.id in _OF_THOSE_THERE:
            yield blocker


def _has_destination(prospect: Prospect) -> bool:
    return bool(prospect.nodes and prospect.node_selector)


def _no_destination(prospect: Prospect) -> str:
    request = prospect.request
    if not prospect.nodes:
        labels = "" if request.target_node else "with the labels "
        return f"there is no node {labels}{request.destination}; check the spelling"
    why = f"has no label {HOSTNAME}, by which the migration would be pinned to it; set the label"
    return f"node {request.target_node} {why}"


def _candidate(prospect: Prospect, vmi: Object) -> Candidate:
    own = own_node_selector(vmi)
    # A VMI that is bound to the very node it is wanted on loses nothing by it.
    bound = {
        key for key, value in prospect.node_selector.items() if prospect.request.target_node and own.get(key) == value
    }
    return Candidate(
        vmi,
        in_flight=None if prospect.on_its_way else prospect.in_flight,
        node_selector={key: value for key, value in prospect.node_selector.items() if key not in bound},
    )


def _is_final(blocker: Blocker) -> bool:
    """Whether waiting is no use: what KubeVirt only holds back for a while, it migrates in the end."""
    return blocker.effect in (Effect.REFUSED, Effect.IGNORED) or (blocker.forbids and not blocker.passing)
