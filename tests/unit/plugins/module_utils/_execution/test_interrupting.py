# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Answer, Interrupt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import (
    STOPPED_BY_OTHERS,
    Interrupting,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import SeenReplicaSet, SeenVm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI_REPLICA_SET,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

from unit.plugins.module_utils._execution.moments import NOW, moment, seen_vmi
from unit.plugins.module_utils._plan.plans import action, refused, vm

RESTART = Interrupting.begin(action(ActionKind.RESTART, vm("web"), "n1", "n4"))
STOP = Interrupting.begin(action(ActionKind.STOP, vm("web"), "n1"))
OF_VM = {"owner_kind": VM, "owner": "web", "owner_uid": "uid-vm"}
OF_SET = {"owner_kind": VMI_REPLICA_SET, "owner": "set", "owner_uid": "uid-set"}
WEB, REPLICA = seen_vmi(**OF_VM), seen_vmi(**OF_SET)


def asked(entry: Interrupting, *there: Any, **others: Any) -> tuple[Interrupting, Interrupt]:
    """After its command was carried out."""
    entry, command = entry.step(moment(*there, **others))
    assert command is not None
    return entry.answered(Answer(command), NOW), command


def lost(entry: Interrupting, words: str = "") -> Interrupting:
    """After its command had no answer, or one with these words that tells as little."""
    entry, command = entry.step(moment(WEB))
    assert command is not None
    return entry.answered(Answer(command, words, passing=bool(words), lost=True), NOW)


@pytest.mark.parametrize(("entry", "stop"), [(RESTART, False), (STOP, True)], ids=["restart", "stop"])
def test_this_very_vm_is_ended(entry: Interrupting, stop: bool) -> None:
    _entry, command = asked(entry, WEB)
    assert (command.uid, command.owner_kind, command.owner, command.stop) == ("uid-web", VM, "web", stop)


@pytest.mark.parametrize(
    "shown", [moment(WEB, ready=False), moment(replace(WEB, ending=True)), moment()], ids=["waits", "ending", "gone"]
)
def test_nothing_is_asked_where_nothing_is_to_be_done(shown: Any) -> None:
    assert RESTART.step(shown)[1] is None


def test_a_stop_is_over_when_the_vm_has_gone() -> None:
    entry, _command = asked(STOP, WEB)
    assert entry.step(moment(replace(WEB, ending=True)))[0].status() == "stopping"
    assert entry.step(moment(after=5.0))[0].status() == "stopped in 5 s"


def test_who_can_be_migrated_by_now_is_not_ended_unless_that_was_asked_for_before() -> None:
    """What was asked for is followed to its end: its VM may know of it, or have the mark of a stop."""
    stop = Interrupting.begin(refused(action(ActionKind.STOP, vm("web"), "n1")))
    fixed = replace(WEB, is_refused=True)
    doubtful, command = stop.step(moment(WEB))
    assert (doubtful.is_doubtful, command) == (True, None)
    sure, command = doubtful.step(moment(fixed))
    assert (sure.is_doubtful, command is not None) == (False, True)
    tried, command = stop.step(moment(fixed))
    assert command is not None
    tried = tried.answered(Answer(command, "the server fails", passing=True), NOW)
    again, command = tried.step(moment(WEB, after=5.0))
    assert (again.is_doubtful, command is not None) == (False, True)


def test_a_stop_that_somebody_has_undone_is_not_asked_for_again_of_who_can_be_migrated_by_now() -> None:
    """Its VM is to run again before the VMI has ended."""
    stop = Interrupting.begin(refused(action(ActionKind.STOP, vm("web"), "n1")))
    entry, command = asked(stop, replace(WEB, is_refused=True))
    entry, again = entry.step(moment(WEB, after=5.0))
    assert (entry.outcome, command.if_refused, again) == ("ending", True, command)
    assert again is not None
    entry = entry.answered(
        Answer(again, "it can be migrated by now", passing=True, needless=True, spared=True), NOW + 5.0
    )
    doubtful, again = entry.step(moment(WEB, after=9.0))
    assert (doubtful.outcome, doubtful.is_doubtful, again) == ("waiting", True, None)
    # Whatever ends it now, its VM does not have the mark of this stop.
    gone, _nothing = doubtful.step(moment(after=10.0))
    over, _nothing = gone.step(moment(after=11.0, vms={"shop/web": SeenVm("uid-vm", "Halted")}))
    assert over.outcome == "ended"


def test_where_it_runs_again_is_not_what_another_plan_says() -> None:
    """It was made anew by others, or is on its way."""
    successor = seen_vmi(uid="uid-new", node="n5", **OF_VM)
    for seen in (successor, replace(successor, node="", phase="Scheduling")):
        entry, _command = RESTART.step(moment(seen))
        assert entry.redirected(action(ActionKind.RESTART, vm("web"), "n1", "n7")) == entry


def test_who_is_restarted_for_another_reason_in_the_end_says_so() -> None:
    """A restart that was refused has left nothing: what the plan has said since counts."""
    restart = Interrupting.begin(refused(action(ActionKind.RESTART, vm("web"), "n1", "n4")))
    tried, command = restart.step(moment(replace(WEB, is_refused=True)))
    assert command is not None
    tried = tried.answered(Answer(command, "the server is busy", passing=True), NOW)
    doubtful, command = tried.step(moment(WEB, after=5.0))
    assert (doubtful.is_doubtful, command) == (True, None)
    why = "It is shut down. Why: no node can take it."
    again = doubtful.redirected(replace(action(ActionKind.RESTART, vm("web"), "n1", "n5"), why=why))
    assert (again.why, again.target_node) == ("no node can take it", "n5")
    assert again.step(moment(WEB, after=9.0))[1] is not None


def test_another_vm_of_its_name_is_left_alone() -> None:
    another = seen_vmi(uid="uid-of-another", owner_kind=VM, owner="web", owner_uid="uid-of-another-vm")
    entry, command = STOP.step(moment(another))
    assert (entry.outcome, command) == ("ended", None)


def test_a_restart_is_over_when_its_successor_runs() -> None:
    entry, _command = asked(RESTART, WEB)
    pending = seen_vmi(uid="uid-new", node="", phase="Scheduling", **OF_VM)
    waiting, _nothing = entry.step(moment(pending, words={"uid-new": "0/6 nodes"}))
    assert waiting.status() == "restarting, no node fits: 0/6 nodes"
    assert dict(waiting.questions().unplaced) == {"uid-new": "shop"}
    running = seen_vmi(uid="uid-new", node="n5", **OF_VM)
    assert waiting.step(moment(running, after=9.0))[0].status() == "restarted on n5 in 9 s"


@pytest.mark.parametrize("strategy", ["Always", "Manual"])
def test_a_vmi_that_somebody_makes_of_its_name_is_no_successor(strategy: str) -> None:
    """KubeVirt makes it the VM's own a little later."""
    entry, _command = asked(RESTART, WEB)
    made = seen_vmi(uid="uid-new", node="n5")
    for when in (3.0, 6.0, 7.0):
        entry, _nothing = entry.step(moment(made, after=when, vms={"shop/web": SeenVm("uid-vm", strategy)}))
        assert entry.status() == "restarting"
    adopted = replace(made, owner_kind=VM, owner="web", owner_uid="uid-vm")
    assert entry.step(moment(adopted, after=9.0))[0].status() == "restarted on n5 in 9 s"


@pytest.mark.parametrize(
    ("made", "strategy"),
    [({"ending": True}, "Manual"), ({"owner_uid": "uid-set"}, "Manual"), ({}, "Halted")],
    ids=["ending", "of something else", "of a VM that is off"],
)
def test_what_kubevirt_does_not_make_a_vms_own_does_not_bring_it_back(made: dict[str, Any], strategy: str) -> None:
    entry, _command = asked(RESTART, WEB)
    shown = seen_vmi(uid="uid-new", node="n5", **made)
    for when in (3.0, 6.0):
        entry, _nothing = entry.step(moment(shown, after=when, vms={"shop/web": SeenVm("uid-vm", strategy)}))
    assert entry.status() == f"failed, it has ended, and nothing starts it again, as its VM has run strategy {strategy}"


def test_who_was_made_anew_on_its_node_before_anything_was_done_is_not_restarted() -> None:
    """But who was, and comes to its node again, is."""
    anew = seen_vmi(uid="uid-new", **OF_VM)
    ended, _nothing = RESTART.step(moment(anew))
    assert (ended.outcome, ended.had_gone, ended.has_acted) == ("ended", True, False)
    there, _command = asked(RESTART, WEB)
    again, _nothing = there.step(moment(anew, after=3.0))
    assert (again.outcome, again.target_node, again.had_gone) == ("restarted", "n1", False)


def test_a_replica_is_not_ended_before_it_is_known_who_was_there() -> None:
    entry, command = RESTART.step(moment(REPLICA))
    assert command is None
    assert entry.questions().owners == {("shop", "uid-set")}
    entry, command = asked(entry, REPLICA, siblings={"uid-set": (REPLICA, seen_vmi("old"))})
    assert entry.known == ("uid-web", "uid-old")


def test_the_successor_of_a_replica_is_a_new_one_that_nobody_else_counts() -> None:
    entry, _command = asked(RESTART, REPLICA, siblings={"uid-set": (REPLICA, seen_vmi("old"))})
    siblings = {"uid-set": tuple(seen_vmi(name, "n4") for name in ("fresh", "fresher", "old"))}
    ended, _nothing = entry.step(moment(siblings=siblings, taken=frozenset({"uid-fresh"})))
    assert (ended.outcome, ended.successor, ended.target_node) == ("restarted", "fresher", "n4")


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (SeenReplicaSet("uid-set", ready=1, wanted={}, replicas=2), "ending"),
        (SeenReplicaSet("uid-set", ready=1, wanted={}, replicas=1), "ended"),
        (SeenReplicaSet("uid-set", ready=1, wanted={}, replicas=2, ending=True), "ended"),
        (SeenReplicaSet("uid-of-another", ready=1, wanted={}, replicas=2), "ended"),
        (None, "ended"),
    ],
    ids=["wanted", "scaled-down", "deleted", "another", "gone"],
)
def test_a_replica_that_nobody_wants_any_more_is_not_waited_for(found: SeenReplicaSet | None, outcome: str) -> None:
    siblings = {"uid-set": (REPLICA, seen_vmi("old"))}
    entry, _command = asked(RESTART, REPLICA, siblings=siblings)
    left = {"uid-set": (seen_vmi("old"),)}
    entry, _nothing = entry.step(moment(siblings=left))
    assert (entry.outcome, entry.questions().replica_sets) == ("ending", frozenset({"shop/set"}))
    sets = {"shop/set": found} if found else {}
    assert entry.step(moment(siblings=left, replica_sets=sets))[0].outcome == outcome


def test_a_replica_that_is_ending_already_has_no_old_successor() -> None:
    """Its replica set may have made another one, which is on its way; all that run were there before."""
    ending, old = replace(REPLICA, ending=True), seen_vmi("old", "n3", **OF_SET)
    entry, _nothing = RESTART.step(moment(ending))
    entry, _nothing = entry.step(moment(ending, siblings={"uid-set": (ending, old)}))
    entry, _nothing = entry.step(moment(siblings={"uid-set": (old,)}, after=3.0))
    assert entry.outcome == "ending"
    new = seen_vmi("new", "n4", **OF_SET)
    entry, _nothing = entry.step(moment(siblings={"uid-set": (new, old)}, after=4.0))
    assert (entry.outcome, entry.successor, entry.has_acted) == ("restarted", "new", False)


def test_a_vm_that_runs_elsewhere_is_left_alone() -> None:
    entry, command = STOP.step(moment(replace(WEB, node="n7")))
    assert (entry.status(), entry.has_acted, command) == ("not interrupted, it is on n7 already", False, None)


@pytest.mark.parametrize(
    ("marks", "outcome"), [({"n1": "Always"}, "stopped"), ({"n3": "Always"}, "ended"), ({}, "ended")]
)
def test_whether_a_vm_that_is_gone_was_stopped_its_mark_tells(marks: dict[str, str], outcome: str) -> None:
    entry, _nothing = STOP.step(moment())
    assert (entry.outcome, entry.questions().vms) == ("ending", frozenset({"shop/web"}))
    found = SeenVm("uid-vm", "Halted", before=marks)
    ended, _nothing = entry.step(moment(vms={"shop/web": found}))
    assert (ended.outcome, ended.reason) == (outcome, "" if outcome == "stopped" else STOPPED_BY_OTHERS)


@pytest.mark.parametrize(("marks", "outcome"), [({"n1": "Always"}, "stopped"), ({}, "ended")])
def test_a_vmi_that_somebody_gives_its_name_tells_nothing_of_a_vm_that_was_stopped(
    marks: dict[str, str], outcome: str
) -> None:
    made = seen_vmi(uid="uid-of-nobody")
    entry, _nothing = STOP.step(moment(made))
    assert (entry.outcome, entry.questions().vms) == ("ending", frozenset({"shop/web"}))
    ended, command = entry.step(moment(made, vms={"shop/web": SeenVm("uid-vm", "Halted", before=marks)}))
    assert (ended.outcome, command) == (outcome, None)


def test_who_has_stopped_a_vm_is_said_unless_it_has_moved_away() -> None:
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    theirs = entry.answered(Answer(command, STOPPED_BY_OTHERS, passing=True, needless=True), NOW)
    assert (theirs.has_acted, theirs.status()) == (False, "waiting, somebody else has stopped its VM")
    assert (theirs.rehearsed().outcome, entry.rehearsed().outcome) == ("ended", "would_stop")
    assert theirs.step(moment(replace(WEB, node="n7")))[0].reason == ""
    missing, _nothing = theirs.step(moment(after=1.0))
    assert missing.step(moment(after=1.0))[0].status() == "ended, somebody else has stopped its VM"


@pytest.mark.parametrize("words", ["", "the server fails"])
@pytest.mark.parametrize("there", [(), (seen_vmi(uid="uid-new"),), (replace(WEB, phase="Failed"),)])
@pytest.mark.parametrize(("marks", "outcome"), [({"n1": "Always"}, "stopped"), ({}, "ended")])
def test_whether_a_stop_without_an_answer_was_carried_out_its_mark_tells(
    words: str, there: tuple[Any, ...], marks: dict[str, str], outcome: str
) -> None:
    """Its VM may have ended by itself just then, and even run again."""
    entry = lost(STOP, words)
    entry, _nothing = entry.step(moment(*there, after=1.0))
    assert entry.questions().vms == frozenset({"shop/web"})
    found = SeenVm("uid-vm", "Always", before=marks)
    ended, _nothing = entry.step(moment(*there, after=1.0, vms={"shop/web": found}))
    assert (ended.outcome, ended.has_acted) == (outcome, outcome == "stopped")


@pytest.mark.parametrize("there", [{}, {"shop/web": SeenVm("uid-of-another", "Always")}], ids=["gone", "another"])
def test_nothing_tells_of_a_stop_without_an_answer_when_its_vm_is_gone_too(there: dict[str, SeenVm]) -> None:
    entry, _nothing = lost(STOP).step(moment(after=1.0))
    ended, _nothing = entry.step(moment(after=1.0, vms=there))
    assert (ended.outcome, ended.has_acted) == ("ended", True)


@pytest.mark.parametrize("words", ["", "the server fails"])
@pytest.mark.parametrize("begun", [RESTART, STOP], ids=["restart", "stop"])
def test_what_no_answer_and_no_later_look_tells_was_not_carried_out(begun: Interrupting, words: str) -> None:
    entry, there = lost(begun, words), {"shop/web": SeenVm("uid-vm", "Manual")}
    assert (entry.questions().vmis, entry.questions().vms) == (frozenset({"shop/web"}),) * 2
    early, command = entry.step(moment(WEB, after=1.0, vms=there))
    assert (early.has_acted, command) == (True, None)
    intact, command = early.step(moment(WEB, after=2.0, vms=there))
    assert (intact.has_acted, command is not None, intact.questions().vms) == (False, True, frozenset())
    moved, command = early.step(moment(replace(WEB, node="n7"), after=2.0, vms=there))
    assert (moved.has_acted, command is not None) == (False, begun is STOP)


def test_a_stop_that_came_to_nothing_is_taken_back_before_it_is_over() -> None:
    """Its owner may bear the mark of it."""
    begun, command = STOP.step(moment(WEB))
    assert command is not None
    elsewhere = moment(replace(WEB, node="n7"), after=1.0)
    moved, again = begun.step(elsewhere)
    assert (moved.outcome, again) == ("waiting", replace(command, begins=False))
    told = moved.answered(Answer(command, "it has just moved to n7", passing=True, needless=True), NOW + 1.0)
    (gone, nothing), (fresh, _none) = told.step(elsewhere), STOP.step(elsewhere)
    assert (gone.outcome, gone.target_node, nothing) == ("already_gone", "n7", None)
    assert fresh.outcome == "already_gone", "of what was never begun there is nothing to take back"


@pytest.mark.parametrize(
    ("begun", "vms"),
    [
        (RESTART, {}),
        (RESTART, {"shop/web": SeenVm("uid-vm", "Manual", stops=frozenset({"uid-web"}))}),
        (STOP, {"shop/web": SeenVm("uid-vm", "Manual", stops=frozenset({"uid-web"}))}),
        (STOP, {"shop/web": SeenVm("uid-vm", "Halted")}),
    ],
)
def test_what_no_answer_tells_may_be_known_to_its_vm_already(begun: Interrupting, vms: dict[str, SeenVm]) -> None:
    entry, command = lost(begun).step(moment(WEB, after=2.0, vms=vms))
    assert (entry.has_acted, command is not None) == (True, True)


def test_a_replica_that_is_as_it_was_was_not_stopped() -> None:
    entry, command = STOP.step(moment(REPLICA))
    assert command is not None
    entry = entry.answered(Answer(command, lost=True), NOW)
    assert (entry.questions().vmis, entry.questions().vms) == (frozenset({"shop/web"}), frozenset())
    assert not entry.step(moment(REPLICA, after=2.0))[0].has_acted


def test_what_ends_by_itself_after_a_restart_without_an_answer_is_not_waited_for() -> None:
    over = replace(WEB, phase="Succeeded")
    entry, _nothing = lost(RESTART).step(moment(over))
    assert entry.questions().vms == frozenset({"shop/web"})
    found = SeenVm("uid-vm", "RerunOnFailure")
    ended, _nothing = entry.step(moment(over, after=1.0, vms={"shop/web": found}))
    assert ended.status() == (
        "failed, it has ended, and nothing starts it again, as its VM has run strategy RerunOnFailure"
    )


def test_a_refusal_for_now_is_told() -> None:
    entry, command = STOP.step(moment(WEB))
    assert command is not None
    refused = entry.answered(Answer(command, "not now", passing=True), NOW)
    assert (refused.status(), refused.worth_telling, refused.has_acted) == ("waiting, not now", True, False)


def test_a_command_without_effect_is_given_again_after_a_moment() -> None:
    entry, command = asked(STOP, WEB)
    assert entry.step(moment(WEB, after=1.0))[1] is None
    assert entry.step(moment(WEB, after=2.0))[1] == command


def test_a_refusal_is_passing_or_lasts() -> None:
    _entry, command = asked(STOP, WEB)
    assert STOP.answered(Answer(command, "try again", passing=True), NOW).unfinished
    assert STOP.answered(Answer(command, "a webhook forbids it"), NOW).status() == "failed, a webhook forbids it"


def test_what_a_plan_forgets_is_kept_once_it_is_ending() -> None:
    entry, _command = asked(STOP, WEB)
    assert (STOP.forgotten(), entry.forgotten()) == (None, entry)


def test_another_plan_does_not_change_what_has_begun() -> None:
    changed = action(ActionKind.RESTART, vm("web"), "n1", "n6")
    entry, _command = asked(RESTART, WEB)
    assert (RESTART.redirected(changed).target_node, entry.redirected(changed).target_node) == ("n6", "n4")
