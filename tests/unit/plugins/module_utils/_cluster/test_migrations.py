# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration is created once, though the answer may be lost and whatever the server says to the same request then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find_migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import Verbs
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.commands import Migrate

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.migrating_api import HOSTNAME, MigratingApi, migrations_path, shop, vmi_path
from unit.plugins.support.object_api import NODES

Change = Callable[[MigratingApi], Any]
PATH = f"{migrations_path()}/db-1"


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def client(connection: dict[str, str]) -> Client:
    return connect_by(connection, 10)


def manifest(vmi: str = "db", node: str = "n2", run: str = "mine") -> dict[str, Any]:
    return migrations.manifest("shop", "db-1", vmi, {HOSTNAME: node}, run, 60)


def finish(api: MigratingApi) -> None:
    api.objects[PATH]["status"] = {"phase": "Succeeded"}


def end_vm(api: MigratingApi) -> None:
    del api.objects[vmi_path("db")]


def bind(api: MigratingApi) -> None:
    condition = {"type": "LiveMigratable", "status": "False", "reason": "HotplugNotLiveMigratable"}
    api.objects[vmi_path("db")]["status"]["conditions"] = [condition]


@pytest.mark.parametrize("change", [None, finish, end_vm, bind])
def test_the_same_request_finds_its_migration(client: Client, api: MigratingApi, change: Change | None) -> None:
    first = migrations.create(client, manifest())
    if change:
        change(api)
    assert migrations.create(client, manifest())["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(api.migrations()) == 1


@pytest.mark.parametrize(
    "other", [manifest(node="n3"), manifest(run="another"), manifest(vmi="web", node="n1")], ids=["node", "run", "vmi"]
)
def test_another_of_the_same_name_is_not_taken_for_it(client: Client, api: MigratingApi, other: dict[str, Any]) -> None:
    migrations.create(client, other)
    with pytest.raises(Failure):
        migrations.create(client, manifest())


def test_a_foreign_migration_is_told(client: Client, api: MigratingApi) -> None:
    api.add_migration("evacuation", "db")
    words = (
        "admission webhook .* denied the request: in-flight migration detected. Active migration job .uid-evacuation."
    )
    with pytest.raises(Failure, match=words):
        migrations.create(client, manifest())


def on_get(answer: Answer) -> Callable[[Request], Answer | None]:
    return lambda request: answer if request.method == "GET" else None


def test_what_may_not_be_read_is_not_taken_for_it(client: Client, api: MigratingApi) -> None:
    migrations.create(client, manifest())
    api.faults[PATH] = on_get(refusal(403, "Forbidden", 'User "jane" cannot get resource'))
    with pytest.raises(Failure, match="in-flight migration detected"):
        migrations.create(client, manifest())


@pytest.mark.parametrize("may_read", [True, False])
def test_what_is_refused_after_a_lost_answer_was_not_done_if_it_is_not_there(
    connection: dict[str, str], api: MigratingApi, *, may_read: bool
) -> None:
    """The transport has looked before it asked again, when what was lost could still be under way."""
    answers = [refusal(400, "BadRequest", "a webhook denied it"), refusal(504, "Timeout", "it took too long")]
    api.faults[migrations_path()] = lambda request: answers.pop() if request.method == "POST" else None
    if not may_read:
        api.faults[PATH] = on_get(refusal(403, "Forbidden", 'User "jane" cannot get resource'))
    with pytest.raises(Failure, match="a webhook denied it") as told:
        migrations.create(connect_by(connection, 10, Persistence(30)), manifest())
    assert (answers, told.value.tries, told.value.maybe_done) == ([], 2, not may_read)


def test_a_server_that_goes_away_may_be_asked_again(client: Client, api: MigratingApi) -> None:
    migrations.create(client, manifest())
    api.faults[PATH] = on_get(refusal(503, "ServiceUnavailable", "shutting down"))
    with pytest.raises(Failure) as told:
        migrations.create(client, manifest())
    assert told.value.passing


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_the_server_cannot_pin_is_not_created(client: Client, api: MigratingApi, dry_run: bool) -> None:
    """By KubeVirt 1.5 and older: without the field the VM would go anywhere."""
    api.known = ("vmiName",)
    with pytest.raises(Failure) as told:
        migrations.create(client, manifest(), dry_run=dry_run)
    assert told.value.concerns_all
    assert str(told.value).endswith(
        'strict decoding error: unknown field "spec.addedNodeSelector". To pin a migration to a node KubeVirt 1.6 or '
        "newer is needed: upgrade it. Nothing was created."
    )
    assert not api.migrations()


def test_a_dry_run_takes_nothing_for_its_own(client: Client, api: MigratingApi) -> None:
    migrations.create(client, manifest())
    with pytest.raises(Failure, match="in-flight migration detected"):
        migrations.create(client, manifest(), dry_run=True)


def test_who_has_lost_the_run_takes_no_migration_of_his_successor_for_his_own(
    client: Client, api: MigratingApi
) -> None:
    """They bear the same names."""
    migrations.create(client, manifest())

    def lost() -> None:
        raise Failure("go on", "server", "it is another's", "Stop.", reason="RunLost")

    with pytest.raises(Failure, match="it is another's"):
        migrations.create(client.guarded(lost), manifest())


def test_a_migration_is_not_cancelled_because_its_node_is_gone(client: Client, api: MigratingApi) -> None:
    migrations.create(client, manifest())
    (begun,) = find_migrations(client, "shop")

    def gone() -> None:
        client.get("/api/v1/nodes/n9", "read node n9")

    with pytest.raises(Failure, match="read node n9"):
        migrations.cancel(client.guarded(gone), begun)
    assert PATH in api.objects


def moves(api: MigratingApi) -> None:
    api.objects[vmi_path("db")]["status"]["nodeName"] = "n2"


def cordons(api: MigratingApi) -> None:
    api.objects[f"{NODES}/n2"]["spec"] = {"unschedulable": True}


@pytest.mark.parametrize("change", [moves, end_vm, cordons])
@pytest.mark.parametrize("is_made", [True, False])
def test_who_asks_again_finds_it_though_its_vm_has_left_by_it(
    client: Client, api: MigratingApi, change: Change, is_made: bool
) -> None:
    """Or its target has been cordoned since. Where there is none, nothing was done before, either."""
    if is_made:
        migrations.create(client, manifest())
    change(api)
    uid = api.objects[vmi_path("db")]["metadata"]["uid"] if vmi_path("db") in api.objects else ""
    command = Migrate("1.migrate.shop/db", "shop", "db", uid, "db-1", "n1", "n2", {HOSTNAME: "n2"})
    (answer,), trouble = Verbs(client, VerbSettings(run="mine")).carry_out([command])
    assert (bool(answer.refused), answer.passing, answer.needless, trouble) == (*[not is_made] * 3, None)
    assert len(api.migrations()) == is_made
