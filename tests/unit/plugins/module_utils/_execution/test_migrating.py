# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Migrate
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import FailedAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import NOW, migration, moment, seen_vmi
from unit.plugins.module_utils._plan.plans import action, vm

WANTED = action(ActionKind.MIGRATE, vm("web"), "n1", "n2")
BEGUN = Migrating.begin(WANTED)


def first_command(entry: Migrating = BEGUN, **changes: Any) -> Migrate:
    _entry, command = entry.step(moment(seen_vmi(), **changes))
    assert command is not None
    return command


NAME = first_command().name


def created(entry: Migrating = BEGUN) -> Migrating:
    """After its migration was created, and the server has told so."""
    return entry.answered(Answer(first_command(entry)), NOW)


def failed_once() -> Migrating:
    """After a look has shown that its migration failed, and another one that its VM is still there."""
    gone = moment(seen_vmi(), migration(NAME, "Scheduling", "Failed"))
    return created().step(gone)[0].step(gone)[0]


def test_a_migration_is_asked_for_by_the_uid_and_places_of_the_plan() -> None:
    command = first_command()
    assert (command.uid, command.source, command.target) == ("uid-web", "n1", "n2")
    assert command.selector == {"kubernetes.io/hostname": "n2"}


def test_its_name_is_the_same_for_whoever_asks_and_whenever() -> None:
    assert first_command(after=100.0).name == NAME
    assert NAME.startswith("web-")
    assert NAME.endswith("-1")


@pytest.mark.parametrize("other", [{"epoch": "f"}, {"run": "run-2"}])
def test_other_executions_have_other_names(other: dict[str, Any]) -> None:
    assert first_command(**other).name != NAME


@pytest.mark.parametrize("held", [{"ready": False}, {"slot": False}])
def test_nothing_is_asked_while_something_is_waited_for(held: dict[str, bool]) -> None:
    assert BEGUN.step(moment(seen_vmi(), **held)) == (BEGUN, None)


@pytest.mark.parametrize(
    ("there", "outcome"),
    [
        ((), "ended"),
        ((seen_vmi(uid="uid-of-another"),), "ended"),
        ((seen_vmi(phase="Succeeded"),), "ended"),
        ((seen_vmi(node="n3"),), "already_there"),
    ],
    ids=["gone", "another of its name", "ended", "elsewhere"],
)
def test_what_is_not_at_its_source_is_not_migrated(there: tuple[Any, ...], outcome: str) -> None:
    entry, command = BEGUN.step(moment(*there))
    assert (entry.outcome, command) == (outcome, None)


def test_a_migration_in_flight_is_known_again_without_a_record() -> None:
    entry, command = BEGUN.step(moment(seen_vmi(), migration(NAME, "Scheduling", "Running")))
    assert (entry.outcome, entry.migration, entry.attempts, command) == ("migrating", NAME, 1, None)


def test_one_of_another_plan_goes_where_it_was_sent() -> None:
    entry, _command = BEGUN.step(moment(seen_vmi(), migration(NAME, "Running", target="n9")))
    assert entry.destination == "n9"
    arrived, _command = entry.step(moment(seen_vmi(node="n9"), migration(NAME, "Running", "Succeeded", target="n9")))
    assert (arrived.outcome, arrived.node, arrived.target_node) == ("migrated", "n9", "n9")


def test_a_created_migration_is_awaited_before_it_is_created_again() -> None:
    assert created().step(moment(seen_vmi(), after=1.0)) == (created(), None)
    unseen = moment(seen_vmi(), after=29.0)
    assert created().step(unseen)[0].step(unseen) == (created(), None)
    late = moment(seen_vmi(), after=31.0)
    asking, command = created().step(late)
    assert (asking.questions().vmis, command) == (frozenset({"shop/web"}), None)
    assert asking.step(late)[1] is not None


def test_a_vm_that_ends_before_its_migration_is_seen_is_not_waited_for() -> None:
    gone = moment(after=3.0)
    entry, _command = created().step(gone)[0].step(gone)
    assert entry.failure_reason == "the VM ended during its migration"


def test_a_migration_on_its_way_asks_for_no_vm() -> None:
    assert BEGUN.questions() == Questions(known=frozenset({"shop/web"}))
    assert created().questions() == Questions()
    placing, _command = created().step(moment(seen_vmi(), migration(NAME, "Scheduling")))
    assert placing.questions() == Questions(placing={"shop": frozenset({f"uid-{NAME}"})})


def test_a_success_counts_when_the_vm_is_seen_at_its_target() -> None:
    over = migration(NAME, "Scheduling", "Running", "Succeeded")
    stale, _command = created().step(moment(seen_vmi(), over))
    assert stale.unfinished
    assert stale.questions() == Questions(vmis=frozenset({"shop/web"}))
    entry, _command = stale.step(moment(seen_vmi(node="n2"), over))
    assert (entry.outcome, entry.node, entry.status()) == ("migrated", "n2", "migrated to n2 in 9 s")


@pytest.mark.parametrize("entry", [created(), BEGUN], ids=["knows", "knows-nothing"])
def test_a_vm_that_is_back_after_a_success_goes_again(entry: Migrating) -> None:
    """Also for a process that knows nothing of the first time, and without any retries."""
    over = migration(NAME, "Running", "Succeeded")
    for later in (0, 0, 60):
        entry, command = entry.step(moment(seen_vmi(), over, after=later, retries=0))
    assert (entry.outcome, entry.failed, entry.past) == ("waiting", (), (f"uid-{NAME}",))
    assert command is not None
    assert command.name != NAME
    ended, _command = entry.step(moment(over))
    assert (ended.outcome, ended.failed) == ("ended", ()), "no migration was under way"


def test_who_is_brought_back_for_nobody_has_migrated_all_the_same() -> None:
    over, entry = migration(NAME, "Scheduling", "Running", "Succeeded"), created()
    for _look in range(2):
        entry, command = entry.step(moment(seen_vmi(), over, wanted=False))
    assert (entry.status(), entry.node, command) == ("migrated to n2 in 9 s, and brought back to n1", "n1", None)


def test_a_success_of_an_earlier_plan_that_led_to_where_it_is_to_leave_now_is_none() -> None:
    """As by a process that was killed, and whose plan is made anew."""
    over = migration(NAME, "Running", "Succeeded")
    further = Migrating.begin(action(ActionKind.MIGRATE, vm("web"), "n2", "n3"))
    for later in (0, 0, 60):
        further, command = further.step(moment(seen_vmi(node="n2"), over, after=later))
    assert command is not None
    assert (command.source, command.target) == ("n2", "n3")


def test_a_vm_that_ends_between_two_attempts_was_not_being_migrated() -> None:
    """Neither after one that has failed, nor after some of which KubeVirt keeps only the last ones."""
    failed, over = created(), migration(NAME, "Running", "Failed")
    for _look in range(2):
        failed, _command = failed.step(moment(seen_vmi(), over))
    old = [migration(f"{NAME[:-1]}{number}", "Running", "Succeeded") for number in (7, 8)]
    late = BEGUN
    for seconds in range(9):
        late, _command = late.step(moment(seen_vmi(), *old, after=seconds, slot=False))
    for waits, seen, known in ((failed.redirected(WANTED), [over], 1), (late, old, 0)):
        ended, command = waits.step(moment(*seen, after=60))
        assert (ended.outcome, len(ended.failed), command) == ("ended", known, None)


def test_a_success_that_ends_elsewhere_is_a_failure() -> None:
    over = migration(NAME, "Running", "Succeeded")
    entry = created()
    for _look in range(2):
        entry, _command = entry.step(moment(seen_vmi(node="n7"), over))
    assert entry.failure_reason == "KubeVirt reports success, but the VM runs on n7"


def test_a_failure_is_explained() -> None:
    over = moment(seen_vmi(), migration(NAME, "Scheduling", "Failed"), reasons={f"uid-{NAME}": "no network"})
    asking, _command = created().step(over)
    assert asking.questions().failed == {f"uid-{NAME}": "shop/web"}
    entry, _command = asking.step(over)
    assert entry.failed == (FailedAttempt(f"uid-{NAME}", "no network", "n2"),)


def test_the_schedulers_words_explain_what_nothing_else_does() -> None:
    waiting, _command = created().step(
        moment(seen_vmi(), migration(NAME, "Scheduling"), words={f"uid-{NAME}": "0/6 nodes"})
    )
    over = moment(seen_vmi(), migration(NAME, "Scheduling", "Failed"))
    entry, _command = waiting.step(over)[0].step(over)
    assert (entry.failure_reason, entry.scheduler_message) == ("no node could take it: 0/6 nodes", "0/6 nodes")
    told_later = moment(seen_vmi(), migration(NAME, "Failed"), words={f"uid-{NAME}": "0/7 nodes"})
    entry, _command = created().step(told_later)[0].step(told_later)
    assert entry.scheduler_message == "0/7 nodes"


def test_it_is_tried_again_as_often_as_is_allowed() -> None:
    over = moment(seen_vmi(), migration(NAME, "Failed"), retries=1)
    entry, command = created().step(over)[0].step(over)
    assert command is not None
    assert (entry.outcome, command.name) == ("waiting", NAME.removesuffix("1") + "2")


def test_attempts_are_counted_in_the_cluster_when_the_record_is_lost() -> None:
    second = NAME.removesuffix("1") + "2"
    over = moment(seen_vmi(), migration(NAME, "Failed", target="n8"), migration(second, "Failed"), retries=1)
    asking, _command = BEGUN.step(over)
    entry, command = asking.step(over)
    assert (entry.outcome, command) == ("failed", None)
    assert [(attempt.uid, attempt.target) for attempt in entry.failed] == [
        (f"uid-{NAME}", "n8"),
        (f"uid-{second}", "n2"),
    ]


def test_a_deleted_migration_is_cancelled_by_somebody() -> None:
    entry, _command = created().step(moment(seen_vmi(), migration(NAME, "Running")))
    asking, _command = entry.step(moment())
    assert (asking.unfinished, asking.questions().vmis) == (True, frozenset({"shop/web"}))
    ended, _command = asking.step(moment(seen_vmi()))
    assert ended.failure_reason == f"somebody deleted VirtualMachineInstanceMigration {NAME}, which cancels it"
    assert asking.step(moment())[0].failure_reason == "the VM ended during its migration"


def test_so_is_one_that_kubevirt_is_undoing() -> None:
    over = moment(seen_vmi(), migration(NAME, "Failed", cancelled=True))
    ended, _command = created().step(over)[0].step(over)
    assert ended.failure_reason == f"somebody deleted VirtualMachineInstanceMigration {NAME}, which cancels it"


def test_one_of_somebody_else_is_followed_and_counts_as_one_attempt() -> None:
    other = migration("web-of-another-7", "Running")
    followed = BEGUN.following(other)
    entry, _command = followed.step(moment(other))
    assert (entry.migration, entry.attempts, entry.destination, entry.has_acted) == (other.name, 1, "n2", False)
    again = moment(seen_vmi(), replace(other, phase="Failed"), retries=1)
    entry, command = entry.step(again)[0].step(again)
    assert (len(entry.failed), command and command.name) == (1, NAME.removesuffix("1") + "2")


@pytest.mark.parametrize(
    ("there", "outcome", "reason"),
    [
        ((), "failed", "the VM ended during its migration"),
        ((seen_vmi(node="n3"),), "failed", "somebody has moved it to n3 meanwhile"),
        ((seen_vmi(node="n2"),), "already_there", ""),
    ],
    ids=["gone", "elsewhere", "there"],
)
def test_who_has_to_arrive_fails_elsewhere(there: tuple[Any, ...], outcome: str, reason: str) -> None:
    entry, command = BEGUN.step(moment(*there, binding=True))
    assert (entry.outcome, entry.failure_reason, command) == (outcome, reason, None)


def test_who_has_to_arrive_says_so() -> None:
    assert first_command(binding=True).binding
    assert not first_command().binding


def test_a_failed_one_is_known_by_its_name_when_the_node_was_taken_anew() -> None:
    over = moment(seen_vmi(), migration(NAME, "Failed"), epoch="a later one")
    assert created().step(over)[0].suspect


def test_a_passing_refusal_is_asked_again_after_a_moment() -> None:
    refused = BEGUN.answered(Answer(first_command(), "n2 has been cordoned", passing=True), NOW)
    assert refused.status() == "waiting, n2 has been cordoned"
    assert refused.step(moment(seen_vmi(), after=1.0))[1] is None
    assert refused.step(moment(seen_vmi(), after=2.0))[1] == first_command()


def test_a_lasting_refusal_fails_it() -> None:
    refused = BEGUN.answered(Answer(first_command(), "a webhook forbids it"), NOW)
    assert (refused.outcome, refused.failed) == ("failed", (FailedAttempt("", "a webhook forbids it", "n2"),))


@pytest.mark.parametrize(
    ("entry", "outcome", "goes_to"),
    [
        (BEGUN, "waiting", "n5"),
        (created(), "migrating", "n2"),
        (failed_once(), "waiting", "n5"),
        (replace(BEGUN, outcome="migrated", node="n2"), "migrated", "n2"),
    ],
    ids=["waiting", "in flight", "failed", "over"],
)
def test_another_plan_sends_elsewhere_what_is_not_on_its_way(entry: Migrating, outcome: str, goes_to: str) -> None:
    changed = entry.redirected(action(ActionKind.MIGRATE, vm("web"), "n1", "n5"))
    assert (changed.outcome, changed.destination) == (outcome, goes_to)


def test_what_arrived_by_a_migration_that_is_deleted_was_to_go_where_that_was_pinned_to() -> None:
    entry, _command = created().step(moment(seen_vmi(), migration(NAME, "Running")))
    changed = entry.redirected(action(ActionKind.MIGRATE, vm("web"), "n1", "n5"))
    deleted = moment(seen_vmi(node="n2"))
    entry, _command = changed.step(deleted)[0].step(deleted)
    assert (entry.outcome, entry.node, entry.target_node) == ("migrated", "n2", "n2")


def test_what_was_on_its_way_goes_where_the_new_plan_says_after_it_has_failed() -> None:
    over = moment(seen_vmi(), migration(NAME, "Failed"), retries=1)
    entry = created().redirected(action(ActionKind.MIGRATE, vm("web"), "n1", "n5"))
    entry, command = entry.step(over)[0].step(over)
    assert command is not None
    assert (command.target, entry.failed[0].target) == ("n5", "n2")


@pytest.mark.parametrize(
    ("entry", "kept"),
    [(BEGUN, None), (created(), created()), (failed_once(), failed_once())],
    ids=["waiting", "in flight", "failed"],
)
def test_what_a_plan_forgets_is_kept_if_something_was_done(entry: Migrating, kept: Migrating | None) -> None:
    assert entry.forgotten() == kept


def test_of_what_was_to_be_tried_again_the_failure_is_kept() -> None:
    kept = replace(failed_once(), outcome="waiting").forgotten()
    assert kept is not None
    assert kept.has_failed


@pytest.mark.parametrize(
    ("seen", "words", "status"),
    [
        (migration(NAME), {}, "Pending"),
        (migration(NAME, blocked="exceeded quota"), {}, "Pending, no node fits: exceeded quota"),
        (migration(NAME, "Scheduling"), {f"uid-{NAME}": "0/6 nodes"}, "Scheduling, no node fits: 0/6 nodes"),
        (migration(NAME, "Running"), {f"uid-{NAME}": "0/6 nodes"}, "Running"),
    ],
    ids=["queued", "held back", "without a node", "running"],
)
def test_it_says_where_it_stands(seen: Any, words: dict[str, str], status: str) -> None:
    entry, _command = created().step(moment(seen_vmi(), seen, words=words))
    assert entry.status() == status


def test_a_migration_that_nobody_saw_end_has_no_duration() -> None:
    entry, command = Migrating.begin(action(ActionKind.MIGRATE, vm("web"), "n1", "n2")).step(moment(seen_vmi()))
    assert command is not None
    entry = entry.answered(Answer(command), NOW)
    for seconds in (40.0, 41.0, 42.0):
        entry, _nothing = entry.step(moment(seen_vmi(node="n2"), after=seconds))
    assert entry.status() == "migrated to n2"
