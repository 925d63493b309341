# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain that has lost its run or its node does nothing more, and leaves what others remember alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import carrying_out, run_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import Remembered, encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import StoppedNote, find_marks, noted

from testbed.pki import Authority
from unit.plugins.support.draining_api import BUDGET, SUBRESOURCES, pod_path, take_anew, vm_path
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal
from unit.plugins.support.migrating_api import KUBEVIRT, MIGRATIONS, migrations_path, vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NODES
from unit.plugins.support.run_api import LEASES, RunApi
from unit.plugins.support.run_drains import busy_cluster, drain_of_the_run, memory, plan_in_force

BUSY = refusal(429, "TooManyRequests", "too many requests")


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


def is_taken(api: RunApi) -> None:
    api.hold_run("b2", seconds=10**9)


def is_uncordoned(api: RunApi) -> None:
    node = api.node("n1")
    node["spec"].pop("unschedulable")
    del node["metadata"]["annotations"][CORDON_NOTE]


def is_uncordoned_by_kubectl(api: RunApi) -> None:
    """Which leaves the mark."""
    api.node("n1")["spec"].pop("unschedulable")


def is_taken_anew(api: RunApi) -> None:
    """By its owner, after it was given back."""
    take_anew(api, "n1")


@pytest.mark.parametrize(
    ("happens", "reason", "words"),
    [
        (is_taken, "RunLost", "Cannot"),
        (
            is_taken_anew,
            "NotCordoned",
            "it has been uncordoned since it was taken, and cordoned again at 2030-01-01T00:00:00Z",
        ),
        (
            is_uncordoned,
            "NotCordoned",
            "it is not cordoned, so what leaves could come back; it was still cordoned at 20",
        ),
        (is_uncordoned_by_kubectl, "NotCordoned", "somebody has uncordoned it since it was taken"),
    ],
)
def test_a_drain_stops_at_once_when_run_or_node_are_not_its_own_any_more(
    drain: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch, happens: Callable[[RunApi], None], reason: str, words: str
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)
    eviction = f"{pod_path('api')}/eviction"

    def hold_back(_request: Request) -> Answer:
        happens(api)
        return BUDGET

    api.faults[eviction] = hold_back
    result = drain()
    assert result["error"]["reason"] == reason
    assert words in result["msg"]
    assert [request.path for request in api.writes()].count(eviction) == 1


def test_a_controller_that_slept_between_two_requests_looks_before_the_second(
    drain: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lid of a laptop is closed when the first is under way; hours later somebody else has the run."""
    monkeypatch.setattr(carrying_out, "_THREADS", 1)
    awake, slept = clock.now, [0.0]
    monkeypatch.setattr(clock, "now", lambda: awake() + slept[0])
    asked = []

    def sleep(request: Request) -> None:
        if request.method == "POST":
            asked.append(request.path)
            slept[0] += 7200.0
            is_taken(api)

    for path in (migrations_path("shop"), f"{pod_path('api')}/eviction"):
        api.faults[path] = sleep
    assert drain()["error"]["reason"] == "RunLost"
    assert len(asked) == 1


def test_a_drain_whose_migration_an_abort_has_cancelled_begins_no_other(drain: Any, api: RunApi) -> None:
    """Though it saw a moment ago that the run was its own, and it does not hear of the end of its ansible-playbook."""
    api.courses = [("Running",)]

    def abort(request: Request) -> None:
        if "watch" in request.query and (found := [path for path in api.objects if path.startswith(migrations_path())]):
            is_taken(api)
            for path in found:
                del api.objects[path]

    api.faults[f"{KUBEVIRT}/{MIGRATIONS}"] = abort
    result = drain()
    asked = [request for request in api.writes() if request.path == migrations_path()]
    assert (result["error"]["reason"], len(asked)) == ("RunLost", 1), result["msg"]


def test_a_run_that_is_lost_while_its_drain_is_planned_takes_no_node(
    drain: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    before = api.node("n1")
    api.faults[f"{NODES}/n1"] = lambda _request: is_taken(api)
    result = drain()
    assert result["error"]["reason"] == "RunLost"
    assert api.node("n1") == before
    assert not [write.path for write in api.writes() if write.path.endswith("n1")]


@pytest.mark.parametrize("answer", [BUSY, SILENCE, None])
def test_an_evacuation_is_not_withdrawn_for_a_run_that_is_lost(
    drain: Any, api: RunApi, monkeypatch: pytest.MonkeyPatch, answer: Answer | None
) -> None:
    """Neither asked for once more nor, when that was done, the next one."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(persistence, "BRIEF", 5.0)
    api.add_vmi("web")
    for name in ("db", "web"):
        api.objects[vmi_path(name)]["status"]["evacuationNodeName"] = "n1"

    def take(_request: Request) -> Answer | None:
        is_taken(api)
        return answer

    withdrawals = [f"{SUBRESOURCES}{vmi_path(name).removeprefix(KUBEVIRT)}/evacuate/cancel" for name in ("db", "web")]
    api.faults |= dict.fromkeys(withdrawals, take)
    result = drain(evacuations="take_over")
    assert (result["error"]["reason"], "held by invocation b2" in result["msg"]) == ("RunLost", True)
    assert [request.path in withdrawals for request in api.writes()].count(True) == 1


def is_taken_over(api: RunApi, store: RunStore) -> None:
    """Another invocation has noted what it goes by."""
    is_taken(api)
    store.put("record-n1", encode(Remembered("n1", "theirs")))


def is_aborted(api: RunApi, store: RunStore) -> None:
    del api.objects[f"{LEASES}/virtops-run-kernel"]
    store.delete_all()
    is_uncordoned(api)


@pytest.mark.parametrize("happens", [is_taken_over, is_aborted])
@pytest.mark.parametrize("fresh", [0.0, run_lease.FRESH])
def test_a_drain_that_has_lost_its_run_leaves_what_it_remembers_alone(
    drain: Any,
    api: RunApi,
    store: RunStore,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[RunApi, RunStore], None],
    fresh: float,
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", fresh)
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)
    kept: list[Any] = []

    def hold_back(_request: Request) -> Answer:
        if not kept:
            happens(api, store)
            kept.append(api.config_maps())
        return BUDGET

    api.faults[f"{pod_path('api')}/eviction"] = hold_back
    assert drain(wait_timeout=2)["left"]
    assert [api.config_maps()] == kept


def test_nothing_is_started_for_a_run_that_somebody_has_taken(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi
) -> None:
    api.add_vm("pets", "Manual")
    drain = drain_of_the_run(run_module, connection, wait_timeout=10)
    drain(cordon=True, policies=[{"policy": "stop"}])
    assert api.acts == ["stop pets"]

    def lose(_request: Request) -> None:
        api.hold_run("b2", seconds=10**9)

    api.faults[f"{KUBEVIRT}/virtualmachines"] = lose
    result = drain(state="restored")
    assert (result["error"]["reason"], api.acts) == ("RunLost", ["stop pets"])
    del api.faults[f"{KUBEVIRT}/virtualmachines"]
    api.hold_run("a1", seconds=10**9)
    assert drain(state="restored")["started"][0]["outcome"] == "started"


def test_a_mark_on_a_vm_is_left_to_whoever_has_taken_the_run_since(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_run, "_GUARDED_FOR", 0.0)
    api.add_vm("pets", "Manual")

    def take(request: Request) -> None:
        if "stopped.virtops" in str(request.body):
            is_taken(api)

    api.faults[f"{NODES}/n1"] = take
    drain = drain_of_the_run(run_module, connection, wait_timeout=10, cordon=True)
    assert drain(policies=[{"policy": "stop"}])["error"]["reason"] == "RunLost"
    assert (api.acts, list(find_marks(api.objects[vm_path("pets")]))) == ([], ["n1"])


def test_a_note_on_a_vm_that_is_gone_stays_for_whoever_has_taken_the_run(
    run_module: ModuleRunner, connection: dict[str, Any], api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    api.node("n1")["metadata"] |= noted(StoppedNote("kernel", "shop", "gone", "uid-gone"))
    before = api.node("n1")

    def take(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        is_taken(api)
        return BUSY

    api.faults[f"{NODES}/n1"] = take
    result = drain_of_the_run(run_module, connection, wait_timeout=5)(state="restored")
    assert (result["error"]["reason"], api.node("n1")) == ("RunLost", before)
    assert [write.path for write in api.writes()].count(f"{NODES}/n1") == 1
