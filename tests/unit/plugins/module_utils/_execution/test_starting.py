# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Start, TakeMarkOff
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    SeenReplicaSet,
    SeenVm,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import (
    Execution,
    Record,
    advance,
    answered,
    follow,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import (
    LEFT_OFF,
    Starting,
    StartStage,
    start_stage,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    Action,
    ActionKind,
    ObjectReference,
    plan_of,
)

from unit.plugins.module_utils._execution.moments import NOW, look, moment, seen_vmi
from unit.plugins.module_utils._plan.plans import action

WEB = action(ActionKind.START, ObjectReference(VM, "shop", "web", "uid-vm"), "n1")
SET = action(ActionKind.START, ObjectReference(VMI_REPLICA_SET, "shop", "set", "uid-set"), "n1")
BEGUN, OF_SET = Starting.begin(WEB), Starting.begin(SET)
START = Start(WEB.id, "shop", "web", "uid-vm", "n1")
FORGET = TakeMarkOff(WEB.id, VM, "shop", "web", "uid-vm", "n1")
FORGET_SET = TakeMarkOff(SET.id, VMI_REPLICA_SET, "shop", "set", "uid-set", "n1")


def of_web(**changes: Any) -> SeenVmi:
    """A VMI that is the VM's own."""
    return seen_vmi(owner_kind=VM, owner="web", owner_uid="uid-vm", **changes)


RUNS = of_web(uid="uid-new")
PENDING, MADE_BY_OTHERS = replace(RUNS, node="", phase="Scheduling"), replace(RUNS, owner_kind="", owner_uid="")
ENDING, HELD_BACK = of_web(ending=True), of_web(ending=True, phase="Failed")
STILL = "its guest has yet to shut down"
STOPS = frozenset({"uid-web"})


def stopped(strategy: str, before: str = "", node: str = "n1", **fields: Any) -> SeenVm:
    """before: what its mark says that it ran with."""
    return SeenVm("uid-vm", strategy, before={node: before}, **fields)


@pytest.mark.parametrize(
    ("vm", "vmi", "expected"),
    [
        (stopped("Halted", "Always"), None, StartStage.WANTED),
        (stopped("Halted", "Always"), ENDING, StartStage.WANTED),
        (stopped("Halted", "Always"), of_web(), StartStage.WANTED),
        (stopped("Always"), ENDING, StartStage.ENDING),
        (stopped("Always"), None, StartStage.COMING),
        (stopped("Always"), PENDING, StartStage.COMING),
        (stopped("Always"), RUNS, StartStage.RUNS),
        (stopped("Always"), MADE_BY_OTHERS, StartStage.TAKEN),
        (stopped("Always", "Always"), RUNS, StartStage.WANTED),
        (stopped("Halted", "Always"), MADE_BY_OTHERS, StartStage.WANTED),
        (stopped("Halted"), None, StartStage.UNWANTED),
        (stopped("Halted"), RUNS, StartStage.UNWANTED),
        (stopped("Halted", "Manual"), None, StartStage.UNWANTED),
        (stopped("Halted", "Always", node="n2"), None, StartStage.UNWANTED),
    ],
)
def test_a_vm_that_runs_by_itself_gets_its_strategy_back_at_once(
    vm: SeenVm, vmi: SeenVmi | None, expected: StartStage
) -> None:
    assert start_stage(vm, vmi, "n1") is expected


@pytest.mark.parametrize(
    ("vm", "vmi", "expected"),
    [
        (stopped("Manual", "Manual"), None, StartStage.WANTED),
        (stopped("Manual", "Manual", stops=STOPS), of_web(), StartStage.ENDING),
        (stopped("Manual", "Manual", stops=STOPS), None, StartStage.ENDING),
        (stopped("Manual", "Manual"), ENDING, StartStage.ENDING),
        (stopped("Manual", "Manual", start_requested=True), None, StartStage.WANTED),
        (stopped("Manual", start_requested=True), None, StartStage.COMING),
        (stopped("Manual", start_requested=True), ENDING, StartStage.ENDING),
        (stopped("Manual"), PENDING, StartStage.COMING),
        (stopped("Manual"), RUNS, StartStage.RUNS),
        (stopped("Manual", "Manual"), RUNS, StartStage.WANTED),
        (stopped("Manual", "Manual"), MADE_BY_OTHERS, StartStage.TAKEN),
        (stopped("Manual"), replace(MADE_BY_OTHERS, phase="Succeeded"), StartStage.TAKEN),
        (stopped("Manual"), of_web(phase="Succeeded"), StartStage.UNWANTED),
        (stopped("Manual", ending=True), None, StartStage.UNWANTED),
        (stopped("RerunOnFailure"), of_web(phase="Failed"), StartStage.COMING),
        (stopped("RerunOnFailure"), of_web(phase="Succeeded"), StartStage.UNWANTED),
        (stopped("Once"), of_web(phase="Succeeded"), StartStage.UNWANTED),
    ],
)
def test_a_vm_that_starts_by_request_is_asked_for_when_its_former_vmi_has_ended(
    vm: SeenVm, vmi: SeenVmi | None, expected: StartStage
) -> None:
    assert start_stage(vm, vmi, "n1") is expected


FAILED = of_web(uid="uid-new", phase="Failed")
HELD = frozenset({"uid-new"})


@pytest.mark.parametrize(
    ("vm", "vmi", "expected"),
    [
        (stopped("Manual"), FAILED, StartStage.FAILED),
        (stopped("Once"), FAILED, StartStage.FAILED),
        (stopped("Manual", start_requested=True, stops=HELD), FAILED, StartStage.COMING),
        (stopped("RerunOnFailure"), FAILED, StartStage.COMING),
        (stopped("Always"), FAILED, StartStage.COMING),
        (stopped("Once"), replace(FAILED, ending=True), StartStage.COMING),
        (stopped("Manual"), replace(FAILED, ending=True), StartStage.ENDING),
        (stopped("Manual"), None, StartStage.GONE),
        (stopped("RerunOnFailure"), None, StartStage.GONE),
        (stopped("Once"), None, StartStage.COMING),
    ],
)
def test_a_vmi_that_ends_before_it_runs_is_nobodys_wish(vm: SeenVm, vmi: SeenVmi | None, expected: StartStage) -> None:
    """KubeVirt itself starts `Always` and `RerunOnFailure` again."""
    assert start_stage(vm, vmi, "n1") is expected


@pytest.mark.parametrize("vmi", [RUNS, PENDING, None], ids=["runs", "pending", "gone"])
@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
def test_a_stop_after_it_was_asked_for_is_somebodys_wish(strategy: str, vmi: SeenVmi | None) -> None:
    assert start_stage(stopped(strategy, stops=HELD), vmi, "n1") is StartStage.UNWANTED


def seen(vm: SeenVm | None, *vmis: SeenVmi, **changes: Any) -> Any:
    return moment(*vmis, vms={"shop/web": vm} if vm is not None else {}, **changes)


@pytest.mark.parametrize(
    ("shown", "command", "status"),
    [
        (seen(stopped("Halted", "Always")), START, "waiting"),
        (seen(stopped("Halted")), START, "waiting"),
        (seen(stopped("Always"), ENDING), None, "waiting, its guest has yet to shut down"),
        (seen(stopped("Always"), HELD_BACK), None, f"starting, {STILL}, or its former VMI to be gone"),
        (seen(stopped("Manual"), HELD_BACK), None, f"waiting, {STILL}, or its former VMI to be gone"),
        (seen(stopped("Always")), None, "starting"),
        (seen(stopped("Always"), RUNS), FORGET, "waiting"),
        (seen(stopped("Always"), MADE_BY_OTHERS), None, "waiting, a VMI of its name is not its own"),
        (seen(stopped("Manual"), FAILED), START, "waiting, its VMI has failed, and another one is asked for"),
        (seen(None), FORGET, "waiting"),
        (seen(SeenVm("uid-of-another", "Always")), FORGET, "waiting"),
    ],
    ids="halted|by another|ending|ended|manual ended|coming|runs|made by others|failed|gone|another".split("|"),
)
def test_what_is_done_follows_from_what_is_seen(shown: Any, command: Any, status: str) -> None:
    entry, given = BEGUN.step(shown)
    assert (given, entry.status()) == (command, status)


def test_what_the_scheduler_says_counts_after_a_moment() -> None:
    """Until then it may still see the taint of a node that was uncordoned right before."""
    entry, told = BEGUN, list[str]()
    for seconds in (0.0, 4.0, 5.0):
        entry, _nothing = entry.step(seen(stopped("Always"), PENDING, words={"uid-new": "0/6"}, after=seconds))
        told.append(entry.status())
    assert told == ["starting", "starting", "starting, no node fits: 0/6"]


def test_what_is_to_come_is_asked_about() -> None:
    asked = BEGUN.questions()
    assert asked.vms == asked.vmis == {"shop/web"}
    pending, _command = BEGUN.step(seen(stopped("Always"), PENDING))
    assert dict(pending.questions().unplaced) == {"uid-new": "shop"}
    running, _command = pending.step(seen(stopped("Always"), RUNS))
    assert dict(running.questions().unplaced) == {}
    assert OF_SET.questions().replica_sets == {"shop/set"}


def test_a_vm_has_started_when_its_mark_is_off() -> None:
    begun, _command = BEGUN.step(seen(stopped("Halted", "Always")))
    asked = begun.answered(Answer(START), NOW)
    assert (asked.status(), asked.unfinished, asked.has_acted) == ("starting", True, True)
    running, _command = asked.step(seen(stopped("Always"), RUNS, after=4.0))
    started = running.answered(Answer(FORGET), NOW + 5)
    assert (started.status(), started.unfinished) == ("started on n1 in 5 s", False)


@pytest.mark.parametrize("entry", [BEGUN, replace(BEGUN, outcome="starting", message="no node fits: 0/6"), OF_SET])
def test_what_somebody_has_deleted_is_forgotten_and_has_not_failed(entry: Starting) -> None:
    missing, command = entry.step(seen(None))
    assert command is not None
    deleted = missing.answered(Answer(command, needless=True), NOW)
    assert (deleted.unfinished, deleted.has_failed, deleted.has_acted) == (False, False, False)
    assert deleted.status() == "deleted, by somebody else since it was stopped"
    assert deleted.rehearsed() == deleted
    asked = replace(entry, has_acted=True)
    assert asked.answered(Answer(command, needless=True), NOW).has_acted


def test_a_start_without_effect_is_asked_for_again_after_a_moment() -> None:
    asked = BEGUN.answered(Answer(START, STILL, passing=True), NOW)
    assert asked.status() == f"waiting, {STILL}"
    wanted = stopped("Manual", "Manual")
    assert asked.step(seen(wanted, after=1.0))[1] is None
    assert asked.step(seen(wanted, after=2.0))[1] == START


def test_what_was_asked_for_has_changed_something_whatever_comes_of_it() -> None:
    asked = BEGUN.answered(Answer(START), NOW)
    failed = asked.answered(Answer(FORGET, "a webhook forbids it"), NOW)
    assert (failed.has_failed, failed.has_acted) == (True, True)
    assert BEGUN.answered(Answer(START, lost=True), NOW).has_acted
    # That took its mark off.
    assert BEGUN.answered(Answer(START, LEFT_OFF), NOW).has_acted
    assert not BEGUN.answered(Answer(START, STILL, passing=True), NOW).has_acted


@pytest.mark.parametrize("words", ["", "the server fails"])
@pytest.mark.parametrize(
    ("vm", "vmi", "asked", "done"),
    [
        (stopped("Manual", "Manual"), (), START, stopped("Manual", "Manual", start_requested=True)),
        (stopped("Halted", "Always"), (), START, stopped("Always")),
        (stopped("Manual"), (FAILED,), START, stopped("Manual", start_requested=True)),
        (stopped("Always"), (RUNS,), FORGET, SeenVm("uid-vm", "Always")),
    ],
    ids=["by request", "by itself", "failed", "mark"],
)
def test_what_no_answer_tells_a_later_look_does(
    vm: SeenVm, vmi: tuple[SeenVmi, ...], asked: Start | TakeMarkOff, done: SeenVm, words: str
) -> None:
    entry, command = BEGUN.step(seen(vm, *vmi))
    assert command == asked
    lost = entry.answered(Answer(asked, words, passing=bool(words), lost=True), NOW)
    early, command = lost.step(seen(vm, *vmi, after=1.0))
    assert (early.has_acted, command) == (True, None)
    intact, command = early.step(seen(vm, *vmi, after=2.0))
    assert (intact.has_acted, command) == (False, asked)
    assert early.step(seen(done, *vmi, after=2.0))[0].has_acted
    known = early.step(seen(done, *vmi, after=1.0))[0].answered(Answer(FORGET, lost=True), NOW + 1.0)
    assert known.step(seen(done, *vmi, after=4.0))[0].has_acted


def test_what_is_only_waited_for_has_changed_nothing() -> None:
    waiting, command = OF_SET.step(moment(replica_sets={"shop/set": SeenReplicaSet("uid-set", 1, {"n1": 2})}))
    assert (waiting.outcome, command, waiting.has_acted) == ("starting", None, False)
    coming, command = BEGUN.step(seen(stopped("Always"), PENDING))
    assert (coming.outcome, command, coming.has_acted) == ("starting", None, False)


def test_the_more_often_it_fails_the_longer_is_waited() -> None:
    entry, failed, now, asked = BEGUN, stopped("Manual"), 0, list[int]()
    while now < 150:
        entry, command = entry.step(seen(failed, FAILED, after=now))
        if command is not None:
            asked.append(now)
            entry = entry.answered(Answer(START), NOW + now)
        now += 1
    assert asked == [0, 4, 12, 28, 60, 92, 124]


def test_what_is_gone_twice_before_it_was_seen_running_fails_and_is_not_forgotten() -> None:
    """KubeVirt may be about to start it once more."""
    once, command = BEGUN.step(seen(stopped("RerunOnFailure")))
    assert (once.unfinished, command) == (True, None)
    coming, _command = once.step(seen(stopped("RerunOnFailure"), PENDING))
    again, _command = coming.step(seen(stopped("RerunOnFailure")))
    assert again.unfinished
    failed, command = again.step(seen(stopped("RerunOnFailure")))
    assert (failed.has_failed, command) == (True, None)
    assert failed.status().startswith("failed, it ended before it was seen running; start it, or ")


@pytest.mark.parametrize("vmi", [(FAILED,), ()], ids=["failed", "gone"])
def test_what_was_seen_running_may_end_before_its_mark_is_off(vmi: tuple[SeenVmi, ...]) -> None:
    running, _command = BEGUN.step(seen(stopped("Manual"), RUNS))
    assert running.step(seen(stopped("Manual"), *vmi))[1] == FORGET


@pytest.mark.parametrize("command", [START, FORGET], ids=["start", "mark"])
def test_what_is_refused_for_good_fails(command: Any) -> None:
    failed = BEGUN.answered(Answer(command, "a webhook forbids it"), NOW)
    assert (failed.status(), failed.has_failed, failed.has_acted) == ("failed, a webhook forbids it", True, False)
    assert failed.step(seen(stopped("Always"), RUNS)) == (failed, None)


@pytest.mark.parametrize(
    ("ready", "command", "status"),
    [(1, None, "starting, 1 of 2 replicas are ready"), (2, FORGET_SET, "waiting"), (3, FORGET_SET, "waiting")],
)
def test_a_replica_set_is_waited_for(ready: int, command: Any, status: str) -> None:
    found = SeenReplicaSet("uid-set", ready, {"n1": 2, "n2": 3})
    entry, given = OF_SET.step(moment(replica_sets={"shop/set": found}))
    assert (given, entry.status()) == (command, status)
    assert OF_SET.step(moment())[1] == FORGET_SET


def test_a_start_is_only_carried_out_by_who_is_to_start() -> None:
    """A drain leaves it to whoever gives the node back."""
    plan, shown = plan_of([WEB]), look(vms={"shop/web": stopped("Halted", "Always")})
    for kinds, commands in ((frozenset({ActionKind.START}), (START,)), (Execution("", "").kinds, ())):
        execution = Execution("", "", kinds=kinds)
        assert advance(plan, follow(plan, Record(), execution), shown, NOW, execution)[1] == commands


@pytest.mark.parametrize(
    ("first", "vmi", "words", "is_over"),
    [
        (stopped("Halted", "Always"), (), {}, False),
        (stopped("Always"), (PENDING,), {}, False),
        (stopped("Always"), (replace(PENDING, node="n1"),), {}, True),
        (stopped("Always"), (PENDING,), {"uid-new": "0/6"}, True),
        (stopped("Manual"), (FAILED,), {}, True),
        (stopped("Always"), (ENDING,), {}, True),
        (None, (), {}, True),
    ],
    ids=["wanted", "no node yet", "placed", "no node fits", "fails", "is ending", "deleted"],
)
@pytest.mark.parametrize("alive", [False, True])
def test_who_starts_after_another_waits_until_that_has_its_node_or_none(
    first: SeenVm | None, vmi: tuple[SeenVmi, ...], words: dict[str, str], is_over: bool, alive: bool
) -> None:
    """Or something comes in its way: nobody stays off for its sake. Who runs on waits for nobody, having its place."""
    late = replace(action(ActionKind.START, ObjectReference(VM, "shop", "api", "uid-api"), "n1"), after=(WEB.id,))
    plan, execution = plan_of([WEB, late]), Execution("", "", kinds=frozenset({ActionKind.START}))
    vms = {"shop/api": SeenVm("uid-api", "Halted", before={"n1": "Always"}), **({"shop/web": first} if first else {})}
    shown = look(
        *vmi,
        *((seen_vmi("api", owner_kind=VM, owner="api", owner_uid="uid-api"),) if alive else ()),
        vms=vms,
        words=words,
    )
    record, asked = follow(plan, Record(), execution), set[str]()
    for now in (NOW, NOW + 5.0):
        record, commands = advance(plan, record, shown, now, execution)
        asked |= {command.action for command in commands}
        record = answered(record, (Answer(FORGET, needless=True) for command in commands if command == FORGET), now)
    assert (late.id in asked) is (is_over or alive)
    if late.id not in asked:
        assert record.entries[late.id].status() == "waiting, by the plan others start before it"


@pytest.mark.parametrize("vmi", [(), (PENDING,)], ids=["no VMI", "no pod"])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("first", ["Halted", "Always"], ids=["asked for", "an earlier task has asked for it"])
def test_nobody_stays_off_for_those_for_which_no_pod_is_made(vmi: tuple[SeenVmi, ...], lost: bool, first: str) -> None:
    """As there is a quota, a webhook refuses it, or KubeVirt's controllers are away: no word tells of that."""
    names = ["web", *(f"late-{number}" for number in range(9))]
    actions = list[Action]()
    for name in names:  # each after all before it, as of VMs that need each other
        reference = ObjectReference(VM, "shop", name, "uid-vm" if name == "web" else f"uid-{name}")
        before = tuple(one.id for one in actions)
        actions.append(replace(action(ActionKind.START, reference, "n1"), after=before))
    plan, execution = plan_of(actions), Execution("", "", kinds=frozenset({ActionKind.START}))
    off = {f"shop/{name}": SeenVm(f"uid-{name}", "Halted", before={"n1": "Always"}) for name in names[1:]}
    record, asked = follow(plan, Record(), execution), dict[str, int]()
    for second in range(90):
        is_off = first == "Halted" and not second
        web = stopped("Halted", "Always") if is_off else stopped("Always", "")
        shown = look(*(() if is_off else vmi), vms={"shop/web": web, **off})
        record, commands = advance(plan, record, shown, NOW + second, execution)
        for command in commands:
            asked.setdefault(command.action, second)
            if command.action != actions[0].id:
                title = command.action.partition(".start.")[2]
                if not lost or second % 4 == 3:  # else it was not carried out
                    off[title] = replace(off[title], strategy="Always", before={"n1": ""})
        record = answered(record, (Answer(command, lost=lost) for command in commands), NOW + second)
    if first == "Halted":
        assert asked.pop(actions[0].id) == 0
    assert (len(asked), min(asked.values()), max(asked.values()) <= 30 + 8 * 6) == (9, 30, True)


def test_check_mode_and_other_plans_change_nothing_of_it() -> None:
    assert BEGUN.rehearsed().result()["outcome"] == "would_start"
    assert (BEGUN.redirected(WEB), BEGUN.forgotten()) == (BEGUN, None)
    coming = replace(BEGUN, outcome="starting")
    assert coming.forgotten() == coming
