# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as a JSON document; docs/schemas/maintenance-plan.json is its schema.

The hash is taken of the document's meaning, not of its bytes: layout and the order of keys do not count. The document
has it itself, so that nobody edits a plan unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    PROOFS,
    Action,
    ActionKind,
    Blocked,
    ObjectReference,
    Obstacle,
    Plan,
    PlannedCluster,
    PlannedFrom,
    Totals,
    Verdict,
)

# Raised whenever the meaning of a field changes, or one is dropped or has to be there.
PLAN_SCHEMA = "virtops.kubevirt/maintenance-plan/3"

_Value = TypeVar("_Value")


class PlanError(ExpectedError, ValueError):
    """What was given is no plan: one sentence that says what is wrong with it."""


def to_json(plan: Plan) -> JsonObject:
    """Plain data, in the order in which people read it."""
    content = _content(plan)
    return {"schema": PLAN_SCHEMA, "sha256": _digest(content), **content}


def encode(plan: Plan) -> bytes:
    """The content of a plan's file."""
    return (json.dumps(to_json(plan), indent=1, ensure_ascii=False) + "\n").encode()


def sha256(plan: Plan) -> str:
    return _digest(_content(plan))


def same_meaning(plan: Plan, other: Plan) -> bool:
    """Whether two plans say the same, whichever snapshots they were made from."""
    return sha256(replace(plan, snapshot=other.snapshot)) == sha256(other)


def _digest(content: Mapping[str, Any]) -> str:
    """Of `_content`."""
    said = {"schema": PLAN_SCHEMA, **content}
    return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _content(plan: Plan) -> JsonObject:
    """What a document says."""
    return {
        "run": plan.run,
        "cluster": asdict(plan.cluster),
        "snapshot": asdict(plan.snapshot),
        "options": dict(plan.options),
        "verdict": plan.verdict.value,
        "batches": [list(nodes) for nodes in plan.batches],
        "actions": [_action_to_json(action) for action in plan.actions],
        "blocked": [_blocked_to_json(blocked) for blocked in plan.blocked],
        "totals": _totals_to_json(plan.totals),
    }


def _totals_to_json(totals: Totals) -> JsonObject:
    lists = {"batch_seconds": list(totals.batch_seconds), "batch_reserves": list(totals.batch_reserves)}
    return {**asdict(totals), **lists}


def decode(content: bytes) -> Plan:
    """Raises PlanError."""
    try:
        given = json.loads(content, object_pairs_hook=_without_doubles)
    except PlanError:
        raise
    except (ValueError, RecursionError) as error:
        raise PlanError(
            f"This is no plan, as it is not JSON ({error}). Give the file that maintenance_plan wrote."
        ) from error
    return from_json(given)


def _without_doubles(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Of two equal keys people would read one, and a program another one. Raises PlanError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, times in Counter(name for name, _value in pairs).items() if times > 1)
        raise PlanError(
            f"The plan was edited since it was made: an object of it has {name!r} more than once. Make it again."
        )
    return found


def from_json(given: object) -> Plan:
    """Check and take a decoded document. Raises PlanError."""
    version = given.get("schema") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or version is None:
        raise PlanError("This is no plan, as it has no `schema`. Give the file that maintenance_plan wrote.")
    if version != PLAN_SCHEMA:
        raise PlanError(
            f"The plan has schema {version!r}, but this release reads {PLAN_SCHEMA!r} only. Make the plan again with "
            "the release in use."
        )
    try:
        found, digest = _plan(given), _text(given["sha256"])
        _check(found)
        made = to_json(found)
    except PlanError:
        raise
    except KeyError as error:
        raise PlanError(f"The plan is damaged: a part of it has no {error}. Make it again.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise PlanError(f"The plan is damaged: {error}. Make it again.") from error
    if digest != made["sha256"]:
        raise PlanError(
            f"The plan was edited since it was made: its digest would be {made['sha256']} by what it says, and it has "
            f"{digest}. Make it again, with options for what it is to be."
        )
    if given != made:  # what nobody reads would be taken for a part of what is approved
        raise PlanError("The plan was edited since it was made: it has more in it than a plan has. Make it again.")
    return found


def _plan(given: Mapping[str, Any]) -> Plan:
    return Plan(
        run=_text(given["run"]),
        cluster=PlannedCluster(*_named_texts(given["cluster"], "uid", "kubernetes", "kubevirt")),
        snapshot=PlannedFrom(*_named_texts(given["snapshot"], "sha256", "taken")),
        options=_mapping(given["options"]),
        verdict=Verdict(given["verdict"]),
        batches=tuple(map(_texts, _list(given["batches"]))),
        actions=tuple(map(_action, _list(given["actions"]))),
        blocked=tuple(map(_blocked, _list(given["blocked"]))),
        totals=_totals(given["totals"]),
    )


def _check(plan: Plan) -> None:
    """That its parts agree, so that nobody who reads a plan has to ask."""
    known = Counter(action.id for action in plan.actions)
    problems = [f"the action {name} stands in it twice" for name, times in sorted(known.items()) if times > 1]
    problems += _doubled(plan.batches)
    members = [frozenset(nodes) for nodes in plan.batches]
    earlier: set[str] = set()
    for action in plan.actions:
        problems += [
            f"{action.id} waits for {name}, which does not come before it"
            for name in action.after
            if name not in earlier
        ]
        if not 1 <= action.batch <= max(len(plan.batches), 1):
            problems.append(f"{action.id} is of batch {action.batch}, of {len(plan.batches)}")
        elif not members:
            if action.object.kind == "Node":
                problems.append(f"{action.id} is about a node, and no batch has one")
        elif action.node not in members[action.batch - 1]:
            problems.append(f"{action.id} is for node {action.node}, which is not in batch {action.batch}")
        earlier.add(action.id)
    everybody = frozenset[str]().union(*members)
    problems += [
        f"{entry.object.title} cannot leave node {entry.node}, which is in no batch"
        for entry in plan.blocked
        if members and entry.node not in everybody
    ]
    if problems:
        raise PlanError(f"The plan contradicts itself: {'; '.join(problems[:3])}. Make it again.")


def _doubled(batches: Iterable[Iterable[str]]) -> Iterator[str]:
    """Each node is out of service once."""
    first: dict[str, int] = {}
    for number, nodes in enumerate(batches, start=1):
        for name in nodes:
            if name in first:
                again = "twice" if first[name] == number else f"and in batch {number}"
                yield f"node {name} stands in batch {first[name]} {again}"
            first.setdefault(name, number)


def _action_to_json(action: Action) -> JsonObject:
    return {
        "id": action.id,
        "kind": action.kind.value,
        "batch": action.batch,
        "node": action.node,
        "object": _reference_to_json(action.object),
        "from": action.source,
        "to": action.target,
        "selector": dict(action.selector),
        "after": list(action.after),
        "seconds": action.seconds,
        "why": action.why,
        "assumed": list(action.assumed),
    }


def _blocked_to_json(blocked: Blocked) -> JsonObject:
    return {
        "object": _reference_to_json(blocked.object),
        "node": blocked.node,
        "reasons": list(blocked.reasons),
        "passing": blocked.passing,
        "obstacle": {**asdict(blocked.obstacle), "cleared_by": list(blocked.obstacle.cleared_by)},
    }


def _reference_to_json(reference: ObjectReference) -> JsonObject:
    """As `asdict` has it, which takes long for the many of a large plan."""
    return {
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
    }


def _action(value: object) -> Action:
    given = _mapping(value)
    return Action(
        id=_text(given["id"]),
        kind=ActionKind(given["kind"]),
        batch=_whole(given["batch"]),
        node=_text(given["node"]),
        object=_reference(given["object"]),
        source=_optional(_text, given["from"]),
        target=_optional(_text, given["to"]),
        selector={_text(key): _text(label) for key, label in _mapping(given["selector"]).items()},
        after=_texts(given["after"]),
        seconds=_optional(_whole, given["seconds"]),
        why=_text(given["why"]),
        assumed=_texts(given["assumed"]),
    )


def _blocked(value: object) -> Blocked:
    given = _mapping(value)
    return Blocked(
        object=_reference(given["object"]),
        node=_text(given["node"]),
        reasons=_texts(given["reasons"]),
        passing=_flag(given["passing"]),
        obstacle=_obstacle(given["obstacle"]),
    )


def _obstacle(value: object) -> Obstacle:
    given = _mapping(value)
    return Obstacle(
        id=_text(given["id"]),
        problem=_text(given["problem"]),
        advice=_text(given["advice"]),
        cleared_by=_texts(given["cleared_by"]),
    )


def _totals(value: object) -> Totals:
    given = _mapping(value)
    return Totals(
        migrations=_whole(given["migrations"]),
        evictions=_whole(given["evictions"]),
        stops=_whole(given["stops"]),
        restarts=_whole(given["restarts"]),
        seconds=_optional(_whole, given["seconds"]),
        batch_seconds=tuple(_optional(_whole, span) for span in _list(given["batch_seconds"])),
        batch_reserves=tuple(_optional(_whole, amount) for amount in _list(given["batch_reserves"])),
        lower_bound=_optional(_whole, given["lower_bound"]),
        proof=_proof(given["proof"]),
    )


def _proof(value: object) -> str:
    if value not in PROOFS:
        raise ValueError(f"{value!r} is none of {', '.join(PROOFS)}")
    return str(value)


def _reference(given: object) -> ObjectReference:
    return ObjectReference(*_named_texts(given, "kind", "namespace", "name", "uid"))


def _named_texts(value: object, *names: str) -> Iterator[str]:
    given = _mapping(value)
    return (_text(given[name]) for name in names)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(_text, _list(values)))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _mapping(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _optional(read: Callable[[object], _Value], value: object) -> _Value | None:
    return None if value is None else read(value)
