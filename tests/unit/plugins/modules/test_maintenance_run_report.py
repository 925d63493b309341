# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each start of a run tells of what it did is kept in the cluster for as long as its record, and no longer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import run_report
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import Maintain, invocation
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CONFIG_MAPS, RunApi, running


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def store(connection: dict[str, Any]) -> RunStore:
    return RunStore(connect_by(connection, 5), "kernel", "medik8s-leases")


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Maintain:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    return partial(run_module, main, **{**connection, "run": "kernel", "_invocation": invocation("a1")})


def test_a_report_is_kept_with_the_record(maintain: Maintain, api: RunApi) -> None:
    """For who reads it later, with that of each start of the run; whoever asks for nothing to be kept gets none."""
    for start, lines in (("a1", ["n1: failed"]), ("b2", ["n1: done", "n2: done"])):
        own = invocation(start)
        maintain(_invocation=own)
        assert maintain(_invocation=own, state="released", report=lines, keep_record=True)["documents"] == ["report"]
    api.requests.clear()
    read = maintain(_invocation=invocation("c3"), state="released", keep_record=True)
    assert (read["changed"], api.writes()) == (False, [])
    assert [re.sub("[0-9:-]+T[0-9:]+Z", "TIME", line) for line in read["report"]] == [
        "Told by joe on controller, TIME.",
        "n1: failed",
        "Told by joe on controller, TIME.",
        "n1: done",
        "n2: done",
    ]
    assert maintain(state="released")["changed"]
    assert api.config_maps() == []


def test_a_report_is_kept_once(maintain: Maintain, api: RunApi) -> None:
    """Though the task is done again."""
    for lines in (["n1: failed"], ["n1: done"]):
        maintain()
        told = maintain(state="released", report=lines, keep_record=True)["report"]
        assert told[1:] == lines


def test_of_a_run_that_is_started_again_and_again_the_first_and_the_newest_are_kept(
    maintain: Maintain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "MOST", 3)
    told: list[list[str]] = []
    for number in range(6):
        own = invocation(f"start-{number}")
        for _attempt in range(2):
            maintain(_invocation=own)
            result = maintain(_invocation=own, state="released", report=[f"report {number}"], keep_record=True)
        told.append([line for line in result["report"] if not line.startswith("Told by ")])
    assert told[:3] == [[f"report {number}" for number in range(count)] for count in (1, 2, 3)]
    left_out = "Starts of the run whose reports are left out here"
    assert told[3:] == [
        ["report 0", f"{left_out}: {last - 2}.", f"report {last - 1}", f"report {last}"] for last in (3, 4, 5)
    ]
    assert maintain(state="released", keep_record=True)["report"] == result["report"]


@pytest.mark.parametrize(("keep", "check"), [(False, False), (True, True)])
def test_no_report_is_kept_that_nobody_has_asked_for(maintain: Maintain, api: RunApi, keep: bool, check: bool) -> None:
    maintain()
    result = maintain(state="released", report=["n1: done"], keep_record=keep, check=check)
    assert (result["documents"], result["report"], api.config_maps()) == ([], [], [])


def test_a_report_that_cannot_be_kept_keeps_nobody_from_letting_go(maintain: Maintain, api: RunApi) -> None:
    maintain()

    def refuse(request: Request) -> Answer | None:
        return refusal(403, "Forbidden", "no config maps") if request.method == "POST" else None

    api.faults[CONFIG_MAPS] = refuse
    result = maintain(state="released", report=["n1: done"], keep_record=True)
    assert (result["changed"], result["report"], api.run_lease()) == (True, [], None)
    assert "no config maps" in str(result["warnings"])


def test_who_has_just_lost_the_run_removes_nothing_of_it(maintain: Maintain, api: RunApi) -> None:
    """Another invocation has taken it since the look at the beginning, and goes by what the run remembers."""
    maintain()
    maintain(state="released", report=["n1: failed"], keep_record=True)
    maintain()
    documents = api.config_maps()

    def lose(request: Request) -> Answer | None:
        api.hold_run("b2")
        return None

    assert documents
    api.faults[CONFIG_MAPS] = lose
    result = maintain(state="released")
    assert (result["failed"], result["error"]["reason"], api.config_maps()) == (True, "RunLost", documents)


def test_who_has_lost_the_run_leaves_no_report(maintain: Maintain, api: RunApi) -> None:
    maintain()
    api.hold_run("b2")
    result = maintain(state="released", report=["n1: done"], keep_record=True)
    assert (result["report"], api.config_maps()) == ([], [])


def test_nothing_that_is_kept_steers_the_terminal_or_forges_a_line(maintain: Maintain, store: RunStore) -> None:
    """Whoever may write ConfigMaps there may have written it."""
    part = {"invocation": "x", "user": "joe\n\x1b[2J", "host": "here", "told": "now", "lines": ["a\nn1: done\u202e"]}
    store.put(
        "report", json.dumps({"schema": "virtops.kubevirt/run-report/1", "parts": [part], "left_out": 0}).encode()
    )
    told = maintain(state="released", keep_record=True)["report"]
    assert (len(told), all(line.isprintable() for line in told)) == (2, True), told


@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b'{"schema": "another"}',
        b'{"schema": "virtops.kubevirt/run-report/1"}',
        b'{"schema": "virtops.kubevirt/run-report/1", "parts": [], "left_out": "2"}',
    ],
)
def test_a_report_that_is_none_is_told(maintain: Maintain, store: RunStore, content: bytes) -> None:
    store.put("report", content)
    result = maintain(state="released", keep_record=True)
    assert result["report"] == []
    assert "its report cannot be read" in str(result["warnings"])


@pytest.mark.parametrize("state", ["held", "aborted"])
def test_a_report_is_for_the_end(maintain: Maintain, api: RunApi, state: str) -> None:
    result = maintain(state=state, report=["n1: done"])
    assert "report is given, which is for state=released" in result["msg"]
    assert api.writes() == []
