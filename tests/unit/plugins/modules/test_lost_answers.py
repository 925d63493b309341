# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A write whose answer is lost is done when the task ends, and told as a change, whether it had been done or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance, node_topology, vmi_replicaset

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Object, Request, refusal, serving
from unit.plugins.support.held_node import FAR_OFF, LEASE, LONG_AGO, cordon_by_hand, hold_lease
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NAMESPACES, NODES
from unit.plugins.support.replicas_api import SETS, ReplicasApi, shop

SET, NODE = f"{SETS}/db", f"{NODES}/n1"
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}, "nodeSelector": {"disk": "ssd", "zone": "a"}},
}
ALIKE: Object = {"template": TEMPLATE, "replicas": 1, "wait": False}
# What answers a write that may have been done.
ANSWERS = [
    SILENCE,
    refusal(500, "InternalError", "etcdserver: request timed out"),
    Answer(504, b"Gateway Timeout"),
    Answer(200, b"<html>Log in</html>"),
]

Task = Callable[..., Result]
# Whether a write whose answer is lost had been done, and whether a webhook had added something to it.
NOT_DONE, DONE, ADDED_TO = "not done", "done", "done and added to"
LOST = [NOT_DONE, DONE, ADDED_TO]


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplicasApi]:
    monkeypatch.setattr(persistence, "READING", 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    fake = shop()
    fake.node("n1")["metadata"] |= {"uid": "uid-n1", "resourceVersion": "1"}
    fake.objects[f"{NAMESPACES}/medik8s-leases"] = {"metadata": {"name": "medik8s-leases"}}
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def replica_set(run_module: ModuleRunner, connection: dict[str, Any]) -> Task:
    return partial(run_module, vmi_replicaset.main, namespace="shop", name="db", **connection)


@pytest.fixture
def label(run_module: ModuleRunner, connection: dict[str, Any]) -> Task:
    return partial(run_module, node_topology.main, **connection)


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Task:
    return partial(run_module, node_maintenance.main, name="n1", owner="run-a", foreign_cordon="keep", **connection)


def lose(api: ReplicasApi, path: str, lost: str = NOT_DONE, answer: Answer = SILENCE, *, dry: bool = False) -> None:
    """Let the first write to a path come to grief, of dry runs or of others."""
    rest = [answer]

    def meet(request: Request) -> Answer | None:
        if request.method == "GET" or ("dryRun" in request.query) is not dry or not rest:
            return None
        if lost != NOT_DONE:
            api._list(request)
        if lost == ADDED_TO:
            api.objects[path]["metadata"].setdefault("annotations", {})["by"] = "a webhook"
        return rest.pop()

    api.faults[path] = meet


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("lost", LOST)
def test_a_set_goes_on(replica_set: Task, api: ReplicasApi, lost: str, answer: Answer) -> None:
    """Which takes a field away."""
    replica_set(**ALIKE, paused=True)
    lose(api, SET, lost, answer)
    assert replica_set(paused=False, wait=False)["changed"]
    assert "paused" not in api.replica_set()["spec"]
    assert not replica_set(paused=False, wait=False)["changed"]


@pytest.mark.parametrize("lost", LOST)
def test_a_template_loses_what_the_task_does_not_say(replica_set: Task, api: ReplicasApi, lost: str) -> None:
    replica_set(**ALIKE)
    lose(api, SET, lost)
    spec = {**TEMPLATE["spec"], "nodeSelector": {"zone": "a"}}
    assert replica_set(template={**TEMPLATE, "spec": spec}, wait=False)["changed"]
    assert api.replica_set()["spec"]["template"]["spec"]["nodeSelector"] == {"zone": "a"}
    puts = [request for request in api.requests if request.method == "PUT" and "dryRun" not in request.query]
    # What was added to cannot be told from what somebody else has written: it is outdated, and put on what is there.
    assert len(puts) == {DONE: 1, NOT_DONE: 2, ADDED_TO: 3}[lost]
    assert not replica_set(template={**TEMPLATE, "spec": spec}, wait=False)["changed"]


def test_the_trial_of_a_change_tells_it(replica_set: Task, api: ReplicasApi) -> None:
    """A dry run whose answer is lost is not answered by what is there."""
    replica_set(**ALIKE, paused=True)
    lose(api, SET, dry=True)
    assert replica_set(paused=False, wait=False, check=True)["changed"]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("key", ["generation", "status", "uid", "resourceVersion"])
def test_a_label_may_be_called_as_a_field_of_the_servers(
    label: Task, api: ReplicasApi, key: str, answer: Answer
) -> None:
    lose(api, NODE, NOT_DONE, answer)
    assert label(topology=[{"nodes": ["n1"], "labels": {key: "gen4"}}])["changed"]
    assert api.node("n1")["metadata"]["labels"][key] == "gen4"


RACK_7 = {"topology": [{"nodes": ["n1"], "labels": {"rack": "7"}}]}


def written_by_others(api: ReplicasApi, *, done: bool, **labels: str) -> None:
    """Somebody else writes the node just after a write of ours, whose answer is lost, or just before."""
    rest = [SILENCE if done else None]

    def meet(request: Request) -> Answer | None:
        if request.method == "GET" or not rest:
            return None
        if done:
            api._list(request)
        metadata = api.node("n1")["metadata"]
        metadata |= {"resourceVersion": "99", "labels": {**metadata["labels"], **labels}}
        return rest.pop()

    api.faults[NODE] = meet


def patches(api: ReplicasApi) -> int:
    return sum(request.method == "PATCH" for request in api.requests)


@pytest.mark.parametrize("done", [True, False])
def test_a_label_that_somebody_else_has_set_since_is_theirs(label: Task, api: ReplicasApi, done: bool) -> None:
    written_by_others(api, done=done, rack="8")
    result = label(**RACK_7)
    assert api.node("n1")["metadata"]["labels"]["rack"] == "8"
    assert (result["failed"], result["error"]["status"], result["error"]["written"]) == (True, 409, [])
    assert "somebody else has written rack since the node was read" in result["msg"]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("mine", [{}, {"rack": "7"}])
def test_a_node_may_be_written_by_its_kubelet_meanwhile(
    label: Task, api: ReplicasApi, done: bool, mine: dict[str, str]
) -> None:
    written_by_others(api, done=done, other="x", **mine)
    assert label(**RACK_7)["changed"]
    assert api.node("n1")["metadata"]["labels"] | {"rack": "7", "other": "x"} == api.node("n1")["metadata"]["labels"]
    assert patches(api) == (1 if done else 2)


def test_a_node_that_is_gone_meanwhile_is_a_conflict(label: Task, api: ReplicasApi) -> None:
    def leave(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        api.objects.pop(NODE, None)
        return refusal(409, "Conflict", "the object has been modified")

    api.faults[NODE] = leave
    assert label(**RACK_7)["error"]["status"] == 409
    assert patches(api) == 1


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("holder", ["run-a", "somebody"])
def test_a_lease_is_taken(maintain: Task, api: ReplicasApi, holder: str, lost: str) -> None:
    """It is all that changes on a node that somebody else has cordoned."""
    cordon_by_hand(api)
    hold_lease(api, holder, LONG_AGO)
    lose(api, LEASE, lost)
    result = maintain()
    assert (result["changed"], result["lease"]["holder"]) == (True, "run-a")
    assert api.objects[LEASE]["spec"]["leaseTransitions"] == (4 if holder == "run-a" else 5)


@pytest.mark.parametrize("lost", LOST)
def test_a_lease_is_renewed(maintain: Task, api: ReplicasApi, lost: str) -> None:
    cordon_by_hand(api)
    hold_lease(api, "run-a", FAR_OFF)
    lose(api, LEASE, lost)
    assert not maintain()["changed"]
    assert api.objects[LEASE]["spec"]["renewTime"] != FAR_OFF
