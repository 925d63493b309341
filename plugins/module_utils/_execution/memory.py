# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next process that drains a node is told of this one, a document: what the cluster cannot tell of it.

That is which migrations have failed and why, and which interruptions have begun. It is for the same maintenance of the
node only; what the server refused is no part of it, as whoever runs the task again may have removed the cause.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    ALREADY_GONE,
    ENDING,
    RESTARTED,
    STOPPED,
    WOULD,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    ENDED,
    WAITING,
    Entry,
    FailedAttempt,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

RECORD_SCHEMA = "virtops.kubevirt/drain-record/1"


class RecordError(ExpectedError, ValueError):
    """What was given is no record of a drain: one sentence that says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class FailedMigrations:
    """Of one VMI. attempts: how many there were, with those that the cluster has forgotten."""

    uid: str
    attempts: int
    failed: tuple[FailedAttempt, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """`epoch`: what tells this maintenance of the node from others.

    reported: how many drains of it have ended and said why the node is not empty. Their failures count no more, as
    whoever runs the task again may have removed the cause.
    """

    node: str
    epoch: str
    migrations: tuple[FailedMigrations, ...] = ()
    interruptions: tuple[Interrupting, ...] = ()
    reported: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.migrations or self.interruptions)


def remembered(record: Record, node: str, epoch: str) -> Remembered:
    """What is to be remembered of a record."""
    entries = record.entries.values()
    return Remembered(
        node,
        epoch,
        tuple(
            FailedMigrations(entry.uid, entry.attempts, failed)
            for entry in entries
            if isinstance(entry, Migrating) and (failed := tuple(each for each in entry.failed if each.uid))
        ),
        tuple(
            entry for entry in entries if isinstance(entry, Interrupting) and entry.begun_at and not entry.has_failed
        ),
    )


def recall(record: Record, known: Remembered, now: float) -> Record:
    """A record that has just begun, with what is remembered. `now`: seconds since the epoch by this machine's clock."""
    migrations = {entry.uid: entry for entry in known.migrations}
    interruptions = {entry.uid: entry for entry in known.interruptions}
    entries: dict[str, Entry] = {}
    for name, entry in record.entries.items():
        if isinstance(entry, Migrating) and entry.uid in migrations:
            found = migrations[entry.uid]
            entries[name] = replace(entry, attempts=found.attempts, failed=found.failed, is_recalled=True)
        elif isinstance(entry, Interrupting) and entry.uid in interruptions:
            before = _as_of(interruptions.pop(entry.uid), now)
            entries[name] = replace(before, action=name, is_refused=entry.is_refused, is_doubtful=False)
        else:
            entries[name] = entry
    for other in interruptions.values():
        # A plan that was made since knows nothing of a VMI that has ended, but it may not run again yet.
        kept = _as_of(other, now).forgotten()
        if kept is not None and kept.action not in entries:
            entries[kept.action] = kept
    return Record(entries)


def encode(known: Remembered) -> bytes:
    document = {"schema": RECORD_SCHEMA, **asdict(known)}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def decode(content: bytes) -> Remembered:
    """Raises RecordError."""
    try:
        given = json.loads(content)
        if given["schema"] != RECORD_SCHEMA:
            raise RecordError(
                f"The record has schema {given['schema']!r}, but this release reads {RECORD_SCHEMA!r} only."
            )
        return Remembered(
            _text(given["node"]),
            _text(given["epoch"]),
            tuple(map(_failed_migrations, given["migrations"])),
            tuple(map(_interrupting, given["interruptions"])),
            int(given.get("reported", 0)),
        )
    except RecordError:
        raise
    except (ValueError, ArithmeticError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"This is no record of a drain ({error!r}).") from error


def _as_of(entry: Interrupting, now: float) -> Interrupting:
    """With no time that is still to come, by whichever clock it was noted.

    It was noted before anybody was asked: what came of that nobody knows but the cluster.
    """
    known = replace(entry, has_acted=True, is_unsure=True, is_undone=False) if entry.outcome == WAITING else entry
    return replace(
        known,
        begun_at=min(entry.begun_at, now),
        asked_at=min(entry.asked_at, now),
        ended_at=min(entry.ended_at, now),
    )


def _failed_migrations(given: Mapping[str, Any]) -> FailedMigrations:
    failed = (FailedAttempt(*_texts(each[name] for name in ("uid", "reason", "target"))) for each in given["failed"])
    return FailedMigrations(_text(given["uid"]), int(given["attempts"]), tuple(failed))


def _interrupting(given: Mapping[str, Any]) -> Interrupting:
    values: JsonObject = {}
    for field in fields(Interrupting):
        value = given[field.name]
        values[field.name] = _READ[field.type](value)
    if values["kind"] not in WOULD or values["outcome"] not in (
        WAITING,
        ENDING,
        ENDED,
        ALREADY_GONE,
        RESTARTED,
        STOPPED,
    ):
        raise ValueError(f"{values['kind']}, {values['outcome']}")
    return Interrupting(**values)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"{values!r} is no list")
    return tuple(map(_text, values))


# By the types of fields, as they are written there.
_READ: Mapping[Any, Callable[[Any], Any]] = {"str": _text, "float": float, "bool": _flag, "tuple[str, ...]": _texts}
