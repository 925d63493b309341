# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a replica set was stopped for nodes is waited for when they are back, and no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.observer import Observer
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import SET, VMIS_IN_SHOP, DrainingApi, empty_nodes
from unit.plugins.support.fake_api import Request, refusal, serving
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = empty_nodes()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def full(api: DrainingApi) -> None:
    """No node has room for another VM."""
    for name in ("n1", "n2"):
        api.node(name)["status"]["allocatable"]["pods"] = "2"


@pytest.fixture
def stop(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    stop = [{"policy": "stop"}]
    return partial(run_module, main, **connection, owner="me", cordon=True, policies=stop, wait_timeout=20)


@pytest.fixture
def restore(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, main, **connection, owner="me", state="restored", wait_timeout=1)


@pytest.mark.usefixtures("full")
def test_each_node_waits_for_what_was_stopped_for_it(stop: Any, restore: Any, api: DrainingApi) -> None:
    api.add_set("n1", "n1", "n2", "n2", ready=4)
    for node, ready in (("n1", 2), ("n2", 0)):
        assert [entry["outcome"] for entry in stop(name=node)["interrupted"]] == ["stopped", "stopped"]
        api.objects[SET]["status"]["readyReplicas"] = ready
    assert "set: starting, 0 of 2 replicas are ready" in restore(name="n1")["msg"]
    api.objects[SET]["status"]["readyReplicas"] = 2
    assert restore(name="n1")["started"][0]["outcome"] == "started"
    assert "set: starting, 2 of 4 replicas are ready" in restore(name="n2")["msg"]
    api.objects[SET]["status"]["readyReplicas"] = 4
    assert restore(name="n2")["started"][0]["outcome"] == "started"
    assert not api.objects[SET]["metadata"]["annotations"]


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize(
    ("ready", "replicas", "wanted"),
    [
        (3, 3, 3),
        (2, 3, 2),  # one was not ready before
        (0, 3, 0),
        (3, 1, 1),  # it has been scaled down since
        (3, 5, 3),
    ],
)
def test_a_set_needs_no_more_replicas_than_before(
    stop: Any, restore: Any, api: DrainingApi, ready: int, replicas: int, wanted: int
) -> None:
    api.add_set("n1", "n2", "n2", ready=ready)
    stop(name="n1")
    api.objects[SET]["spec"]["replicas"] = replicas
    if wanted:
        api.objects[SET]["status"]["readyReplicas"] = wanted - 1
        assert f"{wanted - 1} of {wanted} replicas are ready" in restore(name="n1")["msg"]
    api.objects[SET]["status"]["readyReplicas"] = wanted
    assert restore(name="n1")["started"][0]["outcome"] == "started"


@pytest.mark.usefixtures("full")
def test_a_stop_whose_answer_is_lost_counts_once(stop: Any, restore: Any, api: DrainingApi) -> None:
    api.add_set("n1", "n2", "n2", ready=3)
    api.lose_answer(vmi_path("set-0"))
    stop(name="n1")
    stop(name="n2")
    api.objects[SET]["status"]["readyReplicas"] = 1
    assert "1 of 2 replicas are ready" in restore(name="n2")["msg"]


@pytest.mark.usefixtures("full")
def test_a_mark_that_many_write_is_written_in_the_end(stop: Any, api: DrainingApi) -> None:
    api.add_set("n1", "n2", "n2", ready=3)
    conflicts = [refusal(409, "Conflict", "the object has been modified")] * 7
    api.faults[SET] = lambda request: conflicts.pop() if request.method == "PATCH" and conflicts else None
    assert [entry["outcome"] for entry in stop(name="n1")["interrupted"]] == ["stopped"]
    assert not conflicts


def test_check_mode_puts_the_restart_of_a_replica_to_the_server(stop: Any, api: DrainingApi) -> None:
    api.add_set("n1", "n2", ready=2)
    result = stop(name="n1", policies=[{"policy": "restart"}], check=True)
    assert [(entry["outcome"], entry["name"]) for entry in result["interrupted"]] == [("would_restart", "set-0")]
    (dry_run,) = [request for request in api.writes() if request.path == vmi_path("set-0")]
    assert "All" in str(dry_run)
    assert vmi_path("set-0") in api.objects


def test_what_a_set_starts_elsewhere_at_once_is_no_stop(stop: Any, restore: Any, api: DrainingApi) -> None:
    """Whatever the policy says, a replica set makes another VMI; there is nothing to bring back."""
    api.add_set("n1", "n2", ready=2)
    api.successors = "n2"
    (entry,) = stop(name="n1")["interrupted"]
    assert (entry["action"], entry["outcome"], entry["target_node"]) == ("restart", "restarted", "n2")
    assert (entry["successor"], restore(name="n1")["started"]) == ("set-0-again", [])


def no_set(api: DrainingApi) -> None:
    del api.objects[SET]


def another_set(api: DrainingApi) -> None:
    api.objects[SET]["metadata"]["uid"] = "uid-of-another"


def ending_set(api: DrainingApi) -> None:
    api.objects[SET]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("happens", [no_set, another_set, ending_set])
def test_a_replica_whose_set_goes_without_it_is_not_ended(
    stop: Any, api: DrainingApi, happens: Callable[[DrainingApi], None]
) -> None:
    """With --cascade=orphan it stays, and nothing would start it again; watches tell of that a moment later."""
    api.add_set("n1", "n2", ready=2)

    def asked(request: Request) -> None:
        if request.method == "GET" and SET not in goes:
            goes.append(SET)
            happens(api)

    goes: list[str] = []
    api.faults[vmi_path("set-0")] = asked
    result = stop(name="n1", policies=[{"policy": "restart"}], wait_timeout=1)
    assert goes
    assert vmi_path("set-0") in api.objects
    assert "vm shop/set-0: waiting, replica set set is being deleted" in result["msg"]


def test_a_look_reads_a_namespace_once_for_all_replicas(
    stop: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.add_set("n1", "n1", "n1", "n1", ready=4)
    api.successors = "n2"
    look, looks = Observer.look, []

    def counted(*arguments: Any) -> Any:
        looks.append(arguments)
        return look(*arguments)

    monkeypatch.setattr(Observer, "look", counted)
    result = stop(name="n1", policies=[{"policy": "restart"}])
    assert len({entry["successor"] for entry in result["interrupted"] if entry["outcome"] == "restarted"}) == 4
    assert 2 <= len([request for request in api.requests if request.path == VMIS_IN_SHOP]) <= len(looks)
