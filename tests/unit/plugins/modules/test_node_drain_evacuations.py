# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain that takes evacuations over does so once, tells of each once, and has changed something by that alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import evacuations

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, busy_node
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import MIGRATIONS, migrations_path, vmi_path

WITHDRAWAL = f"{vmi_path('db')}/evacuate/cancel".replace("/kubevirt.io", "/subresources.kubevirt.io")
BEGUN = f"{migrations_path()}/kubevirt-evacuation-x"
TOLD = "node n1: shop/db: its evacuation by KubeVirt is taken over"


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[DrainingApi]:
    """KubeVirt evacuates VMI `db` from node n1, and has begun to migrate it."""
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    fake = busy_node()
    fake.objects[vmi_path("db")]["status"]["evacuationNodeName"] = "n1"
    fake.add_migration("kubevirt-evacuation-x", "db", phase="Pending", course=())
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def take_over(drain: Any) -> Any:
    return partial(drain, evacuations="take_over")


def lose(api: DrainingApi, path: str, *, is_done: bool) -> None:
    """The first answer to a write there."""
    rest = [SILENCE]

    def meet(request: Request) -> Answer | None:
        if request.method == "GET" or not rest:
            return None
        if is_done:
            api._list(request)
        return rest.pop()

    api.faults[path] = meet


def written(api: DrainingApi, path: str) -> int:
    return [request.path for request in api.writes()].count(path)


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("path", [WITHDRAWAL, BEGUN])
def test_it_is_taken_over_once_though_an_answer_is_lost(
    take_over: Any, api: DrainingApi, path: str, *, is_done: bool
) -> None:
    lose(api, path, is_done=is_done)
    with listener() as heard:
        result = take_over(_progress=heard.path)
    assert [(move["name"], move["outcome"], move["attempts"]) for move in result["moves"]] == [("db", "migrated", 1)]
    assert (result["changed"], heard.told.count(TOLD)) == (True, 1)
    counts = {WITHDRAWAL: 1, BEGUN: 1} | ({} if is_done else {path: 2})
    assert {each: written(api, each) for each in counts} == counts
    assert len(api.migrations()) == 1, "its own"


def test_it_is_a_change_of_a_drain_that_can_do_nothing_else(drain: Any, take_over: Any, api: DrainingApi) -> None:
    """The node was taken before, and a migration that has found a node goes on."""
    api.objects[BEGUN]["status"]["phase"] = "Running"
    assert drain(wait_timeout=1)["changed"]
    assert not drain(wait_timeout=1)["changed"]
    first, second = take_over(wait_timeout=1), take_over(wait_timeout=1)
    assert (first["error"]["reason"], api.migrations()) == ("DeadlineExceeded", [api.objects[BEGUN]])
    assert (first["changed"], second["changed"], written(api, WITHDRAWAL)) == (True, False, 1)


def test_it_is_told_also_where_the_migration_for_it_cannot_be_cancelled(take_over: Any, api: DrainingApi) -> None:
    api.faults[BEGUN] = lambda request: (
        refusal(403, "Forbidden", "not yours to delete") if request.method == "DELETE" else None
    )
    with listener() as heard:
        result = take_over(_progress=heard.path)
    assert (result["error"]["status"], result["changed"], heard.told.count(TOLD)) == (403, True, 1)


def test_what_has_ended_since_it_was_listed_is_not_taken_over(api: DrainingApi, connection: dict[str, Any]) -> None:
    def end(request: Request) -> None:
        if request.method == "GET":
            api.objects[vmi_path("db")]["status"].pop("evacuationNodeName", None)

    api.faults[vmi_path("db")] = end
    assert list(evacuations.take_over(connect_by(connection, 5), "n1", set())) == []
    assert written(api, WITHDRAWAL) == 0


@pytest.mark.parametrize("path", [vmi_path("db"), migrations_path()])
@pytest.mark.parametrize("maybe_done", [set(), {"shop/db"}])
def test_who_leaves_another_node_by_now_is_not_kept_there(
    api: DrainingApi, connection: dict[str, Any], path: str, maybe_done: set[str]
) -> None:
    """It has left this one since it was listed, and somebody drains the one where it is."""
    status = api.objects[vmi_path("db")]["status"]
    if path == migrations_path():
        del status["evacuationNodeName"]
    api.faults[path] = lambda _request: status.update(nodeName="n2", evacuationNodeName="n2")
    list(evacuations.take_over(connect_by(connection, 5), "n1", {*maybe_done}))
    assert (status["evacuationNodeName"], api.writes()) == ("n2", [])


def test_a_withdrawal_that_is_carried_out_late_is_told(api: DrainingApi, connection: dict[str, Any]) -> None:
    """It is seen between the list of the node's VMIs and the look at this one."""

    def end(request: Request) -> None:
        api.objects[vmi_path("db")]["status"].pop("evacuationNodeName", None)

    api.faults[vmi_path("db")] = end
    maybe_done = {"shop/db"}
    assert list(evacuations.take_over(connect_by(connection, 5), "n1", maybe_done)) == ["shop/db"]
    assert (maybe_done, written(api, WITHDRAWAL)) == (set(), 0)


def test_a_withdrawal_that_nobody_has_answered_counts_as_a_change(drain: Any, take_over: Any, api: DrainingApi) -> None:
    api.objects[BEGUN]["status"]["phase"] = "Running"
    drain(wait_timeout=1)
    api.faults[WITHDRAWAL] = lambda _request: SILENCE
    assert take_over(wait_timeout=1)["changed"]


def test_who_is_evicted_while_migrations_are_looked_for_is_taken_over_too(
    api: DrainingApi, connection: dict[str, Any]
) -> None:
    del api.objects[vmi_path("db")]["status"]["evacuationNodeName"]

    def evict(_request: Request) -> None:
        api.objects[vmi_path("db")]["status"]["evacuationNodeName"] = "n1"

    api.faults[migrations_path()] = evict
    assert list(evacuations.take_over(connect_by(connection, 5), "n1", set())) == ["shop/db"]
    assert (written(api, WITHDRAWAL), written(api, BEGUN)) == (1, 1)


def test_migrations_are_looked_for_only_beside_the_vms_of_the_node(
    api: DrainingApi, connection: dict[str, Any]
) -> None:
    client = connect_by(connection, 5)
    for node, paths in (("n2", []), ("n1", [migrations_path()])):
        api.requests.clear()
        list(evacuations.take_over(client, node, set()))
        assert [request.path for request in api.requests if request.path.endswith(MIGRATIONS)] == paths
