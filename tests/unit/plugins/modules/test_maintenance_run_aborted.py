# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is given up leaves nothing behind, and nothing of others is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import LEASE, Maintain, invocation
from unit.plugins.support.draining_api import SET, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.migrating_api import migrations_path, vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import CLUSTER, LEASES, RunApi, running

MARK = "virtops.kubevirt/maintenance"
MAINTAINED = "virtops.kubevirt/maintained"
STOPPED = {"virtops.kubevirt/stopped": "true"}


def stopped_for(node: str, owner: str) -> str:
    mark = {"owner": owner, "run_strategy": "Always", "since": "2026-01-01T00:00:00Z", "ready": 0, "vmis": []}
    return json.dumps({node: mark})


@pytest.fixture
def api(authority: Authority, run_module: ModuleRunner) -> Iterator[RunApi]:
    """What a run has left that was killed: node n1, a migration and a stopped VM; the like of run `other` is on n2."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        connection: dict[str, Any] = {"host": fake.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}
        for node, run in (("n1", "kernel"), ("n2", "other")):
            fake.add_node(node)
            run_module(node_maintenance.main, **connection, name=node, owner=run, run=run)
            for name in (f"moving-{node}", f"off-{node}"):
                fake.add_vm(name)
            fake.add_migration(f"move-{node}", f"moving-{node}", run=run)
            fake.objects.pop(vmi_path(f"off-{node}"))
            vm = fake.objects[vm_path(f"off-{node}")]
            vm["spec"]["runStrategy"] = "Halted"
            annotations = {"virtops.kubevirt/stopped-for": stopped_for(node, run)}
            vm["metadata"] |= {"labels": STOPPED, "annotations": annotations}
            RunStore(connect_by(connection, 5), run, "medik8s-leases").put("plan", b"{}")
        fake.requests.clear()
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Maintain:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    settings = {"run": "kernel", "_invocation": invocation("a1"), "state": "aborted"}
    return partial(run_module, main, **{**connection, **settings})


def traces(api: RunApi, node: str) -> dict[str, bool]:
    """What is there of a run on a node."""
    found = api.node(node)
    vm = api.objects[vm_path(f"off-{node}")]
    return {
        "cordon": found["spec"].get("unschedulable") is True,
        "mark": MARK in found["metadata"].get("annotations", {}),
        "lease": f"{LEASES}/node-{node}" in api.objects,
        "migration": f"{migrations_path()}/move-{node}" in api.objects,
        "stopped": bool(vm["metadata"].get("labels")),
        "off": vmi_path(f"off-{node}") not in api.objects,
    }


def test_everything_of_the_run_is_undone_and_nothing_of_another(maintain: Maintain, api: RunApi) -> None:
    result = maintain()
    assert result["changed"]
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n1"], ["n1"])
    assert [item["name"] for item in result["started"]] == ["off-n1"]
    assert not any(traces(api, "n1").values()), traces(api, "n1")
    assert all(traces(api, "n2").values()), traces(api, "n2")
    assert [item["metadata"]["labels"]["virtops.kubevirt/run"] for item in api.config_maps()] == ["other"]
    assert api.run_lease() is None
    api.requests.clear()
    assert not maintain()["changed"]
    assert api.writes() == []


@pytest.mark.parametrize("check", [False, True])
def test_nodes_that_the_run_was_done_with_are_named_and_keep_their_label(
    maintain: Maintain, api: RunApi, check: bool
) -> None:
    """That they were maintained is true also of a run that is given up; another start of it leaves them out."""
    for node, run in (("n4", "kernel"), ("n5", "other"), ("n6", "kernel")):
        api.add_node(node, {MAINTAINED: run})
    for _time in range(2):
        assert maintain(check=check)["done"] == ["n4", "n6"]
        assert api.node("n4")["metadata"]["labels"] == {MAINTAINED: "kernel"}
    assert not any(request.path.endswith(("n4", "n6")) for request in api.writes())


def test_what_cannot_be_undone_hides_no_node_that_is_done(maintain: Maintain, api: RunApi) -> None:
    api.add_node("n4", {MAINTAINED: "kernel"})
    api.stubborn = True
    result = maintain(wait_timeout=1)
    assert (result["error"]["reason"], result["done"]) == ("NotUndone", ["n4"])


def test_check_mode_tells_what_would_be_undone(maintain: Maintain, api: RunApi) -> None:
    api.hold_run("b2")
    result = maintain(check=True, diff=True)
    assert result["changed"]
    assert result["diff"]["before"].splitlines() == [
        "lease of the run, held by invocation b2 (jane@elsewhere, process 4711) since 2026-01-01T00:00:00.000000Z",
        "migration shop/move-n1",
        "cordon of node n1",
        "VMs stopped for node n1",
        "document plan",
    ]
    assert api.writes() == []


def appears(api: RunApi, name: str) -> None:
    """As of a drain that has not yet heard that the run is another's."""
    api.add_vm(name)
    api.add_migration(f"move-{name}", name, run="kernel")
    api.node("n1")["spec"]["unschedulable"] = True
    mark = {"owner": "kernel", "since": "2026-01-01T00:00:00Z", "reason": None}
    api.node("n1")["metadata"].setdefault("annotations", {})[MARK] = json.dumps(mark)


@pytest.mark.parametrize("path", [LEASES, f"{migrations_path()}/move-n1"], ids=["taken", "undone"])
def test_what_appears_late_is_undone_too(maintain: Maintain, api: RunApi, path: str) -> None:
    """While the run is taken, or the rest is undone."""
    rest = ["late"]

    def act(request: Request) -> Answer | None:
        if request.method != "GET" and rest:
            appears(api, rest.pop())
        return None

    api.faults[path] = act
    assert sorted(maintain()["cancelled"]) == ["shop/move-late", "shop/move-n1"]
    assert not any(traces(api, "n1").values()), traces(api, "n1")
    assert f"{migrations_path()}/move-late" not in api.objects


def test_a_run_of_which_something_appears_again_and_again_is_not_forgotten(maintain: Maintain, api: RunApi) -> None:
    names = iter(range(99))

    def act(request: Request) -> Answer | None:
        if request.method == "DELETE":
            name = f"late{next(names)}"
            api.faults[f"{migrations_path()}/move-{name}"] = act
            appears(api, name)
        return None

    api.faults[f"{migrations_path()}/move-n1"] = act
    result = maintain()
    assert result["error"]["reason"] == "NotUndone"
    assert "migration shop/move-late2 is there again" in result["msg"]
    assert len(api.config_maps()) == 2


def test_a_run_that_cannot_be_renewed_is_let_go(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object) -> None:
        raise Failure("keep run kernel held", "the server", "no process", "Start again.", reason="NotRenewed")

    monkeypatch.setattr(renewer, "start", fail)
    assert maintain()["error"]["reason"] == "NotRenewed"
    assert api.run_lease() is None
    assert all(traces(api, "n1").values())


def keep_renewing(api: RunApi) -> None:
    def renew(request: Request) -> Answer | None:
        lease = api.run_lease()
        if request.method == "GET" and lease and lease["spec"]["holderIdentity"] == "kernel/b2":
            lease["metadata"]["resourceVersion"] += "1"
        return None

    api.hold_run("b2")
    api.faults[LEASE] = renew


def test_a_run_that_somebody_is_at_is_left_alone(maintain: Maintain, api: RunApi) -> None:
    keep_renewing(api)
    assert maintain()["error"]["reason"] == "RunHeld"
    assert all(traces(api, "n1").values())


def test_a_run_that_somebody_is_at_can_be_taken_by_force(maintain: Maintain, api: RunApi) -> None:
    keep_renewing(api)
    assert maintain(force=True)["changed"]
    assert not any(traces(api, "n1").values())


def test_what_is_remembered_stays_for_whoever_has_taken_the_run_meanwhile(maintain: Maintain, api: RunApi) -> None:
    def taken(request: Request) -> None:
        if request.method == "DELETE":
            api.hold_run("b2")

    api.faults[f"{LEASES}/node-n1"] = taken
    before = api.config_maps()
    result = maintain(force=True)
    assert (result["error"]["reason"], api.config_maps()) == ("RunLost", before)


def test_a_cordon_of_others_stays(maintain: Maintain, api: RunApi) -> None:
    api.node("n1")["metadata"]["managedFields"][-1]["manager"] = "kubectl-cordon"
    assert maintain()["given_back"] == ["n1"]
    assert traces(api, "n1")["cordon"]
    assert not traces(api, "n1")["mark"]


def test_what_cannot_be_undone_is_told_and_kept_for_the_next_time(maintain: Maintain, api: RunApi) -> None:
    api.stubborn = True
    result = maintain(wait_timeout=1)
    assert result["error"]["reason"] == "NotUndone"
    assert "migration shop/move-n1 is cancelled, but KubeVirt has not undone it yet" in result["msg"]
    assert (result["given_back"], result["cancelled"]) == (["n1"], [])
    assert api.run_lease() is None, "others may try"
    assert len(api.config_maps()) == 2
    api.stubborn = False
    assert maintain()["cancelled"] == ["shop/move-n1"]


def test_a_migration_of_the_same_name_is_not_cancelled_in_its_place(maintain: Maintain, api: RunApi) -> None:
    path = f"{migrations_path()}/move-n1"

    def replace(request: Request) -> Answer | None:
        if request.method == "DELETE":
            api.objects[path]["metadata"] |= {"uid": "uid-of-another", "labels": {}}
        return None

    api.faults[path] = replace
    maintain()
    assert path in api.objects


def test_evacuations_and_migrations_that_are_not_the_runs_go_on(maintain: Maintain, api: RunApi) -> None:
    """Also of the VM that it moves itself: KubeVirt answers to somebody's eviction, which is nobody's to withdraw."""
    others = {"kubevirt-evacuation-x": "", "by-hand": "", "move-of-a-namesake": "kernel-2"}
    for migration, run in others.items():
        api.add_vm(f"vm-{migration}")
        api.add_migration(migration, f"vm-{migration}", run=run, phase="Scheduling", course=())
    api.add_vm("waiting")
    for name in ("vm-kubevirt-evacuation-x", "waiting", "moving-n1"):
        api.objects[vmi_path(name)]["status"]["evacuationNodeName"] = "n1"
    assert maintain()["cancelled"] == ["shop/move-n1"]
    assert {item["metadata"]["name"] for item in api.migrations()} == {*others, "move-n2"}
    written = [(request.method, request.path) for request in api.writes() if "virtualmachineinstance" in request.path]
    assert written == [("DELETE", f"{migrations_path()}/move-n1")]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_migration_that_has_ended_since_it_was_found_is_not_cancelled(
    maintain: Maintain, api: RunApi, phase: str
) -> None:
    """Nor removed: it tells what became of it."""
    path, undoing = f"{migrations_path()}/move-n1", f"{LEASES}/virtops-run-kernel"

    def end(request: Request) -> Answer | None:
        """The Leases are listed after the migrations."""
        if request.method == "GET" and undoing in api.objects and path in api.objects:
            api.objects[path]["status"]["phase"] = phase
        return None

    api.faults[LEASES] = end
    result = maintain()
    assert (result["cancelled"], result["given_back"]) == ([], ["n1"])
    assert path in api.objects
    assert not any(request.path == path for request in api.writes())


def test_a_vm_that_arrives_all_the_same_is_none_whose_migration_was_cancelled(maintain: Maintain, api: RunApi) -> None:
    """It was too late for that, as its guest was running there already."""

    def arrive(request: Request) -> Answer | None:
        if request.method == "DELETE":
            api.objects[vmi_path("moving-n1")]["status"]["nodeName"] = "n3"
        return None

    api.faults[f"{migrations_path()}/move-n1"] = arrive
    result = maintain()
    assert (result["cancelled"], result["given_back"]) == ([], ["n1"])
    assert not any(traces(api, "n1").values()), traces(api, "n1")


@pytest.mark.parametrize("state", ["held", "released", "aborted"])
@pytest.mark.parametrize("check", [False, True])
def test_another_cluster_is_left_alone(maintain: Maintain, api: RunApi, state: str, check: bool) -> None:
    result = maintain(state=state, cluster_uid="uid-of-before", check=check)
    assert (result["error"]["reason"], api.writes()) == ("OtherCluster", [])
    assert not maintain(state=state, cluster_uid=CLUSTER, check=True).get("failed")


def test_a_lease_without_a_node_goes_too(maintain: Maintain, api: RunApi) -> None:
    del api.objects["/api/v1/nodes/n1"]
    assert maintain()["given_back"] == []
    assert f"{LEASES}/node-n1" not in api.objects


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("run", "maintained"), [("kernel", ["n1"]), ("other", []), ("", [])])
def test_a_held_run_tells_what_is_stopped_for_its_nodes(
    maintain: Maintain, api: RunApi, check: bool, run: str, maintained: list[str]
) -> None:
    """And which of them it is done with, and nobody else, so that it can be started."""
    api.add_node("n4", {MAINTAINED: "kernel"})
    api.node("n1")["metadata"]["labels"] = {MAINTAINED: run} if run else {}
    result = maintain(state="held", check=check)
    assert (result["stopped_for"], result["maintained"]) == (["n1"], maintained)


def refuse_release(request: Request) -> Answer | None:
    return refusal(403, "Forbidden", "no deletion of leases") if request.method == "DELETE" else None


def test_trouble_with_the_release_hides_nothing_of_what_is_left(maintain: Maintain, api: RunApi) -> None:
    api.stubborn = True
    api.faults[LEASE] = refuse_release
    result = maintain(wait_timeout=1)
    assert (result["error"]["reason"], result["given_back"]) == ("NotUndone", ["n1"])
    assert "KubeVirt has not undone it yet; and the run was not released, " in result["msg"]
    assert "no deletion of leases" in result["msg"]


def test_trouble_with_the_release_hides_nothing_of_what_was_done(maintain: Maintain, api: RunApi) -> None:
    api.faults[LEASE] = refuse_release
    result = maintain()
    assert (result["error"]["status"], result["changed"]) == (403, True)
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n1"], ["n1"])


@pytest.mark.parametrize("state", ["held", "aborted"])
def test_trouble_with_the_release_does_not_hide_why_it_was_released(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    def fail(*_given: object) -> None:
        raise Failure("keep run kernel held", "the server", "no process", "Start again.", reason="NotRenewed")

    monkeypatch.setattr(renewer, "start", fail)
    api.faults[LEASE] = refuse_release
    result = maintain(state=state)
    assert result["error"]["reason"] == "NotRenewed"
    assert "no process; and the run was not released, the API server answered 403" in result["msg"]


def test_a_released_run_tells_what_it_has_left_and_remembers_it(maintain: Maintain, api: RunApi) -> None:
    api.add_set("n3", ready=1)
    sets = {"annotations": {"virtops.kubevirt/stopped-for": stopped_for("n3", "kernel")}, "labels": STOPPED}
    api.objects[SET]["metadata"] |= sets
    documents = api.config_maps()
    result = maintain(state="released")
    assert result["still_stopped"] == [
        {"kind": "VirtualMachine", "namespace": "shop", "name": "off-n1", "node": "n1"},
        {"kind": "VirtualMachineInstanceReplicaSet", "namespace": "shop", "name": "set", "node": "n3"},
    ]
    assert result["still_taken"] == ["n1"]
    assert result["left"] == [
        "VirtualMachine shop/off-n1, stopped for node n1",
        "VirtualMachineInstanceReplicaSet shop/set, stopped for node n3",
        "node n1, not given back",
    ]
    assert (result["documents"], api.config_maps()) == (["plan"], documents)


@pytest.mark.parametrize("happens", ["abort", "other"])
def test_a_run_that_has_left_nothing_is_forgotten(maintain: Maintain, api: RunApi, happens: str) -> None:
    """Others' nodes and VMs are theirs, and what somebody has brought back is back."""
    if happens == "abort":
        maintain()
    result = maintain(state="released", run="kernel" if happens == "abort" else "third")
    assert (result["left"], result["still_stopped"], result["still_taken"]) == ([], [], [])
    assert result["documents"] == []


def test_a_node_that_was_given_back_is_not_taken_any_more(maintain: Maintain, api: RunApi) -> None:
    """Though the VM that was stopped for it finds no place there."""
    api.node("n1")["metadata"]["annotations"].pop(MARK)
    assert maintain(state="released")["left"] == ["VirtualMachine shop/off-n1, stopped for node n1"]
    assert len(api.config_maps()) == 2


def test_check_mode_of_a_release_tells_what_is_left_now(maintain: Maintain, api: RunApi) -> None:
    result = maintain(check=True, state="released")
    assert (result["still_taken"], len(result["still_stopped"]), result["documents"]) == (["n1"], 1, ["plan"])
    assert not result["changed"]
    assert api.writes() == []
