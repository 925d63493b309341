# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node is empty, and what is on it that the plan does not know or cannot move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import UNFORETOLD
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    RESTARTED,
    STOPPED,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    SeenPod,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING, Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.waits import (
    left_by_itself,
    may_have_begun,
    places,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, Blocked, Plan


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is still to leave a node: VMIs, ordinary pods, and pods of VMIs that have yet to end.

    elsewhere: the nodes of VMIs that were seen on others, by uid. places: as waits.py has them. staying: the same of
    what stays there as far as the look tells.
    """

    vmis: tuple[SeenVmi, ...]
    pods: tuple[SeenPod, ...]
    launchers: tuple[SeenPod, ...]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    places: frozenset[tuple[str, str]] = frozenset()
    staying: frozenset[tuple[str, str]] = frozenset()

    @property
    def none(self) -> bool:
        return not (self.vmis or self.pods or self.launchers)

    @property
    def all(self) -> tuple[SeenVmi | SeenPod, ...]:
        """What an action is needed for; launcher pods go with their VMIs."""
        return (*self.vmis, *self.pods)

    def titles(self) -> list[str]:
        """VMs first, then pods, each by name."""
        return [*sorted(f"vm {vmi.title}" for vmi in self.vmis), *sorted(f"pod {pod.title}" for pod in self.pods)]


def remaining(node: str, look: Observation, first: frozenset[str] | None) -> Remaining:
    """first: uids of the pods that were there at the first look, None at that one.

    A pod that has come since was let in by its tolerations, and would come again.
    """
    here = [pod for pod in look.pods.values() if pod.node == node]
    ordinary = (pod for pod in here if not (pod.machine or pod.stays))
    alive, there = [vmi for vmi in look.vmis.values() if not vmi.has_ended], places(look)
    return Remaining(
        vmis=tuple(vmi for vmi in alive if vmi.node == node),
        pods=tuple(pod for pod in ordinary if first is None or pod.uid in first or not pod.tolerates),
        launchers=tuple(pod for pod in here if pod.machine),
        elsewhere={vmi.uid: vmi.node for vmi in alive if vmi.node != node},
        places=there,
        staying=there - _leaving(look),
    )


def _leaving(look: Observation) -> frozenset[tuple[str, str]]:
    """What ends, or is on its way by a migration, whichever process of the run has begun that."""
    flying = {title for title, found in look.migrations.items() if any(each.goes_on for each in found)}
    vmis = ((vmi.uid, vmi.node) for title, vmi in look.vmis.items() if vmi.ending or title in flying)
    return frozenset((*vmis, *((pod.uid, pod.node) for pod in look.pods.values() if pod.ending)))


def sakes(record: Record, *plans: Plan) -> dict[str, str]:
    """By id of each entry, the node for whose sake something leaves: what that has to wait for may leave others.

    plans: that in force, and others that may know what it has dropped.
    """
    nodes = {action.id: action.node for plan in plans for action in plan.actions}
    return {name: nodes.get(name, entry.source_node) for name, entry in record.entries.items()}


def unplanned(plan: Plan, record: Record, here: Remaining) -> frozenset[str]:
    """Uids of what is to leave, does not end by itself, and has no action under way: only a new plan can tell how.

    What the plan knows to be blocked for good is not among it, nor what has failed in a way that no plan mends. Who is
    to be interrupted, and may be migrated by now, is; so is who is waited for, to make room or on another node of the
    batch, and is there still after its migration has failed, or again: nobody else may be there to move it.
    """
    entries = record.entries.values()
    known = {entry.uid for entry in entries if not _is_to_be_planned(entry) and (entry.unfinished or entry.has_failed)}
    known |= _blocked(plan)
    left = {item.uid for item in here.all if not item.ending and item.uid not in known}
    others = _awaited_elsewhere(plan, record, here)
    return frozenset(left | {entry.uid for entry in others if _is_to_be_planned(entry) or _is_over(entry)})


def _awaited_elsewhere(plan: Plan, record: Record, here: Remaining) -> list[Entry]:
    """What is on another node that it is to leave, and is waited for."""
    awaited: set[str] = set()
    for action in reversed(plan.actions):  # whoever waits comes later than what it waits for
        if _waits(record, action) or (action.id in awaited and _passes_on(record, action, here)):
            awaited.update(action.after)
    entries = (entry for name, entry in record.entries.items() if name in awaited)
    return [entry for entry in entries if here.elsewhere.get(entry.uid) == entry.source_node]


def _is_over(entry: Entry) -> bool:
    """Whether it has left."""
    return not (entry.unfinished or entry.has_failed)


def _is_to_be_planned(entry: Entry) -> bool:
    """Whether nothing more comes of an entry by its plan, and something may by another one."""
    if isinstance(entry, Interrupting):
        return entry.outcome == WAITING and entry.is_doubtful
    return isinstance(entry, Migrating) and entry.has_failed


def _waits(record: Record, action: Action) -> bool:
    entry = record.entries.get(action.id)
    return entry is not None and entry.outcome == WAITING


def _passes_on(record: Record, action: Action, here: Remaining) -> bool:
    """Whether something has left by itself, so that who waits for it waits for what it would have waited for."""
    entry = record.entries.get(action.id)
    if entry is None or entry.unfinished or (entry.uid, entry.source_node) in here.places:
        return False
    return left_by_itself(entry)


def returned(plan: Plan, record: Record, here: Remaining) -> frozenset[str]:
    """Uids of what has left, and is here again: somebody has brought it back. Or the look is older than its leaving.

    Also on another node, if it is waited for there.
    """
    gone = {entry.uid for entry in record.entries.values() if _is_over(entry)}
    elsewhere = {entry.uid for entry in _awaited_elsewhere(plan, record, here) if _is_over(entry)}
    return frozenset(elsewhere | {item.uid for item in here.all if item.uid in gone})


def replaced(record: Record, here: Remaining) -> frozenset[str]:
    """Ids of what had gone before anything was done, and has another one of its name here, which has to leave as well.

    Who was restarted, or stopped, may come here again all the same: once is enough.
    """
    machines, pods = ({item.title: item.uid for item in items} for items in (here.vmis, here.pods))
    return frozenset(
        name
        for name, entry in record.entries.items()
        if not (entry.unfinished or entry.has_failed or (isinstance(entry, Interrupting) and not entry.had_gone))
        and (pods if isinstance(entry, Evicting) else machines).get(entry.title, entry.uid) != entry.uid
    )


def is_lost(plan: Plan, record: Record, here: Remaining) -> bool:
    """Whether nothing is under way any more, and nothing that is here will ever leave by this plan."""
    dead = {entry.uid for entry in record.failed if not isinstance(entry, Migrating)} | _blocked(plan)
    vain = _in_vain(plan, record, here)
    dead |= {record.entries[name].uid for name in vain}
    going_on = any(name not in vain for name, entry in record.entries.items() if entry.unfinished)
    stay = (item.uid in dead and (item.uid, item.node) in here.staying for item in here.all)
    return not going_on and bool(here.all) and all(stay)


def _in_vain(plan: Plan, record: Record, here: Remaining) -> set[str]:
    """Ids of what has not begun and waits, directly or not, for something that has failed as no plan mends.

    Here, or on another node of the batch, as long as it is there.
    """
    lasting = (entry for entry in record.failed if not isinstance(entry, Migrating))
    found = {entry.action for entry in lasting if (entry.uid, entry.source_node) in here.staying}
    failed = set(found)
    for action in plan.actions:  # whoever waits comes later than what it waits for
        waits = _waits(record, action) and not record.entries[action.id].is_unsure
        if (waits or _passes_on(record, action, here)) and not found.isdisjoint(action.after):
            found.add(action.id)
    return found - failed


def failed_machines(plan: Plan, record: Record, here: Remaining) -> frozenset[str]:
    """Uids of the VMIs that are here and will never leave by this plan, after it was tried."""
    blocked = _blocked(plan)
    dead = {entry.uid for entry in record.failed if not isinstance(entry, Migrating) or entry.uid in blocked}
    return frozenset(vmi.uid for vmi in here.vmis if vmi.uid in dead)


def under_way(record: Record) -> list[Entry]:
    """What has begun, or may have, and has not come to its end."""
    return [entry for entry in record.unfinished if may_have_begun(entry)]


def off(record: Record, look: Observation) -> tuple[str, ...]:
    """Titles of VMs that were to be restarted and run nowhere, as nothing starts them again."""
    failed = [entry for entry in record.failed if isinstance(entry, Interrupting) and entry.is_off]
    seen = [(entry, look.vmis.get(entry.title)) for entry in failed]
    return tuple(
        entry.title for entry, vmi in seen if vmi is None or vmi.has_ended or not vmi.may_be_of(entry.owner_kind)
    )


def hindrances(plan: Plan, here: Remaining) -> Iterator[Blocked]:
    """What is here, and by the plan cannot leave, or not yet."""
    uids = {item.uid for item in here.all}
    return (entry for entry in plan.blocked if entry.object.uid in uids or not entry.object.uid)


def present(record: Record, here: Remaining) -> Iterator[tuple[str, SeenVmi | SeenPod, str]]:
    """Kind (vm or pod) and a reason of each that is here: for those of which neither an action nor the plan tells."""
    over = {entry.title: entry.outcome for entry in record.of(Interrupting) if entry.outcome in (RESTARTED, STOPPED)}
    for kind, items in (("vm", here.vmis), ("pod", here.pods)):
        for item in items:
            if item.ending:
                why = "it is ending"
            elif kind == "vm" and item.title in over:
                why = f"it runs here again after it was {over[item.title]}, and nothing is interrupted twice"
            else:
                why = "it is on the node, and nothing of the plan is about it"
            yield kind, item, why


def failures(record: Record) -> dict[str, tuple[str, ...]]:
    """By title, the nodes to which migrations of a VM have failed, or were refused; one entry an attempt."""
    migrating = (entry for entry in record.entries.values() if isinstance(entry, Migrating))
    return {entry.title: tuple(attempt.target for attempt in entry.failed) for entry in migrating if entry.failed}


def to_replan(plan: Plan, record: Record) -> dict[str, Entry]:
    """By id, the migrations that have failed of VMs that may leave in another way.

    What could not be rehearsed is none of them: it may well leave as planned.
    """
    dead = _blocked(plan) | {entry.uid for entry in record.entries.values() if not entry.has_failed}
    return {
        name: entry
        for name, entry in record.entries.items()
        if isinstance(entry, Migrating)
        and entry.has_failed
        and entry.uid not in dead
        and not entry.failure_reason.startswith(UNFORETOLD)
    }


def _blocked(plan: Plan) -> set[str]:
    """Uids of what the plan will never move."""
    return {entry.object.uid for entry in plan.blocked if not entry.passing}
