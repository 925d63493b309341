# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits between those who leave that nobody needs: without one of them, each moment that was tried is legal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import VMI, title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING

from checker.order import (
    ByLot,
    Choice,
    Holding,
    Lot,
    MuchAtOnce,
    OneByOne,
    Order,
    anywhere,
)
from checker.replay import Replay

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Wish(Enum):
    """Why a wait may be wanted that no moment needs.

    HARM_LAST: who is harmed, or finds no node, leaves after the others. COMPANY: one of both is spread or needs company
    and may be in so many moments that nobody looks at all of them. ROOM: one of both is a VM that migrates, which finds
    room even if all evicted pods come to its node that may, as they hardly ever do by lot. NONE: nothing tells.
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

    It is a guess, and the better the more lots there are: each costs four replays of the plan for each wait. plan: one
    without violations. Raises as `violations` does.
    """
    return list(_Search(lists, plan, lots).found())


class _Search:
    def __init__(self, lists: Lists, plan: Plan, lots: Sequence[Lot]) -> None:
        self._lists, self._plan, self._lots = lists, plan, lots
        self._actions = {action.id: action for action in plan.actions}
        specs = {(VMI, title(item)): item["spec"] for item in lists.get("vmis") or ()}
        specs |= {("Pod", title(item)): item["spec"] for item in lists.get("pods") or ()}
        subjects = {action.id: (action.object.kind, action.object.title) for action in plan.actions}
        self._evicting = {action.batch for action in plan.actions if action.kind is ActionKind.EVICT}
        self._choosy = {name for name, subject in subjects.items() if _is_choosy(specs.get(subject, {}))}

    def found(self) -> Iterator[NeedlessWait]:
        for later in self._actions.values():
            for earlier in (self._actions[name] for name in later.after if later.kind in LEAVING):
                if earlier.kind in LEAVING and earlier.batch == later.batch and not self._is_needed(earlier, later):
                    yield NeedlessWait(later.id, earlier.id, self._wish(earlier, later))

    def _is_needed(self, earlier: Action, later: Action) -> bool:
        """Whether some moment is not legal when the earlier one has not begun, or not ended."""
        after = dict.fromkeys((*(name for name in later.after if name != earlier.id), *earlier.after))
        freer = replace(later, after=tuple(after))
        upto = (
            freer if action is later else action for action in self._actions.values() if action.batch <= later.batch
        )
        shorter = replace(self._plan, actions=tuple(upto))
        for begins, (order, roaming) in product((False, True), self._orders()):
            replay = Replay(self._lists, shorter, Holding(order, earlier.id, later.id, begins=begins), choice=roaming)
            replay.run()
            # Nobody promises anything but room to who follows pods that come elsewhere than expected.
            unpromised = self._choosy if roaming else set()
            if any(entry.subject not in unpromised for entry in replay.violations):
                return True
        return False

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
        migrates = ActionKind.MIGRATE in (earlier.kind, later.kind)
        return Wish.ROOM if migrates and later.batch in self._evicting else Wish.NONE


def _is_choosy(spec: Object) -> bool:
    spread = spec.get("topologySpreadConstraints") or ()
    near = ((spec.get("affinity") or {}).get("podAffinity") or {}).get(_REQUIRED)
    return bool(near) or any(entry.get("whenUnsatisfiable") == "DoNotSchedule" for entry in spread)
