# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMIs come to where they are wanted, once, and the module tells how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import (
    FAILURE,
    HOSTNAME,
    MIGRATIONS,
    NO_NODE,
    SUCCESS,
    MigratingApi,
    migrations_path,
    shop,
    vmi_path,
)
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NODES


class Migrate(Protocol):
    """Run the module on VMIs of namespace `shop`."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def migrate(run_module: ModuleRunner, connection: dict[str, Any]) -> Migrate:
    return partial(run_module, main, **connection, namespace="shop")


def test_a_vmi_goes_to_the_node(migrate: Migrate, api: MigratingApi) -> None:
    result = migrate(name="db", target_node="n2", unschedulable_timeout=7)
    (created,) = api.created()
    assert created["spec"] == {"vmiName": "db", "addedNodeSelector": {HOSTNAME: "n2"}}
    assert created["metadata"]["annotations"] == {"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "7"}
    (entry,) = result["migrations"]
    assert result["changed"]
    assert [step["phase"] for step in entry["phases"]] == list(SUCCESS)
    assert (entry["source_node"], entry["target_node"], entry["node"]) == ("n1", "n2", "n2")
    assert (entry["outcome"], entry["attempts"], entry["failure_reason"], entry["seconds"]) == ("migrated", 1, "", 3)
    assert entry["migration"] == created["metadata"]["name"]


def test_who_is_there_stays_untouched(migrate: Migrate, api: MigratingApi) -> None:
    first = migrate(name="db", target_node="n2")
    second = migrate(name="db", target_node="n2")
    assert (first["changed"], second["changed"]) == (True, False)
    assert second["migrations"][0]["outcome"] == "already_there"
    assert len(api.created()) == 1


def test_what_only_delays_a_migration_does_not_prevent_it(migrate: Migrate, api: MigratingApi) -> None:
    backup = {"backupStatus": {"backupName": "nightly"}}
    api.objects[vmi_path("db")]["status"]["changedBlockTracking"] = backup
    assert migrate(name="db", target_node="n2")["migrations"][0]["outcome"] == "migrated"


def test_who_is_there_need_not_be_migratable(migrate: Migrate, api: MigratingApi) -> None:
    api.objects[vmi_path("web")]["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
    assert migrate(name="web", target_node="n2")["migrations"][0]["outcome"] == "already_there"


def test_labels_choose_the_node(migrate: Migrate, api: MigratingApi) -> None:
    zone = {"zone": "b"}
    result = migrate(vmis=[{"name": "db"}, {"name": "web"}], added_node_selector=zone)
    assert [entry["outcome"] for entry in result["migrations"]] == ["migrated", "already_there"]
    assert [entry["target_node"] for entry in result["migrations"]] == [None, None]
    assert api.created()[0]["spec"]["addedNodeSelector"] == zone


def test_each_vmi_may_have_its_own_destination(migrate: Migrate, api: MigratingApi) -> None:
    api.add_vmi("far", namespace="other")
    wanted = [{"name": "db"}, {"name": "web", "target_node": "n1"}, {"name": "far", "namespace": "other"}]
    result = migrate(vmis=wanted, added_node_selector={"zone": "b"})
    assert [entry["node"] for entry in result["migrations"]] == ["n2", "n1", "n2"]
    watched = {request.path for request in api.requests if "watch" in request.query}
    assert watched == {f"/apis/kubevirt.io/v1/{MIGRATIONS}"}


def test_a_node_is_meant_by_its_name_and_pinned_by_its_label(migrate: Migrate, api: MigratingApi) -> None:
    api.add_node("n3.example.org", {HOSTNAME: "n3"})
    api.courses = [("Pending", "Failed")]
    result = migrate(name="db", target_node="n3.example.org", retries=0)
    assert result["migrations"][0]["node_selector"] == {HOSTNAME: "n3"}


def test_check_mode_asks_kubevirt_and_creates_nothing(migrate: Migrate, api: MigratingApi) -> None:
    result = migrate(check=True, diff=True, vmis=[{"name": "db"}, {"name": "web"}], target_node="n2")
    assert result["changed"]
    assert [entry["outcome"] for entry in result["migrations"]] == ["would_migrate", "already_there"]
    assert result["diff"] == {"before": "shop/db: n1\nshop/web: n2\n", "after": "shop/db: n2\nshop/web: n2\n"}
    assert [request.query for request in api.writes()] == [{"fieldValidation": "Strict", "dryRun": "All"}]
    assert migrate(diff=True, vmis=[{"name": "db"}, {"name": "web"}], target_node="n2")["diff"] == result["diff"]
    assert not migrate(check=True, name="db", target_node="n2")["changed"]


def test_a_failed_migration_is_tried_again(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [FAILURE, FAILURE, SUCCESS]
    result = migrate(name="db", target_node="n2", retries=2)
    assert (result["migrations"][0]["outcome"], result["migrations"][0]["attempts"]) == ("migrated", 3)
    assert len({created["metadata"]["name"] for created in api.created()}) == 3


def test_what_fails_for_good_says_why_and_others_arrive(migrate: Migrate, api: MigratingApi) -> None:
    api.own_courses["db"] = [FAILURE]
    api.add_vmi("cache")
    result = migrate(vmis=[{"name": "db"}, {"name": "cache"}], target_node="n2", retries=1)
    assert result["failed"]
    assert result["changed"]
    assert [entry["outcome"] for entry in result["migrations"]] == ["failed", "migrated"]
    assert result["migrations"][0]["failure_reason"] == api.reason
    assert "Cannot migrate 1 of 2 VMIs" in result["msg"]
    assert f"shop/db: {api.reason}" in result["msg"]
    assert result["error"]["reason"] == "MigrationFailed"


def test_where_no_node_fits_the_scheduler_is_quoted(migrate: Migrate, api: MigratingApi) -> None:
    api.homeless, api.courses = True, [("Pending", "Scheduling", "Failed")]
    result = migrate(name="db", target_node="n2", retries=0, unschedulable_timeout=5)
    assert result["migrations"][0]["scheduler_message"] == NO_NODE
    assert f"no node could take it within 5 s: {NO_NODE}" in result["msg"]


def test_where_no_node_fitted_events_still_quote_the_scheduler(migrate: Migrate, api: MigratingApi) -> None:
    api.forgotten, api.homeless, api.courses = True, True, [("Pending", "Failed")]
    result = migrate(name="db", target_node="n2", retries=0)
    assert result["migrations"][0]["scheduler_message"] == NO_NODE
    assert NO_NODE in result["msg"]


def test_a_vm_that_somebody_moves_elsewhere_is_named(migrate: Migrate, api: MigratingApi) -> None:
    def move(request: Request) -> Answer | None:
        if request.method == "POST":
            api.objects[vmi_path("db")]["status"]["nodeName"] = "n3"
            return refusal(503, "ServiceUnavailable", "etcd is away")
        return None

    api.faults[migrations_path()] = move
    result = migrate(name="db", target_node="n2")
    assert (result["changed"], result["migrations"][0]["node"]) == (False, "n3")
    assert "shop/db: somebody has moved it to n3 meanwhile" in result["msg"]


def test_what_cannot_be_begun_without_wait_is_a_failure(migrate: Migrate, api: MigratingApi) -> None:
    api.add_vmi("cache")
    api.faults[migrations_path()] = lambda request: (
        refusal(503, "ServiceUnavailable", "etcd is away")
        if request.method == "POST" and request.body["spec"]["vmiName"] == "cache"
        else None
    )
    result = migrate(vmis=[{"name": "db"}, {"name": "cache"}], target_node="n2", wait=False)
    assert result["changed"]
    assert [entry["outcome"] for entry in result["migrations"]] == ["migrating", "waiting"]
    assert "Cannot migrate 1 of 2 VMIs" in result["msg"]
    assert "not finished: shop/cache (waiting, " in result["msg"]
    assert "etcd is away" in result["msg"]


def test_a_permission_that_is_lost_on_the_way_ends_it_with_what_was_done(migrate: Migrate, api: MigratingApi) -> None:
    def forbid(request: Request) -> Answer | None:
        words = 'x is forbidden: User "jane" cannot watch resource "x"'
        return refusal(403, "Forbidden", words) if "watch" in request.query else None

    api.faults[migrations_path()] = forbid
    result = migrate(name="db", target_node="n2")
    assert result["changed"]
    assert result["error"]["reason"] == "Forbidden"
    assert "not finished: shop/db (Pending); the API server answered 403" in result["msg"]


@pytest.mark.parametrize("check", [False, True])
def test_a_kubevirt_that_cannot_pin_ends_it_at_once(migrate: Migrate, api: MigratingApi, check: bool) -> None:
    """Another try, or another VM, would be refused just so."""
    api.known = ("vmiName",)
    result = migrate(check=check, name="db", target_node="n2")
    assert (result["failed"], result["error"]["reason"]) == (True, "BadRequest")
    assert 'unknown field "spec.addedNodeSelector". To pin a migration to a node KubeVirt 1.6 or newer' in result["msg"]
    assert len(api.writes()) == 1
    assert not api.migrations()


def test_a_cordoned_node_is_left_to_the_scheduler(migrate: Migrate, api: MigratingApi) -> None:
    """The VM may tolerate it, and otherwise the scheduler says so."""
    api.objects[f"{NODES}/n2"]["spec"] = {"unschedulable": True}
    assert migrate(name="db", target_node="n2")["migrations"][0]["outcome"] == "migrated"


def test_who_is_there_already_is_told_at_once(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("db-0-1", "db", run="earlier")
    with listener() as heard:
        migrate(vmis=[{"name": "db"}, {"name": "web"}], target_node="n2", _progress=heard.path)
    assert heard.told[0] == "shop/web: n2 -> n2: already there"
    assert heard.details[0] == "shop/db: n1 -> n2: Running"


def test_a_forgetful_server_is_asked_for_the_whole_list_again(migrate: Migrate, api: MigratingApi) -> None:
    answers = iter(
        [refusal(410, "Expired", "too old resource version"), Answer(200, b'{"type":"ERROR","object":{}}\n')]
    )
    api.faults[migrations_path()] = lambda request: next(answers, None) if "watch" in request.query else None
    assert migrate(name="db", target_node="n2")["migrations"][0]["outcome"] == "migrated"


def test_a_server_that_is_away_for_a_moment_does_no_harm(migrate: Migrate, api: MigratingApi) -> None:
    # After the look around, the first look and the creation.
    answers = iter([None, None, None, *[refusal(503, "ServiceUnavailable", "etcd is away")] * 2])
    api.faults[migrations_path()] = lambda request: next(answers, None)
    with listener() as heard:
        result = migrate(name="db", target_node="n2", _progress=heard.path)
    assert result["migrations"][0]["outcome"] == "migrated"
    assert not [line for line in heard.told if "etcd is away" in line]


def test_without_wait_it_only_begins(migrate: Migrate, api: MigratingApi) -> None:
    result = migrate(name="db", target_node="n2", wait=False)
    assert result["changed"]
    assert result["migrations"][0]["outcome"] == "migrating"
    assert not any("watch" in request.query for request in api.requests)


def test_the_deadline_is_a_failure_that_says_what_is_left(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [("Pending", "Running")]
    result = migrate(name="db", target_node="n2", wait_timeout=1)
    assert result["failed"]
    assert result["error"]["reason"] == "DeadlineExceeded"
    assert "after 1 s not finished: shop/db (Running)" in result["msg"]
    assert result["migrations"][0]["outcome"] == "migrating"


def test_each_end_is_told_and_each_phase_to_who_asks_for_more(migrate: Migrate, api: MigratingApi) -> None:
    with listener() as heard:
        result = migrate(name="db", target_node="n2", _progress=heard.path)
    assert result["changed"]
    assert heard.told == ["shop/db: n1 -> n2: migrated to n2 in 3 s"]
    assert heard.details == [f"shop/db: n1 -> n2: {phase}" for phase in ("Pending", "Scheduling", "Running")]


def test_a_failure_is_told_once(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [FAILURE, SUCCESS]
    with listener() as heard:
        migrate(name="db", target_node="n2", retries=1, _progress=heard.path)
    assert heard.told == [
        f"shop/db: n1 -> n2: attempt 1 failed, {api.reason}; trying again",
        "shop/db: n1 -> n2: migrated to n2 in 3 s",
    ]
    assert "shop/db: n1 -> n2: Running, attempt 2" in heard.details


def test_why_a_vm_waits_is_told(migrate: Migrate, api: MigratingApi) -> None:
    api.homeless, api.courses = True, [("Pending", "Scheduling")]
    with listener() as heard:
        migrate(name="db", target_node="n2", wait_timeout=1, _progress=heard.path)
    assert f"shop/db: n1 -> n2: Scheduling, no node fits: {NO_NODE}" in heard.told


def test_a_migration_is_cancelled(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("somebodys", "db")
    predicted = migrate(check=True, state="absent", vmis=[{"name": "db"}, {"name": "web"}])
    assert [entry["outcome"] for entry in predicted["migrations"]] == ["would_cancel", "not_migrating"]
    result = migrate(diff=True, state="absent", vmis=[{"name": "db"}, {"name": "web"}, {"name": "gone"}])
    assert (predicted["changed"], result["changed"]) == (True, True)
    assert [entry["outcome"] for entry in result["migrations"]] == ["cancelled", "not_migrating", "not_migrating"]
    assert [entry["node"] for entry in result["migrations"]] == ["n1", "n2", ""]
    assert result["diff"] == {"before": "shop/db: migrating\n", "after": ""}
    assert not migrate(state="absent", name="db")["changed"]


def test_a_cancellation_that_does_not_come_to_an_end_is_a_failure(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("stuck", "db")
    api.stubborn = True
    result = migrate(state="absent", name="db", wait_timeout=1)
    assert result["failed"]
    assert "after 1 s KubeVirt has not undone that of shop/db" in result["msg"]
    assert migrate(state="absent", name="db", wait=False)["migrations"][0]["outcome"] == "cancelling"


def test_a_vm_that_ends_on_its_way_is_named(migrate: Migrate, api: MigratingApi) -> None:
    def end(request: Request) -> Answer | None:
        """KubeVirt deletes the migrations of a VMI that is gone."""
        if "watch" not in request.query:
            return None
        api.objects.pop(vmi_path("db"), None)
        deleted = api.migrations()
        for item in deleted:
            del api.objects[f"{migrations_path()}/{item['metadata']['name']}"]
        events = [json.dumps({"type": "DELETED", "object": item}) + "\n" for item in deleted]
        return Answer(200, "".join(events).encode())

    api.faults[migrations_path()] = end
    result = migrate(name="db", target_node="n2")
    assert "shop/db: the VM ended during its migration" in result["msg"]


def test_a_vm_that_ends_before_its_next_attempt_is_named(migrate: Migrate, api: MigratingApi) -> None:
    """KubeVirt refuses to migrate it, which says less than that it has ended."""
    api.courses = [FAILURE]

    def end(request: Request) -> Answer | None:
        if request.method == "POST" and len(api.created()) > 1:
            api.objects[vmi_path("db")]["status"]["phase"] = "Succeeded"
        return None

    api.faults[migrations_path()] = end
    result = migrate(name="db", target_node="n2", retries=2)
    assert (result["migrations"][0]["outcome"], result["migrations"][0]["attempts"]) == ("failed", 1)
    assert "shop/db: the VM ended during its migration" in result["msg"]


def test_a_migration_that_somebody_cancels_is_not_tried_again(migrate: Migrate, api: MigratingApi) -> None:
    def cancel(request: Request) -> Answer | None:
        for item in api.migrations() if "watch" in request.query else ():
            item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return None

    api.faults[migrations_path()] = cancel
    api.courses = [FAILURE]
    result = migrate(name="db", target_node="n2")
    assert len(api.created()) == 1
    assert f"somebody deleted VirtualMachineInstanceMigration {result['migrations'][0]['migration']}" in result["msg"]
