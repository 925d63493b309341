# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain changes of its run's plan, and what it has tried, is kept in the cluster, and never in its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import (
    run_memory,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import (
    Remembered,
    decode,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, MAINTAINED, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_memory import DrainMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, plan_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce
from ansible_collections.virtops.kubevirt.plugins.modules import cluster_snapshot, maintenance_plan

from testbed.pki import Authority
from unit.plugins.support.draining_api import act_path, pod_path
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import FAILURE, MIGRATIONS, SUCCESS, vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CONFIG_MAPS, LEASES, RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, memory, plan_in_force

AWAY = refusal(503, "ServiceUnavailable", "shutting down")
# Between two writes, as users have it.
PAUSE = run_memory._PAUSE


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with busy_cluster(authority) as fake:
        yield fake


@pytest.fixture
def store(api: RunApi, connection: dict[str, Any]) -> RunStore:
    return memory(connection)


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path) -> Any:
    plan = plan_in_force(run_module, connection, tmp_path)
    return drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)


def target(store: RunStore) -> str | None:
    """Where the plan in force wants `db`."""
    found = store.get("plan")
    assert found
    plan = PlanInForce.decoded(found.content).plan
    return next(action.target for action in plan.actions if action.kind is ActionKind.MIGRATE)


def close(api: RunApi, name: str) -> None:
    api.node(name)["spec"]["unschedulable"] = True


def other(name: str | None) -> str:
    return "n3" if name == "n2" else "n2"


def test_a_plan_that_comes_true_stays_as_it_is(drain: Any, api: RunApi, store: RunStore) -> None:
    before = store.get("plan")
    assert drain()["left"] == []
    assert store.get("plan") == before


def test_what_a_fresh_look_changes_is_kept(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    close(api, planned or "")
    result = drain()
    assert result["moves"][0]["target_node"] == other(planned) == target(store)


def test_what_a_failure_changes_is_kept(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    api.courses, api.lands = [FAILURE, SUCCESS], "n3"
    result = drain()
    assert result["moves"][0]["target_node"] == other(planned) == target(store)
    (deviation,) = result["deviations"]
    assert (deviation["name"], deviation["planned"], deviation["why"]) == ("db", f"goes to {planned}", api.reason)
    assert deviation["done"].startswith(f"migrated to {other(planned)}")
    assert result["as_planned"] == 1


def test_a_pod_that_was_gone_before_the_node_was_taken_was_not_evicted(drain: Any, api: RunApi) -> None:
    del api.objects[pod_path("api")]
    result = drain()
    (deviation,) = result["deviations"]
    assert (deviation["name"], deviation["planned"]) == ("api", "is evicted")
    assert deviation["done"] == "had left the node already, or was not there any more"
    assert result["as_planned"] == 1


def test_who_goes_on_with_a_drain_counts_what_has_left_since_it_began(drain: Any, api: RunApi) -> None:
    api.lands = "n3"
    first = drain()
    assert (first["as_planned"], first["deviations"]) == (2, [])
    again = drain()
    assert (again["changed"], again["as_planned"]) == (False, 1)
    # Where another one came up nobody can say for a pod that was gone.
    assert [(entry["name"], entry["why"]) for entry in again["deviations"]] == [
        ("api", "it had gone before anybody looked")
    ]


def test_a_plan_of_other_nodes_is_refused(drain: Any, api: RunApi) -> None:
    writes = len(api.writes())
    refused = drain(name="n2")
    assert refused["error"]["problems"] == ["the plan does not maintain it, but n1"]
    moves = to_json(plan_of([]))
    problem = "the plan does not maintain it, but no node, as by it things only move"
    assert drain(plan=moves)["error"]["problems"] == [problem]
    assert "nothing was changed" in refused["msg"]
    assert len(api.writes()) == writes


def test_a_plan_of_another_run_or_none_at_all_is_refused(
    drain: Any, api: RunApi, store: RunStore, tmp_path: Path
) -> None:
    """Nor one for another cluster. What was to be a plan is never taken for the wish to have one made."""
    kept, writes = store.get("plan"), len(api.writes())
    assert kept
    plan = PlanInForce.decoded(kept.content).plan
    assert drain(plan=to_json(replace(plan, run="other")))["error"]["problems"] == [
        "the plan is of run other, and run is kernel"
    ]
    elsewhere = drain(plan=to_json(replace(plan, cluster=replace(plan.cluster, uid="uid-of-another"))))
    assert elsewhere["error"]["reason"] == "OtherCluster"
    assert "uid-of-another" in elsewhere["msg"]
    nothing: list[Any] = ["", {}]
    for empty in nothing:
        problem = "plan is empty; leave it out to have one made for this node alone"
        assert drain(plan=empty)["error"]["problems"] == [problem]
    handle = {"plan_path": str(tmp_path / "plan.json"), "sha256": ""}
    assert "the plan is not the one that was meant" in drain(plan=handle)["msg"]
    assert len(api.writes()) == writes


def test_a_batch_of_which_somebody_else_has_a_node_is_taken_as_far_as_that(
    drain: Any, api: RunApi, run_module: ModuleRunner, connection: dict[str, Any], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"batches": [["n1", "n2"]], "path": str(tmp_path / "both.json"), "document": True}
    plan = run_module(maintenance_plan.main, **connection, **given)["document"]
    api.objects[f"{LEASES}/node-n2"] = {
        "metadata": {"name": "node-n2", "namespace": "medik8s-leases", "resourceVersion": "1"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": 10**9, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }
    result = drain(plan=plan)
    assert (result["error"]["reason"], result["changed"], result["moves"]) == ("LeaseHeld", True, [])
    assert result["error"]["remedy"] == "Let the holder finish, then run this again.", (
        "it has no option by which it waits"
    )
    assert api.node("n1")["spec"]["unschedulable"]


def test_check_mode_tells_no_change_where_all_has_left_already(drain: Any) -> None:
    assert drain()["changed"]
    assert [drain(check=check)["changed"] for check in (True, False)] == [False, False]


def test_check_mode_keeps_nothing(drain: Any, api: RunApi, store: RunStore) -> None:
    before = target(store)
    close(api, before or "")
    assert drain(check=True)["moves"][0]["target_node"] == other(before)
    assert target(store) == before


def test_a_write_that_fails_for_a_moment_is_tried_again_and_not_told(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    close(api, planned or "")
    (kept,) = [path for path in api.objects if path.startswith(CONFIG_MAPS)]
    answers: list[Answer | None] = [AWAY, None]

    def fail(request: Request) -> Answer | None:
        return answers.pop(0) if request.method == "PUT" and answers else None

    api.faults[kept] = fail
    with listener() as heard:
        assert drain(_progress=heard.path)["left"] == []
    assert target(store) == other(planned)
    assert [line for line in heard.told if "keep document plan" in line] == []


def test_what_can_never_be_written_is_in_nobodys_way(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    close(api, planned or "")
    (kept,) = [path for path in api.objects if path.startswith(CONFIG_MAPS)]
    api.faults[kept] = lambda _request: refusal(403, "Forbidden", "no")
    with listener() as heard:
        assert drain(_progress=heard.path)["left"] == []
    assert len([line for line in heard.told if "a document of run kernel" in line]) == 1


def test_a_drain_that_writes_at_the_same_time_loses_nothing(drain: Any, api: RunApi, store: RunStore) -> None:
    planned = target(store)
    close(api, planned or "")
    (kept,) = [path for path in api.objects if path.startswith(CONFIG_MAPS)]
    quicker = [store.get("plan")]

    def overtake(request: Request) -> Answer | None:
        if request.method == "PUT" and quicker and (document := quicker.pop()):
            api.faults.pop(kept)
            changed = PlanInForce.decoded(document.content)
            store.put("plan", PlanInForce(changed.plan, "theirs").encoded())
        return None

    api.faults[kept] = overtake
    assert drain()["left"] == []
    found = store.get("plan")
    assert found
    assert PlanInForce.decoded(found.content).origin == "theirs"
    assert target(store) == other(planned)


def drain_record(store: RunStore) -> Remembered | None:
    found = store.get("record-n1")
    return decode(found.content) if found else None


def test_an_undisturbed_drain_has_nothing_to_remember(drain: Any, store: RunStore) -> None:
    assert drain()["left"] == []
    assert store.names() == ["plan"]


def test_failed_attempts_of_a_killed_drain_are_not_started_over(
    drain: Any, api: RunApi, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third attempt is the last one, whoever makes it and whatever KubeVirt has cleared away."""
    api.courses = [FAILURE]
    with monkeypatch.context() as killed:
        killed.setattr(DrainMemory, "end", lambda *_given, **_options: None)
        assert drain(retries=1)["left"]
    known = drain_record(store)
    assert known
    assert [(entry.uid, entry.attempts, len(entry.failed)) for entry in known.migrations] == [("uid-db", 2, 2)]
    forget(api)
    with listener() as heard:
        result = drain(retries=2, _progress=heard.path)
    assert [move["attempts"] for move in result["moves"]] == [3]
    assert [entry["name"] for entry in result["left"]] == ["db"]
    assert any("an earlier process has left 1 VM whose migration has failed" in line for line in heard.told)


def test_failures_that_were_reported_count_no_more(drain: Any, api: RunApi, store: RunStore) -> None:
    """Whoever runs the task again may have removed the cause."""
    api.courses = [FAILURE]
    assert drain(retries=1)["left"]
    known = drain_record(store)
    assert known
    assert (known.migrations, known.reported) == ((), 1)
    api.courses = [FAILURE, SUCCESS]
    assert drain(retries=1)["left"] == []


def forget(api: RunApi) -> None:
    """Let the migrations be cleared away."""
    for path in [path for path in api.objects if f"/{MIGRATIONS}/" in path]:
        del api.objects[path]


def test_of_an_empty_node_nothing_is_remembered(drain: Any, api: RunApi, store: RunStore) -> None:
    api.courses = [FAILURE, SUCCESS]
    assert drain()["left"] == []
    known = drain_record(store)
    assert known is None or known.is_empty


def test_another_maintenance_begins_anew(drain: Any, api: RunApi, store: RunStore) -> None:
    api.courses = [FAILURE]
    assert drain(retries=0)["left"]
    forget(api)
    api.node("n1")["metadata"]["annotations"][CORDON_NOTE] = Mark("kernel", "2027-01-01T00:00:00Z").to_text()
    api.courses = [SUCCESS]
    assert drain(retries=0)["left"] == []


@pytest.mark.parametrize("content", [b"{}", b"rubbish"])
def test_a_record_that_is_none_is_passed_over(drain: Any, api: RunApi, store: RunStore, content: bytes) -> None:
    store.put("record-n1", content)
    with listener() as heard:
        assert drain(_progress=heard.path)["left"] == []
    assert any("what is remembered of the node is passed over" in line for line in heard.told)


def test_a_record_that_cannot_be_read_is_gone_without(drain: Any, api: RunApi, store: RunStore) -> None:
    store.put("record-n1", b"{}")
    (kept,) = [path for path in api.objects if path.startswith(CONFIG_MAPS)][1:]
    api.faults[kept] = lambda _request: AWAY
    with listener() as heard:
        assert drain(_progress=heard.path)["left"] == []
    assert any("Going on without it" in line for line in heard.told)


def test_an_interruption_is_remembered_before_it_begins(drain: Any, api: RunApi, store: RunStore) -> None:
    api.add_vm("pets", "Manual")
    seen: list[Remembered | None] = []

    def look(request: Request) -> Answer | None:
        if request.method == "PUT":
            seen.append(drain_record(store))
        return None

    api.faults[act_path("restart", "pets")] = look
    assert drain(plan=None, policies=[{"policy": "restart"}])["interrupted"][0]["outcome"] == "restarted"
    assert [entry.name for known in seen[:1] if known for entry in known.interruptions] == ["pets"]


def test_an_interruption_is_remembered_however_lately_something_was_written(
    drain: Any, api: RunApi, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "_PAUSE", PAUSE)
    api.add_vm("pets", "Manual")
    seen: list[list[str]] = []

    def look(request: Request) -> Answer | None:
        if request.method == "PUT":
            known = drain_record(store)
            seen.append([entry.name for entry in known.interruptions] if known else [])
            if len(seen) == 1:
                api.add_vm("late", "Manual")
        return None

    for name in ("pets", "late"):
        api.faults[act_path("restart", name)] = look
    assert drain(plan=None, policies=[{"policy": "restart"}])["left"] == []
    assert seen == [["pets"], ["pets", "late"]]


def test_an_interruption_that_could_not_be_remembered_is_at_the_next_look(
    drain: Any, api: RunApi, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever goes on takes its VM for one that has ended by itself."""
    api.add_vm("pets", "Manual")
    answers: list[Answer] = [AWAY]
    api.faults |= {
        CONFIG_MAPS: lambda request: answers.pop() if request.method == "POST" and answers else None,
        act_path("restart", "pets"): lambda _request: Answer(202, b""),
    }
    with monkeypatch.context() as killed:
        killed.setattr(run_memory, "_PAUSE", 10**9)
        killed.setattr(DrainMemory, "end", lambda *_given, **_options: None)
        assert drain(plan=None, policies=[{"policy": "restart"}], wait_timeout=1)["left"]
    known = drain_record(store)
    assert (answers, [entry.name for entry in known.interruptions] if known else []) == ([], ["pets"])
    del api.objects[vmi_path("pets")]
    api.start("pets", "n2", 2)
    (entry,) = drain(plan=None, policies=[{"policy": "restart"}])["interrupted"]
    assert (entry["outcome"], entry["target_node"]) == ("restarted", "n2")


@pytest.mark.parametrize("is_fresh", [True, False], ids=["of-the-plans-snapshot", "of-a-later-snapshot"])
def test_where_a_drain_stands_in_its_run_is_told_by_what_was_seen(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, tmp_path: Path, *, is_fresh: bool
) -> None:
    """n2 and n3 carry the run's label, of which n3 is none of the plan's; and no request is made for that."""
    taken: dict[str, Any] = {"path": str(tmp_path / "cluster.json")}
    first = run_module(cluster_snapshot.main, **connection, **taken)
    given: dict[str, Any] = {"run": "kernel", "nodes": ["n2", "n1"], "path": str(tmp_path / "plan.json")}
    made = run_module(maintenance_plan.main, **connection, **given, snapshot=first)
    for name in ("n2", "n3"):
        api.node(name)["metadata"].setdefault("labels", {})[MAINTAINED] = "kernel"
    handle = first if is_fresh else run_module(cluster_snapshot.main, **connection, **taken)
    plan = {"plan_path": made["plan_path"], "sha256": made["sha256"]}
    drain = drain_of_the_run(run_module, connection, plan=plan, cordon=True, wait_timeout=20)
    with listener() as heard:
        assert drain(snapshot=handle, _progress=heard.path)["left"] == []
    first_standing, last = heard.standings[0], heard.standings[-1]
    assert (last.node, last.batch, last.batches, last.nodes) == ("n1", 2, 2, 2)
    assert {each.done for each in heard.standings} == {0 if is_fresh else 1}
    assert (first_standing.leaving, first_standing.gone, last.gone, last.flying) == (2, 0, 2, 0)
    assert (last.migrations, last.migrated, last.planned) == (1, 1, 1)
    assert (last.span, last.later) == (made["totals"]["batch_seconds"][1], 0)
    assert not [request for request in api.requests if "labelSelector" in request.query and "nodes" in request.path]
