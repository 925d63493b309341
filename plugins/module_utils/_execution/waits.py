# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits for whom, as a look shows it: what is over, what is wanted yet, and what may begin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import GONE
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    ALREADY_GONE,
    RESTART,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import ALREADY_THERE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Observation
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import ENDED, WAITING, Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action


class Waits:
    """What one look at the cluster says of each entry: whether it stays in the record, may begin, and is over.

    actions: those of the plan in force that are carried out, by id, in its order: who waits comes later.
    ended: ids of others that are taken for over. entries: by id; they change while one after the other is stepped, and
    whoever is asked about has been. node: the one that is to be emptied; without it all that is carried out is wanted.
    begins: whether anything begins that has not yet.
    `wanted`: ids of what is to leave the node, or is waited for, directly or not, by who is and has yet to leave.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        ended: Collection[str],
        entries: Mapping[str, Entry],
        look: Observation,
        now: float,
        node: str,
        *,
        begins: bool,
    ) -> None:
        self._actions = actions
        self._ended = ended
        self._entries = entries
        self._now = now
        self._begins = begins
        owned = ((pod.owner_uid, pod.node) for pod in look.pods.values())
        self._places = places(look).union(owned)
        self._over: dict[str, bool] = {}
        self.wanted = self._find_wanted(node, self._needs_others) if node else frozenset(actions)
        self._may_be_wanted = self._find_wanted(node, self._may_need_others) if node else frozenset(actions)
        forgotten = [entry for name, entry in entries.items() if name not in actions and entry.unfinished]
        self._leftover = {entry.uid for entry in forgotten if _holds(entry)}

    def kept(self, name: str) -> Entry | None:
        """What stays of an entry in the record. What the plan has forgotten goes on to its end."""
        entry = self._entries[name]
        if name not in self._actions:
            return entry.forgotten()
        # Else it is left to the drain of its own node.
        return entry if name in self._may_be_wanted or may_have_begun(entry) else entry.forgotten()

    def is_ready(self, name: str) -> bool:
        """Whether an entry may begin, or go on.

        Of an interruption that may not begin any more it is asked whether it has, before anything else is done with its
        VM. Nor is anything else begun with what the plan has forgotten and is, or may be, on its way.
        """
        entry, action = self._entries[name], self._actions.get(name)
        if isinstance(entry, Interrupting) and not self.may_begin(name):
            return entry.is_asked
        if action is None or not self._begins:
            return False
        may_begin = self.may_begin(name) and entry.uid not in self._leftover
        return (may_begin or entry.outcome != WAITING) and all(map(self.is_over, action.after))

    def may_begin(self, name: str) -> bool:
        """Whether it is wanted, and the plan has not forgotten it, nor given up the drain."""
        return self._begins and name in self.wanted

    def is_over(self, name: str) -> bool:
        """Whether an action is over that others wait for; one that has failed is where its object has gone anyway.

        Of what has left by itself, maybe out of turn, also what it would have waited for: a plan names only the last of
        those that come one after the other.
        """
        if name not in self._over:
            entry = self._entries.get(name)
            self._over[name] = name in self._ended if entry is None else self._is_over(entry)
        return self._over[name]

    def kept_since(self, name: str) -> float:
        """Since when the first of those that start before it waits for a pod, 0 if none does: they share its time."""
        before = (self._entries.get(other) for other in self._actions[name].after) if name in self._actions else ()
        waiting = (entry.asked_since for entry in before if isinstance(entry, Starting) and entry.awaits_pod)
        return min(waiting, default=0.0)

    def _find_wanted(self, node: str, needs_others: Callable[[Entry], bool]) -> frozenset[str]:
        own = {name for name in self._actions if name in self._entries and self._entries[name].source_node == node}
        awaited: set[str] = set()
        for name, action in reversed(list(self._actions.items())):
            # Also who waits by way of what has left by itself: see `is_over`.
            if name in awaited or (name in own and needs_others(self._entries[name])):
                awaited.update(action.after)
        return frozenset(own | awaited)

    def _needs_others(self, entry: Entry) -> bool:
        """Whether what it waits for is to leave: it has not come to its end, nor left by itself before it began.

        Of an interruption whose VM has ended, only if the next one finds no node; else it is only seen to its end.
        """
        if isinstance(entry, Interrupting) and self._is_gone(entry):
            is_unplaced = (entry.successor_uid, "") in self._places
            return entry.unfinished and is_unplaced and bool(entry.message)
        return entry.unfinished and (may_have_begun(entry) or not self._is_gone(entry))

    def _may_need_others(self, entry: Entry) -> bool:
        """Also as long as a VM that is to restart may find no node."""
        restarts = isinstance(entry, Interrupting) and entry.kind == RESTART
        return (restarts and entry.unfinished) or self._needs_others(entry)

    def _is_gone(self, entry: Entry) -> bool:
        """Whether a VMI or pod is no longer on its node: neither itself, nor a pod of it that has yet to end."""
        return (entry.uid, entry.source_node) not in self._places

    def _is_over(self, entry: Entry) -> bool:
        """Who starts keeps no other one waiting any longer than the scheduler takes, nor if something is in its way."""
        if isinstance(entry, Starting):
            return not entry.goes_first(self._now)
        if entry.unfinished or not self._is_gone(entry):
            return False
        action = self._actions.get(entry.action)
        return not left_by_itself(entry) or action is None or all(map(self.is_over, action.after))


def may_have_begun(entry: Entry) -> bool:
    """Whether it has begun, or ended, or may have, as neither answer nor look tells."""
    is_asked = isinstance(entry, Interrupting) and entry.is_asked
    return entry.outcome != WAITING or entry.is_unsure or is_asked


def _holds(entry: Entry) -> bool:
    """Whether what the plan has forgotten is to end before anything else is done with its object.

    Not a migration that KubeVirt says it holds back, maybe for ever, as where a quota leaves no room for its pod.
    """
    is_held_back = isinstance(entry, Migrating) and entry.queued and bool(entry.scheduler_message)
    return entry.forgotten() is not None and not is_held_back


def left_by_itself(entry: Entry) -> bool:
    """Whether what is over, or has failed, and is gone has not left by its action, but maybe out of turn.

    Also where something was done for it before, as by an attempt that has failed.
    """
    by_itself = entry.outcome in (ALREADY_THERE, ALREADY_GONE, GONE, ENDED)
    return not entry.has_acted or by_itself or (isinstance(entry, Migrating) and entry.has_failed)


def places(look: Observation) -> frozenset[tuple[str, str]]:
    """Uids of VMIs that have not ended, and of pods, each with the node where it is."""
    vmis = ((vmi.uid, vmi.node) for vmi in look.vmis.values() if not vmi.has_ended)
    return frozenset((*vmis, *((pod.uid, pod.node) for pod in look.pods.values())))
