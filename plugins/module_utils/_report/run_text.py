# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as lines of text, in the end: how many left each node, and one by one what did not go well.

What came otherwise than planned, is still off or is left on a node is told one by one as well; what went well only if
that is wanted. Names and reasons come from the cluster, and anybody may have written them: whatever could steer a
terminal is replaced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import VMI_REPLICA_SET
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.departures import (
    EVICTIONS,
    INTERRUPTED,
    MOVES,
    Departed,
    Departure,
    departed,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import more_than_once

_INDENT = "     "
_NOUNS = {"vm": "VM ", "pod": "pod"}
# Outcomes that are not told by their own words.
_COUNTED = {"gone": "had gone"}

# Where VMs run again that were stopped, by kind, namespace and name of who brings them back.
_Again = Mapping[tuple[str, str, str], str]


@dataclass(frozen=True, slots=True)
class Host:
    """What is known of a host of the run in the end.

    node: what the cluster calls it. drained: what its drain returned, None if it was not begun. started: what was
    returned of the VMs that were to be started again. astray: which of them came elsewhere than planned. is_back: the
    node was given back. is_done: and all is done.
    """

    name: str
    node: str
    drained: Mapping[str, Any] | None = None
    started: Sequence[Mapping[str, Any]] = ()
    astray: Sequence[Mapping[str, Any]] = ()
    has_failed: bool = False
    is_back: bool = False
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class _Section:
    """What is told of a host. named: which departures are told one by one."""

    host: Host
    found: Departed
    again: _Again
    named: Sequence[Departure]


def run_text(run: str, batches: Sequence[Sequence[Host]], *, verbose: bool, foretold: bool) -> list[str]:
    """The lines. verbose: whether to tell all departures one by one. foretold: whether all was only tried."""
    return [printable(line) for line in _lines(run, batches, verbose, foretold)]


def _lines(run: str, batches: Sequence[Sequence[Host]], verbose: bool, foretold: bool) -> Iterator[str]:
    sections = [section for batch in batches for section in _sections(batch, verbose)]
    yield f"Run {run}:"
    for section in sections:
        yield f"{section.host.name}: {_state(section.host, foretold)}{_counts(section)}"
        yield from (f"{_INDENT}{line}" for line in _details(section))
    yield from _fidelity([section.host for section in sections], foretold)
    yield from more_than_once("was", "were", _interruptions(sections))
    if any(len(section.named) < len(section.found.departures) for section in sections):
        # True as well for who reads it later, where it was kept.
        verb = "would go" if foretold else "went"
        yield f"Where each virtual machine and pod {verb} is told only by a run that is started with -v or --diff."


def _sections(batch: Sequence[Host], verbose: bool) -> Iterator[_Section]:
    found = departed({host.node: host.drained or {} for host in batch})
    for host in batch:
        running = [entry for entry in host.started if entry["outcome"] == "started"]
        again = {(entry["kind"], entry["namespace"], entry["name"]): entry["node"] for entry in running}
        entries = found[host.node].departures
        named = [entry for entry in entries if verbose or not entry.went_well or _is_off(entry, again)]
        yield _Section(host, found[host.node], again, named)


def _is_off(entry: Departure, again: _Again) -> bool:
    return entry.outcome == "stopped" and entry.owner not in again


def _state(host: Host, foretold: bool) -> str:
    if host.is_done and not foretold:
        return "done"
    if host.is_back and not foretold:
        return "given back, but not complete"
    return "failed" if host.has_failed or (host.drained is not None and not host.is_done) else "not begun"


def _counts(section: _Section) -> str:
    """By outcome, as in `; VMs: 1 failed, 9 migrated; pods: 4 evicted`; empty if there is nothing to count."""
    entries = section.found.departures
    machines = _counted(entry for entry in entries if entry.kind != EVICTIONS)
    machines += [f"{len(section.again)} started again"] if section.again else []
    pods = _counted(entry for entry in entries if entry.kind == EVICTIONS)
    groups = {"VMs": machines, "pods": pods}
    return "".join(f"; {noun}: {', '.join(parts)}" for noun, parts in groups.items() if parts)


def _counted(entries: Iterable[Departure]) -> list[str]:
    counts = Counter(entry.outcome for entry in entries)
    return [f"{count} {_COUNTED.get(outcome, _plain(outcome))}" for outcome, count in sorted(counts.items())]


def _plain(outcome: str) -> str:
    return outcome.replace("_", " ")


def _details(section: _Section) -> Iterator[str]:
    for entry in section.named:
        yield f"{_title(*entry.key)} {_what_became(entry, section.again)}"
    for deviation in (*(section.host.drained or {}).get("deviations", ()), *section.host.astray):
        title = _title(deviation["kind"], deviation["namespace"], deviation["name"])
        done, why = deviation["done"], deviation["why"]
        reason = f", as {why}" if why and why not in done else ""
        yield f"not as planned: {title} {deviation['planned']}; instead: {done}{reason}"
    for remnant in section.found.left:
        yield f"left: {_title(*remnant.key)}: {remnant.why}"


def _title(kind: str, namespace: str, name: str) -> str:
    """A node has no namespace."""
    return f"{_NOUNS.get(kind, kind)} {namespace}/{name}" if namespace else f"{_NOUNS.get(kind, kind)} {name}"


def _what_became(entry: Departure, again: _Again) -> str:
    if entry.kind == MOVES:
        words = _of_move(entry)
    else:
        words = _of_pod(entry) if entry.kind == EVICTIONS else _of_interrupted(entry, again)
    return words.get(entry.outcome) or _standing(entry)


def _of_move(entry: Departure) -> dict[str, str]:
    return {
        "migrated": f"-> {entry.place}{_seconds(entry)}",
        "already_there": f"-> {entry.place}",
        "would_migrate": f"-> {entry.place or 'another node'}",
        "failed": f"failed, {entry.reason}",
    }


def _of_pod(entry: Departure) -> dict[str, str]:
    return {
        "evicted": f"evicted{_seconds(entry)}",
        "gone": _COUNTED["gone"],
        "failed": f"failed{_seconds(entry)}{_reason(entry, ', ')}",
    }


def _of_interrupted(entry: Departure, again: _Again) -> dict[str, str]:
    node = again.get(entry.owner, "")
    return {
        "restarted": f"restarted on {entry.place}",
        "stopped": "stopped" if _is_off(entry, again) else f"stopped, and started again{f' on {node}' if node else ''}",
        "ended": f"ended without us{_reason(entry, ', as ')}",
        "already_gone": f"was on {entry.place} already",
        "failed": f"failed, {entry.reason}",
    }


def _seconds(entry: Departure) -> str:
    return "" if entry.seconds is None else f" in {entry.seconds} s"


def _reason(entry: Departure, joint: str) -> str:
    return f"{joint}{entry.reason}" if entry.reason else ""


def _standing(entry: Departure) -> str:
    """Of what has not ended, or would only go: what its drain says of it, else its outcome and what keeps it."""
    words = _plain(entry.outcome)
    if entry.went_well:
        return words
    if entry.kind == MOVES:
        # A failure of a migration that goes on is over. Of one that has begun its drain tells the phase.
        return entry.left if entry.left.startswith(words) else f"{words}, {entry.left}" if entry.left else words
    return entry.left or f"{words}{_reason(entry, ', ')}"


def _interruptions(sections: Iterable[_Section]) -> Iterable[tuple[str, list[str]]]:
    """What each VM is called, and the hosts for which it, or who has come in its place, was interrupted."""
    found: dict[tuple[str, str], tuple[str, list[str]]] = {}
    for section in sections:
        for entry in section.found.departures:
            if entry.kind == INTERRUPTED and entry.outcome in ("restarted", "stopped"):
                title, hosts = found.pop((entry.namespace, entry.name), (_machine(entry), []))
                found[entry.namespace, entry.successor or entry.name] = title, [*hosts, section.host.name]
    return found.values()


def _machine(entry: Departure) -> str:
    """The VM, or whose it is where another one has another name."""
    kind, namespace, owner = entry.owner
    return f"one of replica set {namespace}/{owner}" if kind == VMI_REPLICA_SET else f"{namespace}/{entry.name}"


def _fidelity(hosts: Sequence[Host], foretold: bool) -> Iterator[str]:
    """How much of the plan came true for what was tried by it. Who has left as planned may have started elsewhere."""
    results = [(host.drained, host.astray) for host in hosts if host.drained and "as_planned" in host.drained]
    if results:
        as_planned = total = 0
        for drained, astray in results:
            otherwise = {_key(entry) for entry in drained["deviations"]}
            back = sum(_key(entry) not in otherwise for entry in astray)
            as_planned += max(0, drained["as_planned"] - back)
            total += max(drained["as_planned"], back) + len(drained["deviations"])
        verb = "would leave" if foretold else "have left"
        yield f"Of {total} virtual machines and pods {as_planned} {verb} as planned."


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["kind"], entry["namespace"], entry["name"]
