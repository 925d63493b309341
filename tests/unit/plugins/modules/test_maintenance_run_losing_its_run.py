# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who releases or gives up a run that somebody takes meanwhile leaves all the rest of it to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer, run_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import Maintain, invocation
from unit.plugins.support.fake_api import Answer, refusal
from unit.plugins.support.migrating_api import migrations_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NODES
from unit.plugins.support.run_api import CONFIG_MAPS, LEASES, RunApi, running

LEASE = f"{LEASES}/node-n1"
BUSY = refusal(429, "TooManyRequests", "too many requests")


@pytest.fixture
def api(authority: Authority, run_module: ModuleRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunApi]:
    """Invocation a1 holds a run with node n1, a migration and two documents."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(persistence, "READING", 10.0)
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        connection: dict[str, Any] = {"host": fake.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}
        fake.add_node("n1")
        run_module(node_maintenance.main, **connection, name="n1", owner="kernel", run="kernel")
        fake.add_vmi("db")
        fake.add_migration("move-db", "db", run="kernel", course=())
        store = RunStore(connect_by(connection, 5), "kernel", "medik8s-leases")
        for name in ("plan", "record-n1"):
            store.put(name, b"{}")
        fake.hold_run("a1", seconds=10**9)
        fake.requests.clear()
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Maintain:
    return partial(run_module, main, **{**connection, "run": "kernel", "_invocation": invocation("a1")})


def is_taken(api: RunApi) -> Answer:
    api.hold_run("b2", seconds=10**9)
    return BUSY


def is_taken_with_its_nodes(api: RunApi) -> None:
    """Whose Leases bear the name of the run as before, and are refused to who has seen them before."""
    api.hold_run("b2", seconds=10**9)
    api.objects[LEASE]["metadata"]["resourceVersion"] = "4711"


def lose(api: RunApi, path: str, happens: Callable[[RunApi], Answer | None]) -> None:
    """The run, with the first write there."""
    api.faults[path] = lambda request: None if request.method == "GET" else happens(api)


def first(api: RunApi, begin: str) -> str:
    """The first path of an object that begins so."""
    return next(path for path in api.objects if path.startswith(begin))


def written(api: RunApi) -> list[str]:
    """But for the Lease of the run itself."""
    return [write.path for write in api.writes() if "virtops-run" not in write.path or CONFIG_MAPS in write.path]


@pytest.mark.parametrize(
    ("begin", "happens"),
    [
        (f"{migrations_path()}/", is_taken),
        (f"{NODES}/n1", is_taken),
        (LEASE, is_taken),
        (LEASE, is_taken_with_its_nodes),
        (f"{CONFIG_MAPS}/", is_taken),
    ],
)
def test_nothing_more_is_undone(
    maintain: Maintain, api: RunApi, begin: str, happens: Callable[[RunApi], Answer | None]
) -> None:
    path = first(api, begin)
    lose(api, path, happens)
    result = maintain(state="aborted", wait_timeout=5)
    assert (result["error"]["reason"], "held by invocation b2" in result["msg"]) == ("RunLost", True)
    assert (written(api).count(path), written(api)[-1]) == (1, path)
    assert path in api.objects


@pytest.mark.parametrize(
    ("begin", "happens"), [(LEASE, is_taken), (LEASE, is_taken_with_its_nodes), (f"{CONFIG_MAPS}/", is_taken)]
)
def test_nothing_more_is_released(
    maintain: Maintain, api: RunApi, begin: str, happens: Callable[[RunApi], Answer | None]
) -> None:
    """Of a run that has given its node back, but for the Lease."""
    del api.node("n1")["metadata"]["annotations"][CORDON_NOTE]
    path = first(api, begin)
    lose(api, path, happens)
    result = maintain(state="released")
    assert (result["error"]["reason"], "held by invocation b2" in result["msg"]) == ("RunLost", True)
    assert (written(api).count(path), written(api)[-1]) == (1, path)
    assert path in api.objects


def test_no_report_is_added(maintain: Maintain, api: RunApi) -> None:
    lose(api, CONFIG_MAPS, is_taken)
    result = maintain(state="released", keep_record=True, report=["n1: done"])
    assert "held by invocation b2" in str(result["warnings"])
    assert (written(api), len(api.config_maps())) == ([CONFIG_MAPS], 2)
