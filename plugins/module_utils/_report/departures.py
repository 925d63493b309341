# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What left the nodes of a batch: what their drains have returned, put together.

A drain carries out what it has to wait for on other nodes, whose own drains may have failed early, or find it done. Who
has done it knows more than who has seen that it was done, and that one more than who still waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What node_drain returns, by the names of its lists. Of each node it is told in this order.
MOVES, EVICTIONS, INTERRUPTED = LISTS = ("moves", "evicted", "interrupted")
_VM, _POD = "vm", "pod"
_WAITING = "waiting"
_ACTED = frozenset({"migrated", "evicted", "restarted", "stopped"})
_FOUND = frozenset({"already_there", "already_gone", "ended", "gone"})
_FORETOLD = frozenset({"would_migrate", "would_evict", "would_restart", "would_stop"})
WELL = _ACTED | _FOUND | _FORETOLD


@dataclass(frozen=True, slots=True)
class Departure:
    """What became of something that was to leave a node.

    kind: of the list that has it. sake: the node for whose maintenance it leaves. place: where it is by now, or would
    be; empty if that is not told. reason: why it failed, who has ended it, or what the server said last. owner: kind,
    namespace and name of who brings it back. successor: the name of the VM that has come in its place. left: why it is
    still there, by the drain that tells of it, or empty.
    """

    kind: str
    sake: str
    namespace: str
    name: str
    outcome: str
    place: str
    seconds: int | None
    reason: str
    owner: tuple[str, str, str]
    successor: str
    left: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for all that is told of a VM, or of a pod."""
        return _POD if self.kind == EVICTIONS else _VM, self.namespace, self.name

    @property
    def went_well(self) -> bool:
        return self.outcome in WELL

    @property
    def knowledge(self) -> int:
        """Of two that tell of the same the one with more is believed."""
        if self.outcome in _ACTED:
            return 3
        return 2 if self.went_well else 0 if self.outcome == _WAITING else 1


@dataclass(frozen=True, slots=True)
class Remnant:
    """What should have left and has not, and why. kind: `vm`, `pod` or `node`. sake: as of a Departure."""

    kind: str
    sake: str
    namespace: str
    name: str
    why: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Departed:
    """Of one node what became of each that was to leave it, and what else is left."""

    departures: Sequence[Departure]
    left: Sequence[Remnant]


def departed(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Departed]:
    """By node. results: what the drain of each node of a batch returned, in its order, empty if it was not begun.

    In what grows with the results, however many nodes there are.
    """
    left = {node: list(_remnants(result)) for node, result in results.items()}
    told = {node: list(_departures(result, left[node])) for node, result in results.items()}
    best = _best(told)
    lasting = _lasting(left, told, best)
    return {node: Departed(best[node], lasting[node]) for node in results}


def _remnants(result: Mapping[str, Any]) -> Iterator[Remnant]:
    for entry in result.get("left", ()):
        yield Remnant(entry["kind"], entry["for_node"], entry["namespace"], entry["name"], entry["why"])


def _departures(result: Mapping[str, Any], left: Iterable[Remnant]) -> Iterator[Departure]:
    reasons = {remnant.key: remnant.why for remnant in left}
    for kind in LISTS:
        for entry in result.get(kind, ()):
            yield Departure(
                kind=kind,
                sake=entry["for_node"],
                namespace=entry["namespace"],
                name=entry["name"],
                outcome=entry["outcome"],
                place=_place(kind, entry),
                seconds=entry["seconds"],
                reason=entry["refusal" if kind == EVICTIONS else "failure_reason"],
                owner=(entry.get("owner_kind", ""), entry["namespace"], entry.get("owner", "")),
                successor=entry.get("successor", ""),
                left=reasons.get((_POD if kind == EVICTIONS else _VM, entry["namespace"], entry["name"]), ""),
            )


def _place(kind: str, entry: Mapping[str, Any]) -> str:
    """A migration that was not made has a VM where it was."""
    if kind == EVICTIONS:
        return ""
    expected = kind == INTERRUPTED or entry["outcome"] == "would_migrate"
    return entry["target_node" if expected else "node"] or ""


def _best(told: Mapping[str, Iterable[Departure]]) -> dict[str, list[Departure]]:
    """By node what is told of each by who knows most of it: its own drain, if others do not know more."""
    found: dict[str, dict[tuple[str, str, str], Departure]] = {node: {} for node in told}
    for entry in (*_own(told), *_others(told)):
        known = found[entry.sake].setdefault((entry.kind, entry.namespace, entry.name), entry)
        if entry.knowledge > known.knowledge:
            found[entry.sake][entry.kind, entry.namespace, entry.name] = entry
    return {node: sorted(_once(known), key=_order) for node, known in found.items()}


def _once(known: Mapping[tuple[str, str, str], Departure]) -> Iterator[Departure]:
    """Who could not be migrated and is interrupted has two entries, and leaves once."""
    for entry in known.values():
        cut = known.get((INTERRUPTED, entry.namespace, entry.name))
        if entry.kind != MOVES or entry.went_well or cut is None or not _leaves_so(cut):
            yield entry


def _leaves_so(cut: Departure) -> bool:
    """Not if it had ended by itself, or is there though it was interrupted: another one of its name has come then."""
    return cut.outcome not in _FOUND and not (cut.went_well and cut.left)


def _own(told: Mapping[str, Iterable[Departure]]) -> Iterator[Departure]:
    for node, entries in told.items():
        yield from (entry for entry in entries if entry.sake == node)


def _others(told: Mapping[str, Iterable[Departure]]) -> Iterator[Departure]:
    """What drains have done for other nodes of the batch. That they wait for it says nothing of it."""
    for node, entries in told.items():
        yield from (
            entry for entry in entries if entry.sake != node and entry.sake in told and entry.outcome != _WAITING
        )


def _order(entry: Departure) -> int:
    return LISTS.index(entry.kind)


def _lasting(
    left: Mapping[str, Iterable[Remnant]],
    told: Mapping[str, Iterable[Departure]],
    best: Mapping[str, Iterable[Departure]],
) -> dict[str, list[Remnant]]:
    """By node what is still there and not among the departures that did not go well, each once.

    left: by drain; one that has not begun tells of all of its batch. told: by these drains. best: what is known by now.
    """
    known = [entry for entries in best.values() for entry in entries]
    troubled = {entry.key for entry in known if not entry.went_well}
    settled = {entry.key for entry in known if entry.went_well}
    found: dict[str, dict[tuple[str, str, str], Remnant]] = {node: {} for node in left}
    for own in (True, False):  # who is at it itself knows more
        for node, remnants in left.items():
            # What is there though the same drain saw it leave has come again.
            again = {entry.key for entry in told[node] if entry.went_well}
            for one in remnants:
                place = one.sake if one.sake in found else node
                is_there = one.key not in settled or one.key in again
                if (place == node) is own and one.key not in troubled and is_there:
                    found[place].setdefault(one.key, one)
    return {node: list(remnants.values()) for node, remnants in found.items()}
