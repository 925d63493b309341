# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was cancelled is told, whatever becomes of the API server meanwhile."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.clock import Clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.cancellation import Cancellation
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import MigratingApi, migrations_path, shop, vmi_path
from unit.plugins.support.modules import ModuleRunner, Result

AWAY = refusal(503, "ServiceUnavailable", "etcd is away")
BOTH: dict[str, Any] = {"vmis": [{"name": "db"}, {"name": "web"}]}


class Cancel(Protocol):
    def __call__(self, *, check: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    """VMIs db and web, each on its way."""
    fake = shop()
    fake.add_migration("of-db", "db")
    fake.add_migration("of-web", "web", node="n1")
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def cancel(run_module: ModuleRunner, connection: dict[str, Any]) -> Cancel:
    return partial(run_module, main, **connection, namespace="shop", state="absent")


def after_the_first_deletion(api: MigratingApi, answer: Answer, *paths: str) -> None:
    def fault(request: Request) -> Answer | None:
        return answer if any(earlier.method == "DELETE" for earlier in api.requests[:-1]) else None

    for path in paths:
        api.faults[path] = fault


def outcomes(result: Result) -> list[str]:
    return [entry["outcome"] for entry in result["migrations"]]


def test_a_server_that_goes_away_after_it(cancel: Cancel, api: MigratingApi) -> None:
    after_the_first_deletion(api, AWAY, vmi_path("db"), f"{migrations_path()}/of-db")
    result = cancel(name="db", wait_timeout=1)
    assert result["failed"]
    assert result["changed"]
    assert outcomes(result) == ["cancelling"]
    assert result["migrations"][0]["node"] == "n1"
    assert (
        "whether that of shop/db is undone is not known, as the API server answered 503, etcd is away" in result["msg"]
    )
    assert re.search(r"etcd is away, tried \d+ times since \d\d:\d\d:\d\d\.", result["msg"])
    assert (result["error"]["status"], result["error"]["reason"]) == (503, "DeadlineExceeded")


def test_what_was_undone_before_is_remembered(cancel: Cancel, api: MigratingApi) -> None:
    after_the_first_deletion(api, AWAY, vmi_path("web"))
    result = cancel(**BOTH, wait_timeout=1)
    assert outcomes(result) == ["cancelled", "cancelling"]
    assert "Cannot cancel 1 of 2 migrations" in result["msg"]


def test_a_server_that_allows_no_look_any_more(cancel: Cancel, api: MigratingApi) -> None:
    after_the_first_deletion(api, refusal(403, "Forbidden", "no rights"), f"{migrations_path()}/of-db")
    result = cancel(name="db")
    assert result["changed"]
    assert outcomes(result) == ["cancelling"]
    assert "no rights" in result["msg"]
    assert result["error"]["reason"] == "Forbidden"


def test_a_request_that_gets_no_answer_is_made_again(cancel: Cancel, api: MigratingApi) -> None:
    answers = iter([AWAY])
    api.faults[f"{migrations_path()}/of-web"] = lambda request: next(answers, None)
    result = cancel(**BOTH)
    assert not result.get("failed")
    assert outcomes(result) == ["cancelled", "cancelled"]


@pytest.mark.parametrize("answer", [AWAY, refusal(403, "Forbidden", "no rights")])
def test_a_request_that_is_not_granted_leaves_the_migration(cancel: Cancel, api: MigratingApi, answer: Answer) -> None:
    api.faults[f"{migrations_path()}/of-web"] = lambda request: answer
    result = cancel(**BOTH, wait=False)
    assert result["failed"]
    assert result["changed"]
    assert outcomes(result) == ["cancelling", "migrating"]
    assert "Cannot cancel 1 of 2 migrations" in result["msg"]
    assert "that of shop/web was not cancelled, as the API server answered" in result["msg"]


def test_a_first_request_that_is_not_granted_changes_nothing(cancel: Cancel, api: MigratingApi) -> None:
    api.faults[f"{migrations_path()}/of-db"] = lambda request: refusal(403, "Forbidden", "no rights")
    result = cancel(**BOTH)
    assert "changed" not in result or not result["changed"]
    assert "Cannot cancel migration shop/of-db" in result["msg"]


def test_check_mode_cancels_nothing_even_where_a_request_fails(cancel: Cancel, api: MigratingApi) -> None:
    api.faults[f"{migrations_path()}/of-web"] = lambda request: AWAY
    assert "etcd is away" in cancel(check=True, **BOTH)["msg"]
    writes = api.writes()
    assert writes
    assert all("dryRun" in {**request.query, **request.body} for request in writes)


def test_an_evacuation_is_withdrawn_before_its_migration(cancel: Cancel, api: MigratingApi) -> None:
    for name in ("db", "web"):
        api.objects[vmi_path(name)]["status"]["evacuationNodeName"] = "n1"
    del api.objects[f"{migrations_path()}/of-web"]  # the next one has yet to begin
    foretold = cancel(check=True, **BOTH)
    assert outcomes(foretold) == ["would_cancel", "would_cancel"]
    assert api.objects[vmi_path("db")]["status"]["evacuationNodeName"] == "n1"
    api.requests.clear()
    result = cancel(**BOTH)
    assert result["changed"]
    assert outcomes(result) == ["cancelled", "cancelled"]
    assert [(request.method, request.path.rpartition("/")[2]) for request in api.writes()] == [
        ("PUT", "cancel"),
        ("DELETE", "of-db"),
        ("PUT", "cancel"),
    ]
    assert not cancel(**BOTH)["changed"]


def evacuating_at_once(api: MigratingApi) -> None:
    """KubeVirt begins to migrate db right before its evacuation is withdrawn."""
    del api.objects[f"{migrations_path()}/of-db"]
    api.objects[vmi_path("db")]["status"]["evacuationNodeName"] = "n1"

    def begin(_request: Request) -> None:
        api.add_migration("kubevirt-evacuation-x", "db")

    api.faults[f"{vmi_path('db')}/evacuate/cancel".replace("/kubevirt.io", "/subresources.kubevirt.io")] = begin


def test_a_migration_that_an_evacuation_has_begun_since_is_cancelled(cancel: Cancel, api: MigratingApi) -> None:
    evacuating_at_once(api)
    (entry,) = cancel(name="db")["migrations"]
    assert (entry["outcome"], entry["migration"]) == ("cancelled", "kubevirt-evacuation-x")
    assert f"{migrations_path()}/kubevirt-evacuation-x" not in api.objects


def test_a_migration_that_cannot_be_looked_for_after_a_withdrawal_is_found_later(
    cancel: Cancel, api: MigratingApi
) -> None:
    evacuating_at_once(api)
    answers = iter([None, refusal(403, "Forbidden", "no rights yet")])
    api.faults[migrations_path()] = lambda _request: next(answers, None)
    (entry,) = cancel(name="db")["migrations"]
    assert (entry["outcome"], entry["migration"]) == ("cancelled", "kubevirt-evacuation-x")


@pytest.mark.parametrize("check", [False, True])
def test_who_leaves_another_node_by_now_is_not_kept_there(cancel: Cancel, api: MigratingApi, check: bool) -> None:
    """It has moved since it was looked at, and somebody drains the node where it is."""
    status = api.objects[vmi_path("db")]["status"]
    status["evacuationNodeName"] = "n1"
    looks: list[Request] = []

    def move(request: Request) -> None:
        looks.append(request)
        if len(looks) == 2:
            del api.objects[f"{migrations_path()}/of-db"]
            status.update(nodeName="n2", evacuationNodeName="n2")
            api.add_migration("kubevirt-evacuation-x", "db", node="n3", course=())

    api.faults[vmi_path("db")] = move
    result = cancel(name="db", check=check)
    (entry,) = result["migrations"]
    assert (entry["outcome"], entry["node"], status["evacuationNodeName"]) == ("migrated", "n2", "n2")
    assert (result["changed"], api.writes()) == (False, [])


def test_an_evacuation_that_was_withdrawn_is_told_where_the_rest_fails(cancel: Cancel, api: MigratingApi) -> None:
    api.objects[vmi_path("db")]["status"]["evacuationNodeName"] = "n1"
    api.faults[f"{migrations_path()}/of-db"] = lambda request: refusal(403, "Forbidden", "no rights")
    result = cancel(name="db")
    assert result["failed"]
    assert result["changed"]
    assert "that of shop/db was not cancelled, as the API server answered 403" in result["msg"]


def test_one_that_has_ended_by_itself_was_not_cancelled(cancel: Cancel, api: MigratingApi) -> None:
    """Right before that was asked for."""

    def end(request: Request) -> None:
        if request.method == "DELETE":
            del api.objects[f"{migrations_path()}/of-db"]
            api.objects[vmi_path("db")]["status"]["nodeName"] = "n2"

    api.faults[f"{migrations_path()}/of-db"] = end
    result = cancel(name="db")
    assert (result["changed"], outcomes(result)) == (False, ["migrated"])


def test_what_is_undone_when_the_time_is_over_is_seen(
    cancel: Cancel, api: MigratingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking has taken all of it."""
    waited, wait = list[float](), Cancellation.wait

    def waits(self: Cancellation, seconds: float) -> None:
        waited.append(seconds)
        wait(self, seconds)

    def steady(_self: Clock) -> float:
        return time.monotonic() + 100.0 * any(request.method == "DELETE" for request in api.requests)

    monkeypatch.setattr(Cancellation, "wait", waits)
    monkeypatch.setattr(Clock, "steady", steady)
    result = cancel(name="db", wait_timeout=10)
    assert (waited, result.get("failed", False), outcomes(result)) == ([0.0], False, ["cancelled"])
