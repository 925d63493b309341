# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever speaks against a migration is told in one clear sentence, before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import refusal, serving
from unit.plugins.support.migrating_api import HOSTNAME, MigratingApi, migrations_path, shop, vmi_path
from unit.plugins.support.modules import ModuleRunner, Result

Arguments = dict[str, Any]
Refuse = Callable[..., Result]
TO_N2 = {"name": "db", "target_node": "n2"}


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def refuse(run_module: ModuleRunner, connection: Arguments, api: MigratingApi) -> Refuse:
    """Run the module, which must fail with one sentence and start nothing; in check mode it says the same."""

    def run(**arguments: Any) -> Result:
        given = {"namespace": "shop", **connection, **arguments}
        call = partial(run_module, main, **{name: value for name, value in given.items() if value is not None})
        before = api.migrations()
        predicted, result = call(check=True), call()
        assert result["failed"]
        assert predicted["msg"] == result["msg"]
        assert "\n" not in result["msg"]
        assert api.migrations() == before
        return result

    return run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target_node": "n2"}, "one of the following is required: name, vmis"),
        ({**TO_N2, "vmis": [{"name": "db"}]}, "mutually exclusive: name|vmis"),
        ({**TO_N2, "added_node_selector": {"zone": "b"}}, "mutually exclusive: target_node|added_node_selector"),
        ({"name": "db"}, "shop/db has no destination; give target_node or added_node_selector"),
        ({**TO_N2, "namespace": None}, "db has no namespace; give namespace"),
        ({"vmis": [], "target_node": "n2"}, "no VMI is named; give name or vmis"),
        ({"vmis": [{"name": "db"}] * 2, "target_node": "n2"}, "shop/db is named more than once; name it once"),
        ({"vmis": [{"name": "db"}, {"name": ""}], "target_node": "n2"}, "name is empty; correct it"),
        ({"name": " ", "target_node": "n2"}, "name is empty; correct it"),
        ({"name": "", "state": "absent"}, "name is empty; correct it"),
        ({**TO_N2, "namespace": " "}, "namespace is empty; correct it"),
        ({**TO_N2, "namespace": "a/b"}, "a/b/db: namespace is 'a/b', but no object can be named so; correct it"),
        ({**TO_N2, "name": "x/../db"}, "name is 'x/../db', but no object can be named so; correct it"),
        ({**TO_N2, "target_node": ".."}, "shop/db: target_node is '..', but no object can be named so; correct it"),
        ({"name": "db", "added_node_selector": {"a b": "c"}}, "'a b' cannot be the key of a label"),
        ({"name": "db", "added_node_selector": {"a": "b c"}}, "'b c' cannot be the value of the label 'a'"),
        ({**TO_N2, "wait_timeout": 0}, "wait_timeout is 0; give a second at least"),
        ({**TO_N2, "unschedulable_timeout": -1}, "unschedulable_timeout is -1; give a second at least"),
        ({**TO_N2, "retries": -1}, "retries is -1; give 0 to try once"),
    ],
)
def test_options_that_make_no_sense(refuse: Refuse, api: MigratingApi, arguments: Arguments, words: str) -> None:
    assert words in refuse(**arguments)["msg"]
    assert not api.requests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "dx", "target_node": "n2"}, "shop/dx: there is no VirtualMachineInstance of this name"),
        ({"name": "db", "target_node": "n9"}, "shop/db: there is no node n9; check the spelling"),
        ({"name": "db", "added_node_selector": {"zone": "x"}}, "there is no node with the labels zone=x"),
        ({"name": "db", "target_node": "bare"}, f"node bare has no label {HOSTNAME}"),
    ],
)
def test_what_does_not_exist(refuse: Refuse, api: MigratingApi, arguments: Arguments, words: str) -> None:
    api.add_node("bare")
    result = refuse(**arguments)
    assert words in result["msg"]
    assert result["msg"].endswith("No migration was started.")
    assert not api.writes()


@pytest.mark.parametrize(
    ("spec", "selector", "words"),
    [
        ({"nodeSelector": {"zone": "a"}}, {"zone": "b"}, "zone=a, so KubeVirt would silently ignore the added zone=b"),
        ({"nodeSelector": {"zone": "b"}}, {"zone": "b"}, "ignore the added zone=b"),
        ({"nodeSelector": {HOSTNAME: "n1"}}, None, f"{HOSTNAME}=n1, so KubeVirt would silently ignore"),
        ({}, {"kubernetes.io/arch": "arm64"}, "kubernetes.io/arch=amd64, so KubeVirt would silently ignore"),
        ({}, {"kubevirt.io/schedulable": "true"}, "ignore the added kubevirt.io/schedulable=true"),
        (
            {"domain": {"machine": {"type": "q35"}}},
            {"machine-type.node.kubevirt.io/q35": "true"},
            "ignore the added machine-type.node.kubevirt.io/q35=true",
        ),
    ],
)
def test_labels_that_the_vmi_asks_for_itself(
    refuse: Refuse, api: MigratingApi, spec: Arguments, selector: dict[str, str] | None, words: str
) -> None:
    api.add_vmi("db", **spec)
    api.add_node("n3", selector or {})
    destination = {"added_node_selector": selector} if selector else {"target_node": "n2"}
    assert words in refuse(name="db", **destination)["msg"]


def test_a_vmi_that_is_bound_to_the_node_it_is_wanted_on_is_there(
    run_module: ModuleRunner, connection: Arguments, api: MigratingApi
) -> None:
    api.add_vmi("web", node="n2", nodeSelector={HOSTNAME: "n2"})
    assert not run_module(main, **connection, namespace="shop", name="web", target_node="n2")["changed"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"phase": "Scheduling"}, "the VMI is Scheduling, and only a running one can be migrated"),
        ({"phase": "Succeeded"}, "the VMI is Succeeded, and only a running one can be migrated"),
        (
            {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}]},
            "the VMI cannot be live-migrated because a disk of it cannot be used on two nodes at once "
            "(DisksNotLiveMigratable); move the disk to a PersistentVolumeClaim with access mode ReadWriteMany, or "
            "restart or stop it instead",
        ),
        (
            {"evacuationNodeName": "n1"},
            "KubeVirt is evacuating the VMI from node n1, as its pod was evicted, and migrates it itself; wait until",
        ),
    ],
)
def test_vmis_that_cannot_move(refuse: Refuse, api: MigratingApi, change: Arguments, words: str) -> None:
    api.objects[vmi_path("db")]["spec"]["evictionStrategy"] = "LiveMigrate"
    api.objects[vmi_path("db")]["status"].update(change)
    assert words in refuse(**TO_N2)["msg"]


def test_a_vmi_that_is_being_deleted(refuse: Refuse, api: MigratingApi) -> None:
    api.objects[vmi_path("db")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert "shop/db: the VMI is being deleted; leave it out" in refuse(**TO_N2)["msg"]


@pytest.mark.parametrize(("run", "node"), [("", "n2"), ("earlier", "n1")])
def test_a_migration_of_somebody_elses_or_to_elsewhere(refuse: Refuse, api: MigratingApi, run: str, node: str) -> None:
    api.add_migration("evacuation", "db", run=run, node=node)
    message = refuse(**TO_N2)["msg"]
    assert "VirtualMachineInstanceMigration evacuation is migrating the VMI already (Running)" in message
    assert "cancel it with state=absent" in message


def test_all_is_told_at_once_and_nobody_moves(refuse: Refuse, api: MigratingApi) -> None:
    result = refuse(vmis=[{"name": "db"}, {"name": "x"}, {"name": "y"}], target_node="n2")
    assert len(result["error"]["problems"]) == 2
    assert "shop/x: " in result["msg"]
    assert "shop/y: " in result["msg"]


@pytest.mark.parametrize(
    ("path", "attempted"),
    [
        (vmi_path("db"), "read VMI shop/db"),
        ("/api/v1/nodes/n2", "read node n2"),
        (migrations_path(), "list virtualmachineinstancemigrations in namespace shop"),
    ],
)
def test_missing_permissions(refuse: Refuse, api: MigratingApi, path: str, attempted: str) -> None:
    api.faults[path] = lambda request: refusal(403, "Forbidden", 'User "jane" is not allowed to')
    result = refuse(**TO_N2)
    assert result["error"]["attempted"] == attempted
    assert result["error"]["status"] == 403
    assert 'User "jane" is not allowed to. Grant the permission' in result["msg"]


def test_the_permission_to_create_is_missing(refuse: Refuse, api: MigratingApi) -> None:
    api.faults[migrations_path()] = lambda request: (
        refusal(403, "Forbidden", 'x is forbidden: User "jane" cannot create resource "x"')
        if request.method == "POST"
        else None
    )
    assert "Cannot migrate VMI shop/db" in refuse(**TO_N2)["msg"]


def test_kubevirts_admission_refuses(refuse: Refuse, api: MigratingApi) -> None:
    api.faults[migrations_path()] = lambda request: (
        refusal(400, "BadRequest", "admission webhook denied the request: in-flight migration detected")
        if request.method == "POST"
        else None
    )
    result = refuse(**TO_N2)
    assert "shop/db: the API server answered 400, admission webhook denied the request: in-flight" in result["msg"]
    assert not result["changed"]
