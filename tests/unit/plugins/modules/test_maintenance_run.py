# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is held by one process of ansible-playbook at a time, and taken from another only when that has died."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer, run_lease
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NAMESPACES
from unit.plugins.support.run_api import CLUSTER, LEASES, PLACE, RunApi, running

LEASE = f"{LEASES}/virtops-run-kernel"
ME = Process.of(os.getpid())


class Maintain(Protocol):
    """Run the module for run `kernel` as invocation `a1`; whatever is given replaces an argument."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


def invocation(name: str, place: str = ME.place) -> dict[str, Any]:
    process = {"pid": ME.pid, "started": ME.started, "place": place}
    return {"id": name, "user": "joe", "host": "controller", **process}


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def renewers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Invocations for which a process was started that renews; the process itself is tested by itself."""
    started: list[str] = []
    monkeypatch.setattr(renewer, "start", lambda _by, hold, *_: started.append(hold.invocation.id))
    return started


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], renewers: list[str]) -> Maintain:
    return partial(run_module, main, **{**connection, "run": "kernel", "_invocation": invocation("a1")})


def test_a_free_run_is_held(maintain: Maintain, api: RunApi, renewers: list[str]) -> None:
    result = maintain()
    assert result["changed"]
    assert (result["run"], result["invocation_id"], result["cluster_uid"]) == ("kernel", "a1", CLUSTER)
    assert (result["holder"]["user"], result["holder"]["host"], result["holder"]["pid"]) == (
        "joe",
        "controller",
        ME.pid,
    )
    assert (result["resumed"], result["documents"]) == (False, [])
    lease = api.run_lease()
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("kernel/a1", 30)
    assert lease["metadata"]["labels"] == {"virtops.kubevirt/run": "kernel"}
    assert renewers == ["a1"]


def test_within_one_playbook_it_is_held_once(maintain: Maintain, api: RunApi) -> None:
    maintain()
    acquired = api.run_lease()["spec"]["acquireTime"]
    assert not maintain()["changed"]
    assert api.run_lease()["spec"]["acquireTime"] == acquired


def test_a_missing_namespace_is_created(maintain: Maintain, api: RunApi) -> None:
    del api.objects[PLACE]
    assert maintain()["changed"]
    assert PLACE in api.objects


def test_a_holder_that_lives_is_named(maintain: Maintain, api: RunApi, renewers: list[str]) -> None:
    api.hold_run("b2")

    def renew(request: Request) -> Answer | None:
        """As its process does between two looks."""
        if len([seen for seen in api.requests if seen.path == LEASE]) == 2:
            api.hold_run("b2", renewed="2026-01-01T00:00:20.000000Z")
            api.run_lease()["metadata"]["resourceVersion"] = "2"
        return None

    api.faults[LEASE] = renew
    result = maintain()
    assert (result["error"]["reason"], result["error"]["holder"]["host"]) == ("RunHeld", "elsewhere")
    assert "invocation b2 (jane@elsewhere, process 4711) since 2026-01-01T00:00:00.000000Z" in result["msg"]
    assert "it is renewed, so that invocation is alive" in result["msg"]
    assert api.writes() == []
    assert renewers == []


def test_a_dead_holder_is_taken_over_after_its_time(maintain: Maintain, api: RunApi, time_flies: list[float]) -> None:
    api.hold_run("b2", seconds=2)
    result = maintain()
    assert sum(time_flies) == pytest.approx(2)
    assert (result["changed"], result["resumed"]) == (True, True)
    assert api.run_lease()["spec"]["leaseTransitions"] == 1
    assert json.loads(api.run_lease()["metadata"]["annotations"]["virtops.kubevirt/holder"])["host"] == "controller"


def test_no_clock_proves_that_a_holder_is_dead(maintain: Maintain, api: RunApi) -> None:
    """Its clock may be years behind."""
    api.hold_run("b2", seconds=5)
    result = maintain(wait_timeout=1)
    assert "which proves nothing yet" in result["msg"]
    assert api.writes() == []


def test_who_is_quicker_holds_it(maintain: Maintain, api: RunApi) -> None:
    def lose(request: Request) -> Answer | None:
        if request.method == "POST":
            api.hold_run("b2")
        return None

    api.faults[LEASES] = lose
    assert maintain(wait_timeout=1)["error"]["reason"] == "RunHeld"
    assert api.run_lease()["spec"]["holderIdentity"] == "kernel/b2"


@pytest.mark.parametrize(("renewals", "status"), [(4, None), (5, 409)])
def test_a_run_is_taken_by_force_though_its_holder_renews_it(
    maintain: Maintain, api: RunApi, renewals: int, status: int | None
) -> None:
    """Unless that one is quicker each time."""
    left = [*range(renewals)]

    def renew(request: Request) -> Answer | None:
        if request.method == "PUT" and left:
            api.run_lease()["metadata"]["resourceVersion"] += str(left.pop())
        return None

    api.hold_run("b2")
    api.faults[LEASE] = renew
    result = maintain(state="aborted", force=True)
    assert (result.get("error") or {}).get("status") == status, result
    assert (api.run_lease() is None) == (status is None), "it is released by who has aborted it"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "READING", 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)


@pytest.fixture
def time_flies(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Where a holder is waited for."""
    slept: list[float] = []  # the only time that passes
    monkeypatch.setattr(run_lease, "time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))
    return slept


def test_of_two_that_wait_for_a_dead_holder_one_takes_over(
    maintain: Maintain, api: RunApi, time_flies: list[float]
) -> None:
    def lose(request: Request) -> Answer | None:
        if request.method == "PUT":
            api.hold_run("c3", renewed="2026-01-01T00:01:00.000000Z")
            api.run_lease()["metadata"]["resourceVersion"] = "2"
        return None

    api.hold_run("b2")
    api.faults[LEASE] = lose
    result = maintain()
    assert result.get("error", {}).get("reason") == "RunHeld", result
    assert api.run_lease()["spec"]["holderIdentity"] == "kernel/c3"


def test_a_holder_that_renews_at_the_last_moment_lives(
    maintain: Maintain, api: RunApi, time_flies: list[float]
) -> None:
    def renew(request: Request) -> Answer | None:
        if len([seen for seen in api.requests if seen.path == LEASE]) == 31:
            api.run_lease()["metadata"]["resourceVersion"] = "2"
        return None

    api.hold_run("b2")
    api.faults[LEASE] = renew
    assert maintain().get("error", {}).get("reason") == "RunHeld"
    assert api.writes() == []


@pytest.mark.parametrize("lives", [True, False])
def test_a_server_that_is_away_proves_nothing_of_the_holder(
    maintain: Maintain, api: RunApi, time_flies: list[float], lives: bool
) -> None:
    """It could not renew meanwhile, and nobody could watch it; so it has all its time again."""

    def be_away_for_long(request: Request) -> Answer | None:
        looks = len([seen for seen in api.requests if seen.path == LEASE])
        if looks == 29:
            time_flies.append(100.0)
        if looks == 40 and lives:
            api.run_lease()["metadata"]["resourceVersion"] = "2"
        return None

    api.hold_run("b2")
    api.faults[LEASE] = be_away_for_long
    result = maintain(wait_timeout=60)
    assert result.get("error", {}).get("reason") == ("RunHeld" if lives else None), result
    assert bool(api.writes()) is not lives


def test_a_run_that_is_taken_over_is_resumed_though_the_answer_is_lost(
    maintain: Maintain, api: RunApi, time_flies: list[float], patient: None
) -> None:
    """And though what was written cannot be told by what is there."""
    rest = [refusal(504, "Timeout", "the proxy has waited long enough")]

    def lose(request: Request) -> Answer | None:
        if request.method != "PUT" or not rest:
            return None
        api._change(request)
        api.run_lease()["metadata"]["annotations"]["by"] = "a webhook"
        return rest.pop()

    api.hold_run("b2", seconds=2)
    api.faults[LEASE] = lose
    result = maintain()
    assert (result["changed"], result["resumed"], result["holder"]["invocation"]) == (True, True, "a1")
    assert api.run_lease()["spec"]["leaseTransitions"] == 1


def test_an_answer_that_is_lost_is_no_failure(maintain: Maintain, api: RunApi, patient: None) -> None:
    lost: list[Request] = []

    def lose(request: Request) -> Answer | None:
        """Carries out the first write, and answers nothing of use."""
        if request.method != "POST" or lost:
            return None
        lost.append(request)
        api._create(request)
        return refusal(504, "Timeout", "the proxy has waited long enough")

    api.faults[LEASES] = lose
    result = maintain()
    assert result["holder"]["invocation"] == "a1"
    assert lost


def test_a_process_that_cannot_renew_leaves_nothing(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise Failure("keep run kernel held", "here", "no memory", "Buy some.", reason="NotRenewed")

    monkeypatch.setattr(renewer, "start", fail)
    assert maintain()["error"]["reason"] == "NotRenewed"
    assert api.run_lease() is None


def test_it_is_held_from_the_controller_only(maintain: Maintain, api: RunApi) -> None:
    result = maintain(_invocation=invocation("a1", "another machine"))
    assert "Let it run on the controller, with delegate_to: localhost" in result["msg"]
    assert api.writes() == []


@pytest.mark.parametrize("keep", [False, True])
def test_it_is_released(maintain: Maintain, api: RunApi, keep: bool) -> None:
    maintain()
    result = maintain(state="released", keep_record=keep)
    assert (result["changed"], result["holder"]) == (True, None)
    assert api.run_lease() is None
    assert not maintain(state="released", keep_record=keep)["changed"]


def test_only_the_holder_releases_it(maintain: Maintain, api: RunApi) -> None:
    api.hold_run("b2")
    result = maintain(state="released")
    assert not result["changed"]
    assert "is held by invocation b2 (jane@elsewhere" in str(result["warnings"])
    assert api.writes() == []


def test_check_mode_tells_and_writes_nothing(maintain: Maintain, api: RunApi) -> None:
    assert maintain(check=True, diff=True)["diff"] == {"before": {"held_by": None}, "after": {"held_by": None}}
    api.hold_run("b2")
    result = maintain(check=True)
    assert (result["changed"], result["holder"]["invocation"]) == (True, "b2")
    assert "it would be refused while that lives" in str(result["warnings"])
    assert not maintain(check=True, state="released")["changed"]
    assert api.writes() == []


def test_check_mode_of_a_release(maintain: Maintain, api: RunApi) -> None:
    maintain()
    before = len(api.writes())
    assert maintain(check=True, state="released")["changed"]
    assert len(api.writes()) == before


def test_hostile_words_of_a_lease_do_nothing(maintain: Maintain, api: RunApi) -> None:
    api.hold_run("b2")
    about = {"user": "\x1b[2Jroot", "host": "x" * 5000, "pid": "none"}
    api.run_lease()["metadata"]["annotations"]["virtops.kubevirt/holder"] = json.dumps(about)
    result = maintain(wait_timeout=0)
    assert "\N{REPLACEMENT CHARACTER}[2Jroot@xxx" in result["msg"]
    assert len(result["msg"]) < 1000
    api.run_lease()["metadata"]["annotations"]["virtops.kubevirt/holder"] = "[]"
    assert "invocation b2 (unknown)" in maintain(wait_timeout=0)["msg"]


def test_names_that_cannot_be_objects_are_told_apart(maintain: Maintain, api: RunApi) -> None:
    for run in ("Kernel_6", "kernel-6", "KERNEL_6"):
        assert maintain(run=run)["changed"]
    names = [path.rpartition("/")[2] for path in api.objects if path.startswith(f"{LEASES}/")]
    assert len(set(names)) == 3
    assert "virtops-run-kernel-6" in names


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"run": ""}, "run is '', but it becomes the value of a label"),
        ({"run": "a/b"}, "run is 'a/b'"),
        ({"run": "x" * 64}, "use at most 63 letters"),
        ({"lease_namespace": "a/b"}, "lease_namespace is 'a/b'"),
        ({"wait_timeout": -1}, "wait_timeout is -1"),
    ],
)
def test_mistakes(maintain: Maintain, api: RunApi, arguments: dict[str, Any], words: str) -> None:
    assert words in maintain(**arguments)["msg"]
    assert api.requests == []


def test_a_missing_permission_is_named(maintain: Maintain, api: RunApi) -> None:
    api.faults[f"{NAMESPACES}/kube-system"] = lambda _request: refusal(403, "Forbidden", 'User "jane" cannot get')
    result = maintain()
    assert "Cannot read namespace kube-system" in result["msg"]
    assert "Grant the permission" in result["msg"]


def drop_first(method: str, path: str, api: RunApi) -> list[Request]:
    """The requests that were lost."""
    lost: list[Request] = []

    def drop(request: Request) -> Answer | None:
        if request.method != method or lost:
            return None
        lost.append(request)
        return SILENCE

    api.faults[path] = drop
    return lost


@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize(
    ("state", "method", "path"),
    [
        ("held", "GET", LEASE),
        ("held", "POST", LEASES),
        ("released", "GET", LEASE),
        ("released", "DELETE", LEASE),
        ("aborted", "GET", LEASE),
        ("aborted", "DELETE", LEASE),
    ],
)
def test_a_server_that_is_away_is_waited_for_whatever_a_holder_gets(
    maintain: Maintain, api: RunApi, patient: None, state: str, method: str, path: str, seconds: int
) -> None:
    if state != "held":
        maintain()
    lost = drop_first(method, path, api)
    assert maintain(state=state, wait_timeout=seconds).get("changed")
    assert lost
    assert (api.run_lease() is not None) is (state == "held")
