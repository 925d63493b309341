# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark on what was stopped for a node, so that it can be started when the node returns.

A label to find it by, and an annotation with an entry for each node: a replica set may lack VMIs of several. Who
replaces a VM whole takes both away, so its node notes it as well; a replica set replaces what it lacks by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    JsonObject,
    Object,
    embedded,
    name_problem,
)

LABEL = "virtops.kubevirt/stopped"
STOPPED_NOTE = "virtops.kubevirt/stopped-for"
# Of a node, before the uid of a VM that is stopped for it: many are noted at the same time.
_NOTE = "stopped.virtops.kubevirt/"


@dataclass(frozen=True, slots=True)
class StoppedMark:
    """`run_strategy`: of a VM when it ran, until it is asked to run again; empty from then on, and for a replica set.

    `since`: RFC 3339. Of a replica set, `ready`: how many of its VMIs were ready before any was stopped. vmis: names of
    those stopped.
    """

    owner: str
    run_strategy: str
    since: str
    ready: int = 0
    vmis: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoppedNote:
    """On a node: which VM is stopped for it, by whom."""

    owner: str
    namespace: str
    name: str
    uid: str


def find_marks(item: Object) -> dict[str, StoppedMark]:
    """By node; none as well for an annotation that was tampered with."""
    text = (item["metadata"].get("annotations") or {}).get(STOPPED_NOTE)
    try:
        return {str(node): _mark(**fields) for node, fields in embedded(text).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def with_replica(replica_set: Object, node: str, owner: str, vmi: str, now: str) -> dict[str, StoppedMark]:
    """The marks of a replica set of which one more VMI is stopped; stopped again, it counts once."""
    marks = find_marks(replica_set)
    known = marks.get(node)
    # What is stopped already is missing among those that are ready.
    ready = [mark.ready for mark in marks.values()] or [(replica_set.get("status") or {}).get("readyReplicas") or 0]
    vmis = sorted({*(known.vmis if known else ()), vmi})
    return {**marks, node: StoppedMark(owner, "", known.since if known else now, max(ready), tuple(vmis))}


def without_vmi(item: Object, node: str, owner: str, vmi: str) -> dict[str, StoppedMark]:
    """The marks of a VM, or replica set, of which this VMI runs on; those of other owners stay as they are."""
    marks = find_marks(item)
    mark = marks.get(node)
    if mark is None or mark.owner != owner:
        return marks
    others = tuple(name for name in mark.vmis if name != vmi)
    rest = {node: replace(mark, vmis=others)} if others else {}
    return {**{name: known for name, known in marks.items() if name != node}, **rest}


def wanted_replicas(replica_set: Object, node: str) -> int:
    """How many VMIs of it are to be ready again once the node is back; those stopped for other nodes are not yet."""
    marks = find_marks(replica_set)
    mark = marks.pop(node, None)
    if mark is None:
        return 0
    before: int = min(mark.ready, replica_set["spec"].get("replicas", 1))
    return max(0, before - sum(len(other.vmis) for other in marks.values()))


def marked(marks: Mapping[str, StoppedMark]) -> JsonObject:
    """The metadata to merge into an object so that it carries these marks, or none."""
    text = json.dumps({node: asdict(mark) for node, mark in marks.items()}, sort_keys=True)
    return {
        "labels": {LABEL: "true" if marks else None},
        "annotations": {STOPPED_NOTE: text if marks else None},
    }


def find_notes(node: Object) -> list[StoppedNote]:
    """In order; without those that were tampered with."""
    annotations = node["metadata"].get("annotations") or {}
    texts = {key.removeprefix(_NOTE): text for key, text in sorted(annotations.items()) if key.startswith(_NOTE)}
    found = ((uid, embedded(text)) for uid, text in texts.items())
    return [StoppedNote(uid=uid, **fields) for uid, fields in found if _is_of_note(fields)]


def noted(note: StoppedNote) -> JsonObject:
    """The metadata to merge into the node."""
    fields = {name: value for name, value in asdict(note).items() if name != "uid"}
    return {"annotations": {f"{_NOTE}{note.uid}": json.dumps(fields, sort_keys=True)}}


def unnoted(uid: str) -> JsonObject:
    """The metadata to merge into a node so that it says nothing of this VM."""
    return {"annotations": {f"{_NOTE}{uid}": None}}


def _is_of_note(fields: object) -> bool:
    if not (isinstance(fields, dict) and fields.keys() == {"owner", "namespace", "name"}):
        return False
    return all(isinstance(text, str) and name_problem(text) is None for text in fields.values())


def _mark(*, ready: object = 0, vmis: Iterable[object] = (), **fields: Any) -> StoppedMark:
    return StoppedMark(ready=int(str(ready)), vmis=tuple(map(str, vmis)), **fields)
