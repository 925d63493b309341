# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode foretells what the drain itself does, also where the cluster refuses what is planned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_memory import DrainMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, ObjectReference, plan_of

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, pod, vm
from unit.plugins.support.draining_api import fill
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.migrating_api import FAILURE, SUCCESS, migrations_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, plan_in_force


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        yield fake


@pytest.mark.parametrize(
    ("policies", "refused", "moves", "interrupted"),
    [
        ([], ["n2"], [("would_migrate", "n3")], []),
        ([{"policy": "stop"}], ["n2", "n3"], [("failed", "n3")], ["would_stop"]),
    ],
)
def test_check_mode_goes_another_way_where_the_drain_does(
    drain: Any, api: RunApi, policies: Any, refused: list[str], moves: Any, interrupted: list[str]
) -> None:
    """After a refusal that time does not mend, as of a webhook that has a say on where VMs go."""
    api.add_vm("db", migratable=True)

    def refuse(request: Request) -> Answer | None:
        words = json.dumps(request.body)
        return refusal(403, "Forbidden", "not there") if any(f'"{name}"' in words for name in refused) else None

    api.faults[migrations_path()] = refuse
    would = {"migrated": "would_migrate", "stopped": "would_stop"}
    for check in (True, False):
        result = drain(policies=policies, check=check)
        told = [(would.get(move["outcome"], move["outcome"]), move["target_node"]) for move in result["moves"]]
        assert (result.get("msg"), result["left"], told) == (None, [], moves)
        assert [would.get(entry["outcome"], entry["outcome"]) for entry in result["interrupted"]] == interrupted


def test_check_mode_tries_elsewhere_what_has_failed_before(drain: Any, api: RunApi) -> None:
    """In a batch of several nodes attempts are known again, and one that has failed is no failure of the drain yet."""
    api.own_courses = {"db": [FAILURE, SUCCESS]}
    cordons = [action(ActionKind.CORDON, ObjectReference("Node", "", name, ""), name) for name in ("n1", "n4")]
    fill(api, "n4")
    leaving = (action(ActionKind.MIGRATE, vm("db"), "n1", "n2"), action(ActionKind.EVICT, pod("api"), "n1"))
    given = to_json(replace(plan_of([*cordons, *leaving]), batches=(("n1", "n4"),)))
    assert drain(plan=given, retries=0)["moves"][0]["outcome"] == "failed"
    foretold, done = (drain(plan=given, check=check)["moves"] for check in (True, False))
    assert [(move["outcome"], move["target_node"]) for move in foretold] == [("would_migrate", "n3")]
    assert [(move["outcome"], move["target_node"]) for move in done] == [("migrated", "n3")]


@pytest.fixture
def drain_by_plan(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Any:
    """By the plan in force of a run, whose migration goes to n2."""
    plan = plan_in_force(run_module, connection, tmp_path)
    return drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)


def test_check_mode_knows_the_failed_attempts_of_a_killed_drain(
    drain_by_plan: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the drain that goes on does. It has no invocation, as in check mode nobody holds the run."""
    api.courses = [FAILURE]
    with monkeypatch.context() as killed:
        killed.setattr(DrainMemory, "end", lambda *_given, **_options: None)
        assert drain_by_plan(retries=0)["moves"][0]["target_node"] == "n2"
    api.courses = [SUCCESS]
    written = len(api.writes())
    (foretold,) = drain_by_plan(retries=1, invocation=None, check=True)["moves"]
    assert (foretold["outcome"], foretold["target_node"]) == ("would_migrate", "n3")
    assert all("dryRun" in request.query for request in api.writes()[written:])
    (done,) = drain_by_plan(retries=1)["moves"]
    assert (done["outcome"], done["node"]) == ("migrated", "n3")


def test_a_refusal_is_told_though_the_plan_may_not_change(drain_by_plan: Any, api: RunApi) -> None:
    """By check mode as by the drain: that there is another way now is not all that has to be known."""
    api.faults[migrations_path()] = lambda _request: refusal(403, "Forbidden", "not there")
    foretold, done = (drain_by_plan(drift="fail", check=check) for check in (True, False))
    assert foretold["error"]["reason"] == "PlanDrifted"
    for result in (foretold, done):
        assert (result["msg"], result["left"][0]) == (foretold["msg"], foretold["left"][0])
        assert [(move["outcome"], move["target_node"]) for move in result["moves"]] == [("failed", "n2")]
    assert [(entry["name"], "not there" in entry["why"]) for entry in foretold["left"]] == [("db", True)]
    assert foretold["evicted"][0]["outcome"] == "would_evict"


def test_what_a_webhook_does_not_let_be_rehearsed_is_told_and_not_planned_anew(drain: Any, api: RunApi) -> None:
    """It refuses any dry run, which says nothing of the drain."""
    words = 'admission webhook "mutate.example" does not support dry run'

    def refuse(request: Request) -> Answer | None:
        return refusal(400, "BadRequest", words) if "dryRun" in request.query else None

    api.faults[migrations_path()] = refuse
    api.add_vm("db", migratable=True)
    foretold = drain(policies=[{"policy": "stop"}], check=True)
    assert ([move["target_node"] for move in foretold["moves"]], foretold["interrupted"]) == (["n2"], [])
    assert f"failed, it cannot be foretold, as the API server answered 400, {words}" in foretold["left"][0]["why"]
    done = drain(policies=[{"policy": "stop"}])
    assert [(move["outcome"], move["node"]) for move in done["moves"]] == [("migrated", "n2")]


def test_check_mode_reads_the_cluster_for_a_new_plan_once(drain_by_plan: Any, api: RunApi) -> None:
    """However often it plans anew: nothing changes in between."""

    def refuse(request: Request) -> Answer | None:
        return refusal(403, "Forbidden", "nowhere") if request.method == "POST" else None

    api.faults[migrations_path()] = refuse
    counts = []
    for retries in (0, 3):
        before = len(api.requests)
        result = drain_by_plan(retries=retries, check=True)
        assert [(entry["name"], "nowhere" in entry["why"]) for entry in result["left"]] == [("db", True)]
        asked = [request for request in api.requests[before:] if "/priorityclasses" in request.path]
        counts.append(len(asked))
    assert counts[0] == counts[1]
