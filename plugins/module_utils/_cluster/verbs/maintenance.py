# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordon a node with an owner, and undo just that.

The Lease comes first and goes last, so that whoever keeps to it never sees a node that is half taken. Each step is
written on the version that was looked at; if somebody was quicker, everything is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import read_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_conflict
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May, always
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.leases import NodeLeases
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import (
    CORDON_NOTE,
    KEPT,
    MAINTAINED,
    Cordon,
    Mark,
    find_cordon,
    find_mark,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import NodeLease, parse_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

LEASE_HELD, CORDONED_BY_OTHER, NOT_CORDONED = "LeaseHeld", "CordonedByOther", "NotCordoned"
_OTHERS = frozenset({LEASE_HELD, CORDONED_BY_OTHER})


@dataclass(frozen=True, slots=True)
class Request:
    """`keep_foreign`: go on where somebody else has cordoned the node, and leave that cordon alone.

    run, invocation: the run that the node is taken for, and the invocation of it that does so, empty for none.
    maintained: it is given back after its maintenance.
    can_wait: who asks has options that say how long others are waited for.
    """

    node: str
    owner: str
    reason: str | None
    keep_foreign: bool
    lease_namespace: str
    lease_seconds: int
    dry_run: bool
    run: str = ""
    invocation: str = ""
    maintained: bool = False
    can_wait: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """What stands on the node afterwards, in the same write as everything else."""
        return {MAINTAINED: self.run} if self.maintained else {}

    @property
    def query(self) -> dict[str, str]:
        return {"fieldManager": FIELD_MANAGER, **({"dryRun": "All"} if self.dry_run else {})}


@dataclass(frozen=True, slots=True)
class State:
    """Who has a node: its cordon, and its Lease while it is valid. maintained: the last run that is done with it."""

    cordon: Cordon | None
    lease: NodeLease | None
    maintained: str | None = None

    def facts(self) -> JsonObject:
        """What makes a change; the time to which a Lease runs does not."""
        return {
            "schedulable": self.cordon is None,
            "cordon": asdict(self.cordon) if self.cordon else None,
            "lease_holder": self.lease.holder if self.lease else None,
            "maintained": self.maintained,
        }


@dataclass(frozen=True, slots=True)
class Transition:
    before: State
    after: State
    # A mark or Lease of the owner's was removed, though it may have been void: somebody uncordoned, or time ran out.
    tidied: bool = False

    @property
    def changed(self) -> bool:
        return self.tidied or self.before.facts() != self.after.facts()


def begin(client: Client, request: Request, *, wait_seconds: float, pause: float, may: May = always) -> Transition:
    """Take the node. Waits so long for others to let go of it, looking every `pause` seconds. Raises Failure.

    may: asked after each look, before anything is written by it.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            return _until_written(lambda seen: _begin(client.guarded(may), request, may, seen))
        except Failure as error:
            left = deadline - time.monotonic()
            if error.reason not in _OTHERS or left <= 0:
                raise
        time.sleep(min(pause, left))


def require(client: Client, request: Request) -> Cordon:
    """See that the owner has taken the node, or that it is kept all the same. Raises Failure."""
    leases = NodeLeases(client, request.lease_namespace, request.query)
    node, _lease, state = _look(client, leases, request)
    if state.lease and state.lease.holder != request.owner:
        raise _held(client, request, "drain", state.lease)
    if state.cordon is None:
        raise _not_cordoned(client, request, find_mark(node))
    if not state.cordon.belongs_to(request.owner) and not request.keep_foreign:
        raise _foreign(client, request, "cordon", state.cordon)
    return state.cordon


def end(client: Client, request: Request, *, may: May = always) -> Transition:
    """Give the node back; `may` as for `begin`. Raises Failure."""
    return _until_written(lambda seen: _end(client.guarded(may), request, may, seen))


def _until_written(attempt: Callable[[list[State]], Transition]) -> Transition:
    """With what each look has found. Only the first tells what was before: who was quicker may have been this task.

    As when the answer to a write was lost, and the server has added to what was written.
    """
    seen: list[State] = []
    return retry_on_conflict(lambda: attempt(seen))


def _begin(client: Client, request: Request, may: May, seen: list[State]) -> Transition:
    leases = NodeLeases(client, request.lease_namespace, request.query)
    node, lease, before = _look(client, leases, request)
    seen.append(before)
    may()
    if before.lease and before.lease.holder != request.owner:
        raise _held(client, request, "cordon", before.lease)
    if before.cordon and not before.cordon.belongs_to(request.owner) and not request.keep_foreign:
        raise _foreign(client, request, "cordon", before.cordon)
    now = datetime.now(timezone.utc)
    held = leases.hold(lease, node, request.owner, request.lease_seconds, now, request.run)
    foreign = before.cordon is not None and not before.cordon.belongs_to(request.owner)
    annotation = KEPT if foreign else CORDON_NOTE
    cordon, mark = before.cordon, _new_mark(request, find_mark(node, annotation), before.cordon, now)
    if mark:
        try:
            marked = {"annotations": {annotation: mark.to_text()}}
            _write(client, request, node, "cordon", marked, None if foreign else {"unschedulable": True})
        except Failure:
            try:
                may()  # another invocation of the run has the Lease by the same name
                _let_go(leases, request, seen[0])
            except Failure as trouble:
                # A server that is still away: how the cordon has failed says more, and the Lease runs out by itself.
                if not trouble.passing:
                    raise
            raise
        if not foreign:
            cordon = Cordon(mark.owner, mark.since, mark.reason, marked=True)
    return Transition(seen[0], replace(before, cordon=cordon, lease=parse_lease(held)))


def _new_mark(request: Request, known: Mark | None, cordon: Cordon | None, now: datetime) -> Mark | None:
    """What is to be written on the node, where `known` stands; None if that will do.

    Each invocation of a run marks anew what an earlier one has taken, also beside a cordon of somebody else. That one
    may stand still right before it gives the node back, and its write is refused, as it goes by an outdated version.
    """
    own = known if cordon is not None and known is not None and known.owner == request.owner else None
    if cordon is not None and (not request.invocation or (own and own.invocation == request.invocation)):
        return None
    mark = own or Mark(request.owner, now.strftime("%Y-%m-%dT%H:%M:%SZ"), request.reason)
    return replace(mark, invocation=request.invocation or None)


def _end(client: Client, request: Request, may: May, seen: list[State]) -> Transition:
    leases = NodeLeases(client, request.lease_namespace, request.query)
    node, lease, before = _look(client, leases, request)
    seen.append(before)
    may()
    ours = before.cordon is not None and before.cordon.belongs_to(request.owner)
    marks = {annotation: find_mark(node, annotation) for annotation in (CORDON_NOTE, KEPT)}
    # A mark of somebody else stays.
    freed = {annotation: None for annotation, mark in marks.items() if mark and mark.owner == request.owner}
    # Whoever holds the Lease counts on the cordon, whosever it is. A node without either is theirs, and nothing to do.
    if before.lease and before.lease.holder != request.owner and (before.cordon or freed):
        raise _held(client, request, "uncordon", before.lease)
    if before.cordon and not ours and not request.keep_foreign:
        raise _foreign(client, request, "uncordon", before.cordon)
    after = replace(before, maintained=request.labels.get(MAINTAINED, before.maintained))
    if freed or after != before:
        spec = {"unschedulable": None} if ours else None
        _write(client, request, node, "uncordon", {"annotations": freed, "labels": request.labels}, spec)
    own_lease = lease if lease and parse_lease(lease).holder == request.owner else None
    if own_lease:
        leases.release(own_lease)
    after = replace(after, cordon=None if ours else before.cordon, lease=None if own_lease else before.lease)
    return Transition(seen[0], after, tidied=bool(freed) or own_lease is not None)


def _look(client: Client, leases: NodeLeases, request: Request) -> tuple[JsonObject, JsonObject | None, State]:
    """The node, its Lease of whatever age, and what they mean together."""
    node = read_node(client, request.node)
    lease = leases.read(request.node)
    parsed = parse_lease(lease) if lease else None
    valid = parsed if parsed and parsed.is_valid(datetime.now(timezone.utc)) else None
    maintained = (node["metadata"].get("labels") or {}).get(MAINTAINED)
    return node, lease, State(find_cordon(node, FIELD_MANAGER), valid, maintained)


def _write(
    client: Client, request: Request, node: JsonObject, verb: str, metadata: JsonObject, spec: JsonObject | None
) -> None:
    """On the version that was looked at. metadata, spec: what is changed in them."""
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    body: JsonObject = {"metadata": {**metadata, **version}, **({"spec": spec} if spec else {})}
    client.patch(_path(request.node), f"{verb} node {request.node}", body, **request.query)


def _let_go(leases: NodeLeases, request: Request, before: State) -> None:
    """Release a Lease that was taken for nothing; one that was held before stays."""
    if request.dry_run or before.lease:
        return
    lease = leases.read(request.node)
    if lease and parse_lease(lease).holder == request.owner:
        leases.release(lease)


def _not_cordoned(client: Client, request: Request, mark: Mark | None) -> Failure:
    taken = mark is not None and mark.owner == request.owner
    return Failure(
        f"drain node {request.node}",
        client.server,
        "somebody has uncordoned it since it was taken, so what leaves could come back"
        if taken
        else "it is not cordoned, so what leaves could come back",
        "Find out who needs it; started again, the same run or drain cordons it anew."
        if taken
        else f"Cordon it before as {request.owner} with node_maintenance, or set cordon to true.",
        reason=NOT_CORDONED,
    )


def taken_anew(client: Client, request: Request, cordon: Cordon) -> Failure:
    """Of a node that is its owner's now, but was not all the time since it was taken."""
    return Failure(
        f"drain node {request.node}",
        client.server,
        f"it has been uncordoned since it was taken, and cordoned again at {brief(cordon.since or '')}, so something"
        " may have come to it in between",
        "Find out who needs it; started again, the same run or drain empties it of what is there now.",
        reason=NOT_CORDONED,
    )


def _held(client: Client, request: Request, verb: str, lease: NodeLease) -> Failure:
    until = lease.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ") if lease.expires_at else "ever"
    return Failure(
        f"{verb} node {request.node}",
        client.server,
        f"{brief(lease.holder)} holds its lease {lease.namespace}/{lease.name} until {until}",
        "Let the holder finish, or set wait and a wait_timeout that lasts so long."
        if verb == "cordon" and request.can_wait
        else "Let the holder finish, then run this again.",
        reason=LEASE_HELD,
        details={"node_owner": lease.holder},
    )


def _foreign(client: Client, request: Request, verb: str, cordon: Cordon) -> Failure:
    return Failure(
        f"{verb} node {request.node}",
        client.server,
        f"it has been cordoned by {cordon.told}, not by {request.owner}",
        "Let them uncordon it, or set foreign_cordon to keep to go on and leave their cordon as it is.",
        reason=CORDONED_BY_OTHER,
        details={"node_owner": cordon.by},
    )


def _path(node: str) -> str:
    return object_path("v1", None, "nodes", node)
