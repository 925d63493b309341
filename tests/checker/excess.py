# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits between those who leave that nobody needs: without one of them, each moment that was tried is legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Lists,
    Object,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

from checker.order import (
    ByLot,
    Choice,
    Holding,
    InTheThickOfIt,
    Lot,
    MuchAtOnce,
    OneByOne,
    Order,
    anywhere,
    crowding,
)
from checker.replay import Replay

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Wish(Enum):
    """Why a wait may be wanted that no moment needs.

    HARM_LAST: who is harmed, or finds no node, leaves after the others. COMPANY: one of both is spread or needs company
    and may be in so many moments that nobody looks at all of them. ROOM: one of both has no place at a moment that is
    reckoned with and never comes: all others are in flight, whomever of each other they wait for, or all evicted pods
    have come to the node of a migration, whomever they keep away from. NONE: nothing tells.
    """

    HARM_LAST = "harm last"
    COMPANY = "company"
    ROOM = "room"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class NeedlessWait:
    """An action that waits for an earlier one, both by their ids, and need not."""

    later: str
    earlier: str
    wish: Wish


def excess(lists: Lists, plan: Plan, lots: Sequence[Lot] = ()) -> list[NeedlessWait]:
    """What is left when each wait within a batch is dropped in turn; the others stay, also those that it stood for.

    It is a guess, and the better the more lots there are: each costs four replays of the plan for each wait, and one
    that is found may cost sixteen more. plan: one without violations. Raises as `violations` does.
    """
    return list(_Search(lists, plan, lots).found())


class _Search:
    def __init__(self, lists: Lists, plan: Plan, lots: Sequence[Lot]) -> None:
        self._lists, self._plan, self._lots = lists, plan, lots
        self._actions = {action.id: action for action in plan.actions}
        specs = {(VMI, title(item)): item["spec"] for item in lists.get("vmis") or ()}
        specs |= {("Pod", title(item)): item["spec"] for item in lists.get("pods") or ()}
        subjects = {action.id: (action.object.kind, action.object.title) for action in plan.actions}
        pods = [pod if of_a_machine(pod) else _unruly(pod) for pod in lists.get("pods") or ()]
        self._unruly: Lists = {**lists, "pods": pods}
        self._choosy = {name for name, subject in subjects.items() if _is_choosy(specs.get(subject, {}))}

    def found(self) -> Iterator[NeedlessWait]:
        for later in self._actions.values():
            for earlier in (self._actions[name] for name in later.after if later.kind in LEAVING):
                if earlier.kind in LEAVING and earlier.batch == later.batch and not self._is_needed(earlier, later):
                    yield NeedlessWait(later.id, earlier.id, self._wish(earlier, later))

    def _is_needed(self, earlier: Action, later: Action) -> bool:
        """Whether some moment is not legal when the earlier one has not begun, or not ended."""
        shorter = self._upto(later.batch, self._without(earlier, later))
        for begins, (order, roaming) in product((False, True), self._orders()):
            replay = Replay(self._lists, shorter, Holding(order, earlier.id, later.id, begins=begins), choice=roaming)
            replay.run()
            # Nobody promises anything but room to who follows pods that come elsewhere than expected.
            unpromised = self._choosy if roaming else set()
            if any(entry.subject not in unpromised for entry in replay.violations):
                return True
        return False

    def _lacks_room(self, earlier: Action, later: Action) -> bool:
        """Whether the one or the other is not legal in the thick of the others, whose pods crowd its node."""
        for action, in_flight, begins in product((later, earlier), (False, True), (False, True)):
            loose = self._upto(later.batch, self._loosened(action, self._without(earlier, later)))
            order = InTheThickOfIt(later.id, earlier.id, in_flight=in_flight, begins=begins)
            replays = [Replay(self._lists, loose, order)]
            if action.kind is ActionKind.MIGRATE:
                replays.append(Replay(self._unruly, loose, order, choice=crowding(str(action.target))))
            for replay in replays:
                replay.run()
                if any(entry.subject == action.id for entry in replay.violations):
                    return True
        return False

    def _without(self, earlier: Action, later: Action) -> dict[str, Action]:
        """All actions, by their ids, when the one does not wait for the other, but for all that this waits for."""
        after = dict.fromkeys((*(name for name in later.after if name != earlier.id), *earlier.after))
        return {**self._actions, later.id: replace(later, after=tuple(after))}

    @staticmethod
    def _loosened(one: Action, actions: Mapping[str, Action]) -> dict[str, Action]:
        """The same actions, when of those that leave together nobody waits but that one, or for that one."""
        together = {name for name, other in actions.items() if other.kind in LEAVING and other.batch == one.batch}
        found = dict(actions)
        for name in together:
            ahead = _ahead(actions, name)
            after = ahead if name == one.id else ahead - (together - {one.id})
            found[name] = replace(actions[name], after=tuple(sorted(after)))
        return found

    def _upto(self, batch: int, actions: Mapping[str, Action]) -> Plan:
        return replace(self._plan, actions=tuple(action for action in actions.values() if action.batch <= batch))

    def _orders(self) -> Iterator[tuple[Order, Choice | None]]:
        """With what decides where pods come; nothing if they come where they are expected."""
        yield MuchAtOnce(), None
        yield OneByOne(), None
        for lot in self._lots:
            yield ByLot(lot), None
            yield ByLot(lot), anywhere(lot)

    def _wish(self, earlier: Action, later: Action) -> Wish:
        if later.kind in (ActionKind.STOP, ActionKind.RESTART) or (later.kind is ActionKind.EVICT and not later.target):
            return Wish.HARM_LAST
        if {earlier.id, later.id} & self._choosy:
            return Wish.COMPANY
        return Wish.ROOM if self._lacks_room(earlier, later) else Wish.NONE


def _ahead(actions: Mapping[str, Action], name: str) -> set[str]:
    """Ids of all that an action waits for, directly or not."""
    found: set[str] = set()
    left = [*actions[name].after]
    while left:
        if (other := left.pop()) not in found:
            found.add(other)
            left += actions[other].after
    return found


def _unruly(pod: Object) -> Object:
    """A pod that keeps away from no other."""
    spec = {key: value for key, value in pod["spec"].items() if key not in ("affinity", "topologySpreadConstraints")}
    own = {key: value for key, value in (pod["spec"].get("affinity") or {}).items() if key == "nodeAffinity"}
    return {**pod, "spec": {**spec, "affinity": own}}


def _is_choosy(spec: Object) -> bool:
    spread = spec.get("topologySpreadConstraints") or ()
    near = ((spec.get("affinity") or {}).get("podAffinity") or {}).get(_REQUIRED)
    return bool(near) or any(entry.get("whenUnsatisfiable") == "DoNotSchedule" for entry in spread)
