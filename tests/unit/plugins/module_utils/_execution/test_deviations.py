# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came true is counted, and whatever did not is told, with what was planned and what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import (
    Fidelity,
    Landings,
    fidelity,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Entry, FailedAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, ObjectReference

from unit.plugins.module_utils._plan.plans import action, plan, pod, vm

WEB = action(ActionKind.MIGRATE, vm("web"), "n1", "n2")
API = action(ActionKind.EVICT, pod("api"), "n1", "n2")
DB = action(ActionKind.STOP, vm("db"), "n1")
CACHE = action(ActionKind.RESTART, vm("cache"), "n1", "n3")
OTHERS = "somebody else has moved it"
CHOSEN = "the scheduler has preferred that node, by what was there then"
LOST = FailedAttempt("uid-1", "client socket is closed.", "n2")


def moved(of: Action = WEB, node: str = "n2", outcome: str = "migrated", **changes: Any) -> Migrating:
    return replace(Migrating.begin(of), node=node, outcome=outcome, **changes)


def gone(of: Action = API, outcome: str = "evicted", **changes: Any) -> Evicting:
    return replace(Evicting.begin(of), outcome=outcome, **changes)


def off(of: Action = DB, outcome: str = "stopped", **changes: Any) -> Interrupting:
    return replace(Interrupting.begin(of), outcome=outcome, **changes)


def found(
    *actions: Action,
    entries: Sequence[Entry],
    node: str = "n1",
    missed: Sequence[Action] = (),
    landings: Landings | None = None,
) -> Fidelity:
    record = Record({str(number): entry for number, entry in enumerate(entries)})
    return fidelity(plan(*actions), node, record, {action.id for action in missed}, landings)


def test_a_drain_that_goes_as_planned_deviates_in_nothing() -> None:
    done: list[Entry] = [moved(), gone(), off(), off(CACHE, "restarted", target_node="n3")]
    assert found(WEB, API, DB, CACHE, entries=done) == Fidelity(4, ())


def test_in_check_mode_it_would() -> None:
    would: list[Entry] = [
        moved(outcome="would_migrate", node="n1"),
        gone(outcome="would_evict"),
        off(outcome="would_stop"),
    ]
    assert found(WEB, API, DB, entries=would) == Fidelity(3, ())


@pytest.mark.parametrize(
    ("planned", "entries", "told"),
    [
        (WEB, [moved(node="n4", failed=(LOST,))], ("goes to n2", "migrated to n4", "client socket is closed")),
        (WEB, [moved(outcome="already_there", node="n4")], ("goes to n2", "already there", OTHERS)),
        (WEB, [moved(node="n4")], ("goes to n2", "migrated to n4", "")),
        (WEB, [moved(outcome="failed", failed=(LOST,))], ("goes to n2", "failed, client", "client socket is closed")),
        (
            WEB,
            [moved(outcome="failed", failed=(LOST,)), off(replace(DB, object=vm("web")), why="no node fits")],
            ("goes to n2", "stopped in", "no node fits"),
        ),
        (WEB, [], ("goes to n2", "had left the node already, or was not there any more", "")),
        (
            DB,
            [moved(replace(WEB, object=vm("db")))],
            ("stops until its node is back", "migrated to n2", "it can be migrated"),
        ),
        (CACHE, [off(CACHE, "restarted", target_node="n4")], ("starts anew on n3", "restarted on n4", CHOSEN)),
        (CACHE, [off(CACHE, "already_gone", target_node="n4")], ("starts anew on n3", "not interrupted", OTHERS)),
        (API, [gone(outcome="failed", refusal="no")], ("is evicted", "failed, no", "no")),
        (API, [gone(outcome="waiting", refusal="a budget")], ("is evicted", "held back", "a budget")),
    ],
)
def test_what_deviates(planned: Action, entries: list[Entry], told: tuple[str, str, str]) -> None:
    came = found(planned, entries=entries)
    (entry,) = came.deviations
    assert (came.as_planned, entry.why) == (0, told[2])
    assert (entry.planned.startswith(told[0]), entry.done.startswith(told[1])) == (True, True)
    assert (entry.namespace, entry.name) == ("shop", planned.object.name)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (moved(node="n4"), "n2 is full"),
        (moved(node="n4", failed=(LOST,)), "client socket is closed"),
        (moved(outcome="already_there", node="n5"), OTHERS),
        (moved(node="n5"), ""),
    ],
    ids=["as mended", "after an attempt that failed", "by somebody else", "as nobody knows why"],
)
def test_why_a_mended_plan_has_it_otherwise_is_told(entry: Migrating, why: str) -> None:
    now = replace(WEB, target="n4").instead_of("n2", "n2 is full")
    record = Record({"0": replace(entry, action=WEB.id)})
    (told,) = fidelity(plan(WEB), "n1", record, mended=plan(now)).deviations
    assert (told.planned, told.why) == ("goes to n2", why)
    same = replace(WEB).instead_of("n3", "n3 is full")
    (told,) = fidelity(plan(same), "n1", record, mended=plan(same)).deviations
    assert told.why == ("" if why == "n2 is full" else why), "it is about another node"


def test_a_pod_that_has_gone_meanwhile_has_left() -> None:
    assert found(API, entries=[]) == Fidelity(1, ())
    assert found(API, entries=[gone()]) == Fidelity(1, ())
    assert found(API, entries=[gone(outcome="gone")]) == Fidelity(1, ())


def seen(*nodes: str, **changes: Any) -> Landings:
    """Of one controller of all these pods."""
    pods = ("api", "api-2", "theirs")
    return replace(Landings({f"uid-{name}": "o" for name in pods}, {"o": nodes}), **changes)


def landed(*actions: Action, landings: Landings) -> list[tuple[str, str, str, str, bool]]:
    came = found(*actions, entries=[gone(each) for each in actions if each.node == "n1"], landings=landings)
    assert came.as_planned + len(came.deviations) == sum(each.node == "n1" for each in actions)
    return [(each.name, each.planned, each.done, each.why, each.assumed) for each in came.deviations]


def test_a_pod_that_comes_back_where_it_is_expected_came_true() -> None:
    assert landed(API, landings=seen("n2")) == []
    twin = action(ActionKind.EVICT, pod("api-2"), "n1", "n3")
    assert landed(API, twin, landings=seen("n3", "n2")) == []


@pytest.mark.parametrize(
    ("planned", "landings", "done", "why"),
    [
        (API, seen("n3"), "came back on n3", CHOSEN),
        (API, seen("n3", closed={"n2": "n2 is cordoned"}), "came back on n3", "n2 is cordoned"),
        (API, seen(""), "was not seen to come back", "nothing had a node in its place yet"),
        (API, seen(), "was not seen to come back", "nothing had a node in its place yet"),
        (API, seen(trouble="no answer"), "was not seen to come back", "no answer"),
        (API, seen("n2", controllers={}), "was not seen to come back", "it had gone before anybody looked"),
    ],
)
def test_a_pod_that_does_not_come_back_where_it_is_expected(
    planned: Action, landings: Landings, done: str, why: str
) -> None:
    assert landed(planned, landings=landings) == [("api", "comes back on n2", done, why, False)]


def test_what_was_only_assumed_is_told_so() -> None:
    unsure = replace(API, assumed=("others come later",))
    why = "it was only assumed that others come later"
    assert landed(unsure, landings=seen("n3")) == [("api", "comes back on n2", "came back on n3", why, True)]


def test_who_comes_where_somebody_elses_are_expected_is_theirs() -> None:
    theirs = action(ActionKind.EVICT, pod("theirs"), "n9", "n4")
    assert landed(API, theirs, landings=seen("n4", "n3"))[0][2] == "came back on n3"
    assert landed(API, theirs, landings=seen("n4"))[0][2] == "came back on n4"


def test_where_the_plan_tells_no_node_none_is_asked_for() -> None:
    assert landed(replace(API, target=None), landings=seen("n3")) == []


@pytest.mark.parametrize("entries", [[], [gone()]], ids=["not looked for", "looked for"])
def test_a_pod_that_was_gone_before_was_not_evicted(entries: list[Entry]) -> None:
    came = found(API, entries=entries, missed=[API])
    assert [entry.done for entry in came.deviations] == ["had left the node already, or was not there any more"]
    assert came.as_planned == 0


def test_a_replacement_that_went_elsewhere_was_not_evicted() -> None:
    foretold = action(ActionKind.EVICT, ObjectReference("Pod", "shop", "api-1/2", ""), "n1")
    (entry,) = found(foretold, entries=[], missed=[foretold]).deviations
    assert (entry.name, entry.planned, entry.done) == ("api-1/2", "is evicted", "was not there")
    # Unless it came after the node was looked at.
    assert found(foretold, entries=[gone(replace(API, object=pod("api-9")))], missed=[foretold]) == Fidelity(1, ())


def test_what_was_not_there_when_it_was_planned() -> None:
    (entry,) = found(WEB, entries=[moved(), moved(replace(WEB, object=vm("new")), node="n3")]).deviations
    assert (entry.name, entry.planned, entry.done) == ("new", "nothing, as it was not there", "migrated to n3")


def test_what_leaves_other_nodes_is_told_of_these() -> None:
    other = action(ActionKind.MIGRATE, vm("other"), "n9", "n2")
    assert found(WEB, other, entries=[moved(), moved(other, node="n5")]) == Fidelity(1, ())


def later(name: str, target: str) -> Action:
    """Of a VMI that the plan brings about itself."""
    return action(ActionKind.MIGRATE, ObjectReference("VirtualMachineInstance", "shop", name, ""), "n1", target)


def test_what_was_foretold_is_found_by_its_kin() -> None:
    first, second = later("set-ccccc", "n2"), later("set-bbbbb", "n3")
    actual = [
        moved(replace(WEB, object=vm("set-xxxxx")), node="n3"),
        moved(replace(WEB, object=vm("set-zzzzz")), node="n2"),
    ]
    assert found(first, second, entries=actual) == Fidelity(2, ())
    replacement = action(ActionKind.EVICT, ObjectReference("Pod", "shop", "api-1/2", ""), "n1")
    assert found(replacement, entries=[gone(replace(API, object=pod("api-9")))]) == Fidelity(1, ())


def test_a_vm_that_keeps_its_name_is_not_taken_for_another() -> None:
    """Their names have the same beginning, and end after it with five more letters."""
    entries = [moved(replace(WEB, object=vm("dataform")))]
    came = found(later("database", "n2"), entries=entries)
    assert [(entry.name, entry.done) for entry in came.deviations] == [
        ("database", "was not there"),
        ("dataform", "migrated to n2"),
    ]
    assert came.as_planned == 0


def test_what_was_foretold_is_rather_that_of_its_own_name() -> None:
    """A VM may have a name that looks as if its end were made up."""
    entries = [
        moved(replace(WEB, object=vm(name)), node=node) for name, node in (("db-22222", "n2"), ("db-44444", "n3"))
    ]
    other, own = later("db-55555", "n2"), later("db-22222", "n3")
    assert [(entry.name, entry.done) for entry in found(other, own, entries=entries).deviations] == [
        ("db-55555", "migrated to n3"),
        ("db-22222", "migrated to n2"),
    ]


def test_one_of_its_kin_on_another_node_is_not_what_was_foretold() -> None:
    def evicted(name: str, node: str) -> Action:
        return action(ActionKind.EVICT, ObjectReference("Pod", "shop", name, ""), node)

    here, elsewhere = evicted("api-1/2", "n1"), evicted("api-3/4", "n2")
    entries = [gone(replace(API, object=pod("api-9"), node="n2", source="n2"))]
    (entry,) = found(here, elsewhere, entries=entries, missed=[here]).deviations
    assert (entry.name, entry.done) == ("api-1/2", "was not there")
    assert found(here, elsewhere, entries=entries, node="n2") == Fidelity(1, ())
