# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next process is told: no attempt is started over, nobody is ended twice, and nothing odd is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    ENDING,
    NOT_INTERRUPTED,
    RESTARTED,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import (
    RecordError,
    Remembered,
    decode,
    encode,
    recall,
    remembered,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import (
    ALREADY_THERE,
    MIGRATING,
    NOT_MIGRATED,
    Migrating,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import SeenVm
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import (
    ENDED,
    WAITING,
    Entry,
    FailedAttempt,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import NOW, migration, moment, seen_vmi
from unit.plugins.module_utils._plan.plans import action, vm

MOVE = action(ActionKind.MIGRATE, vm("web"), "n1", "n2")
RESTART = action(ActionKind.RESTART, vm("db"), "n1", "n2")
FAILED = FailedAttempt("uid-m", "the guest was too busy", "n2")
MOVING = replace(Migrating.begin(MOVE), attempts=1, failed=(FAILED,), outcome=NOT_MIGRATED)
ENDS = replace(
    Interrupting.begin(RESTART),
    outcome=ENDING,
    begun_at=NOW - 9,
    asked_at=NOW - 8,
    owner_kind=VMI_REPLICA_SET,
    owner="set",
    owner_uid="uid-set",
    known=("uid-db", "uid-old"),
)


def record(*entries: Entry) -> Record:
    return Record({entry.action: entry for entry in entries})


def resumed(before: Record, *begun: Entry, now: float = NOW) -> Record:
    """The record of the next process."""
    return recall(record(*begun), decode(encode(remembered(before, "n1", "e1"))), now)


def test_undisturbed_nothing_is_remembered() -> None:
    going = record(replace(MOVING, failed=(), outcome=MIGRATING), Interrupting.begin(RESTART))
    assert remembered(going, "n1", "e1") == Remembered("n1", "e1")
    assert remembered(going, "n1", "e1").is_empty


def test_failed_attempts_count_and_the_next_is_planned_first() -> None:
    entry = resumed(record(MOVING), Migrating.begin(MOVE)).entries[MOVE.id]
    assert isinstance(entry, Migrating)
    assert (entry.failed, entry.outcome) == ((FAILED,), WAITING)
    after, command = entry.step(moment(seen_vmi()))
    assert (after.outcome, after.failed, command) == (NOT_MIGRATED, (FAILED,), None)
    _again, command = after.redirected(replace(MOVE, target="n3")).step(moment(seen_vmi()))
    assert command
    assert (command.target, command.name.rpartition("-")[2]) == ("n3", "2")


def test_an_attempt_that_is_under_way_is_followed() -> None:
    entry = resumed(record(MOVING), Migrating.begin(MOVE)).entries[MOVE.id]
    flying = migration("web-any-2", "Pending", "Scheduling", target="n3")
    after, command = entry.step(moment(seen_vmi(), flying))
    assert (after.outcome, command) == (MIGRATING, None)
    left, _command = entry.step(moment(seen_vmi(node="n4")))
    assert left.outcome == ALREADY_THERE


def test_what_the_server_refused_is_tried_again() -> None:
    refused = replace(MOVING, failed=(FailedAttempt("", "a webhook forbids it", "n2"),))
    not_ended = replace(ENDS, outcome=NOT_INTERRUPTED, reason="a webhook forbids it")
    assert remembered(record(refused, not_ended), "n1", "e1").is_empty


def test_an_interruption_goes_on_and_its_successor_is_waited_for() -> None:
    """Without what is remembered the old sibling would be taken for the successor."""
    entry = resumed(record(ENDS), Interrupting.begin(RESTART)).entries[RESTART.id]
    assert entry == ENDS
    old = seen_vmi("old", "n2", owner_kind=VMI_REPLICA_SET, owner="set", owner_uid="uid-set")
    assert entry.step(moment(siblings={"uid-set": (old,)}))[0].outcome == ENDING
    new = replace(old, uid="uid-new", name="new")
    assert entry.step(moment(siblings={"uid-set": (old, new)}))[0].outcome == RESTARTED


def test_what_a_new_plan_does_not_know_is_waited_for_all_the_same() -> None:
    assert resumed(record(ENDS)).entries == {RESTART.id: ENDS}
    begun = resumed(record(replace(ENDS, outcome=WAITING, has_acted=False, begun_at=NOW))).entries[RESTART.id]
    assert isinstance(begun, Interrupting)
    assert (begun.has_acted, begun.is_unsure) == (True, True), "it may have been asked for, right before the end"
    assert begun.step(moment())[0].outcome == ENDING
    other = replace(Interrupting.begin(RESTART), uid="uid-another")
    assert resumed(record(ENDS), other).entries == {RESTART.id: other}


@pytest.mark.parametrize("found", [{"shop/web": SeenVm("uid-vm", "Halted")}, {}], ids=["halted", "deleted"])
def test_who_was_about_to_be_restarted_and_is_wanted_off_since_has_not_failed(found: dict[str, SeenVm]) -> None:
    of_vm = replace(ENDS, owner_kind=VM, owner="web", owner_uid="uid-vm", known=())
    before = record(replace(of_vm, outcome=WAITING, has_acted=False, begun_at=NOW))
    entry = resumed(before).entries[RESTART.id]
    missing, _nothing = entry.step(moment(vms=found))
    assert missing.step(moment(vms=found))[0].outcome == ENDED


def test_actions_may_have_other_names_by_then() -> None:
    second = action(ActionKind.MIGRATE, vm("web"), "n1", "n2", batch=2)
    entry = resumed(record(MOVING), Migrating.begin(second)).entries[second.id]
    assert isinstance(entry, Migrating)
    assert entry.failed == (FAILED,)


def test_a_clock_that_goes_after_another_hinders_nobody() -> None:
    entry = resumed(record(ENDS), Interrupting.begin(RESTART), now=NOW - 3600).entries[RESTART.id]
    assert isinstance(entry, Interrupting)
    assert (entry.begun_at, entry.asked_at) == (NOW - 3600, NOW - 3600)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "virtops.kubevirt/drain-record/2"},
        {"node": 5},
        {"migrations": [{"uid": "a"}]},
        {"migrations": [{"uid": "a", "attempts": 1, "failed": "abc"}]},
        {"migrations": [{"uid": "a", "attempts": float("inf"), "failed": []}]},
        {"interruptions": [{}]},
        {"interruptions": {"a": "b"}},
        {"outcome": "would_stop"},
        {"kind": "sing"},
        {"known": "uid-db"},
        {"begun_at": "soon"},
        {"is_missing": "no"},
    ],
)
def test_what_is_no_record_is_refused_in_a_sentence(change: dict[str, Any]) -> None:
    given = json.loads(encode(remembered(record(MOVING, ENDS), "n1", "e1")))
    interruption = given["interruptions"][0]
    (interruption if change.keys() <= interruption.keys() else given).update(change)
    with pytest.raises(RecordError, match=r"[.]$"):
        decode(json.dumps(given).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000])
def test_rubbish_is_refused(content: bytes) -> None:
    with pytest.raises(RecordError):
        decode(content)
