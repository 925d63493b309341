# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that comes again, or whose answers were lost, migrates nothing twice, and yet a VM may go a way twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import FAILURE, SUCCESS, MigratingApi, migrations_path, stock, vmi_path
from unit.plugins.support.modules import ModuleRunner, Result


class Migrate(Protocol):
    """Run the module on VMIs of namespace `shop`."""

    def __call__(self, *, check: bool = False, **arguments: Any) -> Result: ...


@dataclass
class DyingApi(MigratingApi):
    """`lives`: so many requests are carried out, of which the last one gets no answer, like all later ones."""

    lives: int | None = None

    def answer(self, request: Request) -> Answer:
        if self.lives is None:
            return super().answer(request)
        self.lives -= 1
        answer = super().answer(request) if self.lives >= 0 else SILENCE
        return answer if self.lives > 0 else SILENCE


@pytest.fixture
def api(authority: Authority) -> Iterator[DyingApi]:
    fake = DyingApi()
    stock(fake)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def migrate(run_module: ModuleRunner, connection: dict[str, Any]) -> Migrate:
    return partial(run_module, main, **connection, namespace="shop")


@pytest.mark.parametrize("retries", [0, 2])
def test_a_vm_that_is_brought_back_each_time_is_not_migrated_for_ever(
    migrate: Migrate, api: DyingApi, retries: int
) -> None:
    api.brought_back = {"db": 1000}
    result = migrate(name="db", target_node="n2", retries=retries)
    assert "shop/db: KubeVirt reports success, but the VM runs on n1" in result["msg"]
    assert len(api.created()) == retries + 1
    api.brought_back = {"db": retries}
    assert migrate(name="db", target_node="n2", retries=retries)["migrations"][0]["outcome"] == "migrated"


def test_a_migration_of_an_earlier_run_is_watched_not_repeated(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("db-0-1", "db", run="earlier")
    result = migrate(name="db", target_node="n2")
    assert not result["changed"]
    assert result["migrations"][0]["migration"] == "db-0-1"
    assert result["migrations"][0]["outcome"] == "migrated"
    assert api.created() == []


def test_who_has_just_arrived_by_what_is_on_its_way_has_come_from_elsewhere(
    migrate: Migrate, api: MigratingApi
) -> None:
    """KubeVirt tells the new node a moment before the migration is over."""
    api.add_migration("db-0-1", "db", run="earlier")
    state = {"migrationUid": "uid-db-0-1", "sourceNode": "n1", "targetNode": "n2"}
    api.objects[vmi_path("db")]["status"] |= {"nodeName": "n2", "migrationState": state}
    result = migrate(name="db", target_node="n2", diff=True)
    (entry,) = result["migrations"]
    assert (entry["outcome"], entry["source_node"], entry["node"]) == ("migrated", "n1", "n2")
    assert result["diff"] == {"before": "shop/db: n1\n", "after": "shop/db: n2\n"}
    entry = migrate(name="db", target_node="n2")["migrations"][0]
    assert (entry["outcome"], entry["source_node"]) == ("already_there", "n2")


def test_nobody_waits_in_check_mode_for_what_is_on_its_way(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("db-0-1", "db", run="earlier")
    result = migrate(check=True, name="db", target_node="n2")
    assert (result["changed"], result["migrations"][0]["outcome"]) == (False, "migrating")


def test_a_failed_migration_of_an_earlier_run_counts_as_the_first_attempt(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("db-0-1", "db", run="earlier", course=("Failed",))
    result = migrate(name="db", target_node="n2", retries=1)
    assert result["changed"]
    assert (result["migrations"][0]["outcome"], result["migrations"][0]["attempts"]) == ("migrated", 2)
    assert len(api.created()) == 1


def test_others_of_an_earlier_run_are_none_of_its_business(migrate: Migrate, api: MigratingApi) -> None:
    api.add_migration("db-0-1", "db", run="earlier", phase="Failed", course=())
    api.add_migration("db-0-2", "db", run="earlier")
    entry = migrate(name="db", target_node="n2", retries=0)["migrations"][0]
    assert (entry["outcome"], entry["migration"], entry["attempts"]) == ("migrated", "db-0-2", 1)


def names(api: MigratingApi) -> list[str]:
    return [body["metadata"]["name"] for body in api.created()]


def test_a_repeated_task_gives_the_same_names_until_a_migration_has_ended(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [("Pending", "Running")]
    migrate(name="db", target_node="n2", wait=False)
    (item,) = api.migrations()
    api.objects.pop(f"{migrations_path()}/{item['metadata']['name']}")
    migrate(name="db", target_node="n2", wait=False)
    first, second = names(api)
    assert first == second


def test_a_vm_may_go_the_same_way_again(migrate: Migrate, api: MigratingApi) -> None:
    there_and_back = ("n2", "n1", "n2", "n1", "n2")
    entries = [migrate(name="db", target_node=node)["migrations"][0] for node in there_and_back]
    assert [(entry["outcome"], entry["attempts"], entry["node"]) for entry in entries] == [
        ("migrated", 1, node) for node in there_and_back
    ]
    assert len(set(names(api))) == len(there_and_back)


def test_what_has_failed_before_is_no_attempt_of_the_next_task(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [FAILURE, FAILURE, FAILURE, SUCCESS]
    assert migrate(name="db", target_node="n2", retries=1)["migrations"][0]["attempts"] == 2
    entry = migrate(name="db", target_node="n2", retries=1)["migrations"][0]
    assert (entry["outcome"], entry["attempts"]) == ("migrated", 2)
    assert len(set(names(api))) == 4


@pytest.mark.parametrize("lives", range(1, 17))
def test_a_task_may_break_off_anywhere_and_come_again(migrate: Migrate, api: DyingApi, lives: int) -> None:
    api.add_vmi("cache")
    api.lives = lives
    wanted: dict[str, Any] = {"vmis": [{"name": "db"}, {"name": "cache"}], "target_node": "n2"}
    migrate(**wanted, wait_timeout=1)
    api.lives = None
    result = migrate(**wanted)
    assert [entry["node"] for entry in result["migrations"]] == ["n2", "n2"]
    assert [migration["spec"]["vmiName"] for migration in api.migrations()].count("db") == 1
    assert len(api.migrations()) == 2


def lose_once(api: MigratingApi, vmi: str) -> None:
    """Create the VMI's next migration, and answer as a server does that goes away."""
    rest = [refusal(503, "ServiceUnavailable", "etcd is away")]

    def act(request: Request) -> Answer | None:
        if request.method != "POST" or not rest or request.body["spec"]["vmiName"] != vmi:
            return None
        api._list(request)
        return rest.pop()

    api.faults[migrations_path()] = act


def test_a_lost_answer_makes_no_second_migration(migrate: Migrate, api: MigratingApi) -> None:
    api.add_vmi("cache")
    lose_once(api, "cache")
    result = migrate(vmis=[{"name": "db"}, {"name": "cache"}], target_node="n2")
    assert [entry["attempts"] for entry in result["migrations"]] == [1, 1]
    assert len({body["metadata"]["name"] for body in api.created()}) == 2
    assert len(api.migrations()) == 2
    assert not migrate(vmis=[{"name": "db"}, {"name": "cache"}], target_node="n2")["changed"]


def test_a_lost_answer_is_a_change(migrate: Migrate, api: MigratingApi) -> None:
    lose_once(api, "db")
    result = migrate(name="db", target_node="n2")
    assert (result["changed"], result["migrations"][0]["attempts"], len(api.created())) == (True, 1, 1)


def test_what_is_refused_after_a_lost_answer_and_is_not_there_is_no_change(migrate: Migrate, api: MigratingApi) -> None:
    answers = [refusal(400, "BadRequest", "a webhook denied it"), refusal(504, "Timeout", "it took too long")]
    api.faults[migrations_path()] = lambda request: answers.pop() if request.method == "POST" else None
    result = migrate(name="db", target_node="n2", retries=0)
    assert (answers, result["failed"], result["changed"]) == ([], True, False)
    assert "a webhook denied it" in result["msg"]


@pytest.mark.parametrize("wait", [True, False])
def test_one_that_a_server_made_and_then_stayed_away_is_a_change(
    migrate: Migrate, api: DyingApi, *, wait: bool
) -> None:
    def act(request: Request) -> Answer | None:
        if request.method == "POST":
            api._list(request)
            api.lives = 0
        return SILENCE if request.method == "POST" else None

    api.faults[migrations_path()] = act
    result = migrate(name="db", target_node="n2", wait=wait, wait_timeout=1)
    assert (result["failed"], result["changed"], len(api.migrations())) == (True, True, 1)
    assert result["migrations"][0]["outcome"] == "waiting"
