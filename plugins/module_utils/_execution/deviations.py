# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came otherwise than a plan had it, also of what starts again in the end, beside how much came true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import (
    EVICTED,
    GONE,
    WOULD_EVICT,
    Evicting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    ALREADY_GONE,
    RESTARTED,
    STOPPED,
    WOULD,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import (
    ALREADY_THERE,
    MIGRATED,
    WOULD_MIGRATE,
    Migrating,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import STARTED, Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    POD,
    VMI,
    VMI_REPLICA_SET,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.difference import way_out
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    FORETOLD,
    Action,
    ActionKind,
    ObjectReference,
    Plan,
    is_foretold,
    kin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import LEAVING, PLACED

_INTERRUPTED = {
    ActionKind.RESTART: (RESTARTED, WOULD[ActionKind.RESTART.value]),
    ActionKind.STOP: (STOPPED, WOULD[ActionKind.STOP.value]),
}
_BY_OTHERS = "somebody else has moved it"
_NOT_THERE = "had left the node already, or was not there any more"
_NEVER_THERE = "was not there"
_UNPLANNED = "nothing, as it was not there"


@dataclass(frozen=True, slots=True)
class Deviation:
    """kind: `vm` or `pod`. planned, done: what was to become of it, and what did, as in `goes to n2`. why: if told.

    assumed: whether the plan had it only as far as something is taken for granted.
    """

    kind: str
    namespace: str
    name: str
    planned: str
    done: str
    why: str
    assumed: bool = False

    def to_json(self) -> JsonObject:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fidelity:
    """`as_planned`: how many of the actions by which something was to leave came true."""

    as_planned: int
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True)
class Landings:
    """What was seen of the pods that are made in place of evicted ones, or of what starts again.

    controllers: by uid of pods, who makes others in their place; who starts again stands for itself. came: by
    controller, the nodes of the pods that it has made since; empty of one that has none. closed: by node, why nothing
    may come to it, a clause. trouble: why nobody could look, empty if somebody could.
    """

    controllers: Mapping[str, str]
    came: Mapping[str, Sequence[str]]
    closed: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""

    def astray(self, wanted: Iterable[Displaced], others: Iterable[Action] = ()) -> Iterator[tuple[Action, Deviation]]:
        """Of those wanted on the nodes that the plan tells, the ones in whose place none has come there.

        others: whose pods the same controllers make anew for somebody else: who has come where those are expected is
        taken for one of these last of all.
        """
        left = {controller: list(nodes) for controller, nodes in self.came.items()}
        missing = [(action, uid) for action, uid in wanted if not _taken_from(left, self.controllers.get(uid), action)]
        aside: defaultdict[str, list[str]] = defaultdict(list)
        for other in others:
            controller = self.controllers.get(other.object.uid)
            if controller is not None and _taken_from(left, controller, other):
                aside[controller].append(other.target or "")
        for action, uid in missing:
            controller = self.controllers.get(uid, "")
            nodes = [*left.get(controller, ()), *aside[controller]]
            node = next((name for name in nodes if name), "")
            for known in (left.get(controller, []), aside[controller]):
                if node in known:
                    known.remove(node)
                    break
            yield action, self._deviation(action, node, is_known=uid in self.controllers)

    def _deviation(self, action: Action, node: str, *, is_known: bool) -> Deviation:
        done = f"came back on {node}" if node else "was not seen to come back"
        if self.trouble and not node:
            why = self.trouble
        elif not is_known:
            why = "it had gone before anybody looked"
        else:
            why = self.closed.get(action.target or "") or _scheduled(action, node)
        reference, planned = action.object, f"comes back on {action.target}"
        kind = "pod" if reference.kind == POD else "vm"
        return Deviation(kind, reference.namespace, reference.name, planned, done, why, _is_assumed(action))


# An action, and the uid of the pod that it was about in the end, or of the VM or replica set that starts again.
Displaced: TypeAlias = "tuple[Action, str]"


def fidelity(
    plan: Plan,
    node: str,
    record: Record,
    missed: Collection[str] = (),
    landings: Landings | None = None,
    mended: Plan | None = None,
) -> Fidelity:
    """How much of a plan came true for what was to leave for a node's sake.

    plan: as it was before it was mended. missed: ids of actions whose objects were not there when it began. landings:
    None if nothing was evicted in truth. mended: the plan that was gone by in the end, which tells why it differs.
    """
    pairs, strangers = _paired(plan, list(record.entries.values()))
    own = [(action, entry) for action, entry in pairs if action.node == node]
    now = {action.id: action for action in mended.actions} if mended is not None else {}
    found = dict(_deviations(own, missed, now))
    if landings is not None:
        evicted = [
            (action, entry.uid if entry else action.object.uid)
            for action, entry in own
            if action.kind is ActionKind.EVICT and action.target is not None and action.id not in found
        ]
        batches = {action.batch for action, _uid in evicted}
        others = (action for action in plan.actions if action.kind is ActionKind.EVICT and action.batch in batches)
        elsewhere = landings.astray(evicted, (action for action in others if action.node != node))
        found |= {action.id: deviation for action, deviation in elsewhere}
    told = [found[action.id] for action, _entry in own if action.id in found]
    new = [_stranger(entry) for entry in strangers if entry.source_node == node and not entry.unfinished]
    return Fidelity(len(own) - len(told), (*told, *new))


def starts_of_batch(plan: Plan, node: str, started: Iterable[Starting]) -> list[Displaced]:
    """What the plan starts on nodes that it tells when those of a node's batch are back, as far as it has started.

    One of a replica set has the name of the VMI that was stopped.
    """
    owners = {
        f"{entry.title}{FORETOLD if entry.kind == VMI_REPLICA_SET else ''}": entry.uid
        for entry in started
        if entry.outcome == STARTED
    }
    number, found = plan.batch_of(node), list[Displaced]()
    for action in plan.actions:
        if action.kind is ActionKind.START and action.batch == number and action.target is not None:
            title = f"{action.object.namespace}/{kin(action.object)}"
            if uid := owners.get(action.object.title) or owners.get(title):
                found.append((action, uid))
    return found


def _taken_from(left: Mapping[str, list[str]], controller: str | None, action: Action) -> bool:
    """Whether a pod has come to the node of an action, which is not looked at again then."""
    nodes = left.get(controller or "", [])
    if action.target not in nodes:
        return False
    nodes.remove(action.target)
    return True


def _scheduled(action: Action, node: str) -> str:
    """Why somebody has come, or not, where the scheduler chooses."""
    if not node:
        return "nothing had a node in its place yet"
    if action.assumed:
        return f"it was only assumed that {action.assumed[0]}"
    return "the scheduler has preferred that node, by what was there then"


def _paired(plan: Plan, entries: Sequence[Entry]) -> tuple[list[tuple[Action, Entry | None]], list[Entry]]:
    """Each action with what became of its object, and what nothing was planned for."""
    ordered = sorted(entries, key=_weight)
    known: defaultdict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in ordered:
        for key in _keys(entry):
            known[key].append(entry)
    wanted = [action for action in plan.actions if action.kind in LEAVING]
    found: dict[str, Entry] = {}
    taken: set[str] = set()
    # What was only foretold takes what is left: first one of its name, then, as nobody knows which of its kin it has
    # become, any of these.
    certain = [(action, (action.object.kind, action.object.uid)) for action in wanted if not is_foretold(action)]
    likely = [(action, *_ways(action.object, action.source or action.node)) for action in wanted if is_foretold(action)]
    by_name = [(action, name) for action, name, _kin in likely]
    by_kin = [(action, kin) for action, _name, kin in likely]
    for action, key in (*certain, *by_name, *by_kin):
        mine = [entry for entry in known[key] if entry.uid not in taken]
        if mine and action.id not in found:
            found[action.id] = next((entry for entry in mine if _came_true(action, entry)), mine[0])
            taken.add(found[action.id].uid)
    return [(action, found.get(action.id)) for action in wanted], [each for each in ordered if each.uid not in taken]


def _weight(entry: Entry) -> tuple[bool, bool]:
    """Of several attempts on one object the one that has come to an end says what became of it."""
    return entry.has_failed, entry.unfinished


def _keys(entry: Entry) -> Iterator[tuple[str, ...]]:
    """By which an action finds it: as itself, by its name, and as one of its kin that was on the node."""
    kind = POD if isinstance(entry, Evicting) else VMI
    yield kind, entry.uid
    yield from _ways(ObjectReference(kind, entry.namespace, entry.name, ""), entry.source_node)


def _ways(reference: ObjectReference, node: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """By which what was only foretold is found: by its name, else as one of its kin."""
    place = (reference.kind, reference.namespace, node)
    return ("name", *place, reference.name), ("kin", *place, kin(reference))


def _came_true(action: Action, entry: Entry | None) -> bool:
    if isinstance(entry, Migrating):
        there = entry.target_node if entry.outcome == WOULD_MIGRATE else entry.node
        left = entry.outcome in (MIGRATED, ALREADY_THERE, WOULD_MIGRATE)
        return action.kind is ActionKind.MIGRATE and left and action.target in (None, there)
    if isinstance(entry, Interrupting):
        if entry.outcome not in _INTERRUPTED.get(action.kind, ()):
            return False
        return entry.outcome != RESTARTED or action.target in (None, entry.target_node)
    # A pod that has gone since the node was taken had to leave, and has: whoever waited for that may have evicted it.
    return action.kind is ActionKind.EVICT and (entry is None or entry.outcome in (EVICTED, GONE, WOULD_EVICT))


def _deviations(
    pairs: Sequence[tuple[Action, Entry | None]], missed: Collection[str], mended: Mapping[str, Action]
) -> Iterator[tuple[str, Deviation]]:
    """By id of the action. mended: those of the plan that was gone by in the end, by id."""
    for action, entry in pairs:
        # One of its kin that has come since is not what was missed.
        if action.id in missed and (entry is None or entry.uid == action.object.uid):
            yield action.id, _deviation(action, None, None)
        elif not _came_true(action, entry):
            yield action.id, _deviation(action, entry, mended.get(entry.action) if entry else None)


def _deviation(action: Action, entry: Entry | None, mended: Action | None) -> Deviation:
    reference = action.object
    absent = _NEVER_THERE if is_foretold(action) else _NOT_THERE
    kind, done = "pod" if reference.kind == POD else "vm", entry.status() if entry else absent
    why = _why(entry, action) or _otherwise(entry, action, mended)
    return Deviation(kind, reference.namespace, reference.name, way_out(action), done, why, _is_assumed(action))


def _otherwise(entry: Entry | None, action: Action, mended: Action | None) -> str:
    """Why something left otherwise than was planned, where nothing else tells."""
    if entry is not None and entry.outcome in (ALREADY_THERE, ALREADY_GONE):
        return _BY_OTHERS
    if not isinstance(entry, Migrating) or entry.outcome not in (MIGRATED, WOULD_MIGRATE):
        return ""
    if action.kind is not ActionKind.MIGRATE:
        return "it can be migrated"
    if mended is None or way_out(mended) == way_out(action) or not _came_true(mended, entry):
        return ""  # somebody has brought it back, or it was on its way already, as its state says
    return mended.objection_to(action.target or "") or "the plan was mended meanwhile"


def _is_assumed(action: Action) -> bool:
    """Whether the node that the scheduler chooses is told only as an assumption."""
    return action.kind in PLACED and bool(action.assumed)


def _stranger(entry: Entry) -> Deviation:
    kind = "pod" if isinstance(entry, Evicting) else "vm"
    return Deviation(kind, entry.namespace, entry.name, _UNPLANNED, entry.status(), _why(entry))


def _why(entry: Entry | None, action: Action | None = None) -> str:
    return next(filter(None, _reasons(entry, action)), "").rstrip(".")


def _reasons(entry: Entry | None, action: Action | None) -> Iterator[str]:
    if isinstance(entry, Migrating):
        yield entry.failure_reason
    elif isinstance(entry, Interrupting):
        # Why it does not migrate was known if that was not planned.
        yield entry.reason or ("" if action is not None and action.kind in _INTERRUPTED else entry.why)
        if action is not None and action.kind is ActionKind.RESTART and entry.outcome == RESTARTED:
            yield _scheduled(action, entry.target_node)
    elif isinstance(entry, Evicting):
        yield entry.refusal
