# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a run cannot be undone is named, and keeps nothing else of it from being undone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import Maintain, invocation
from unit.plugins.modules.test_maintenance_run_aborted import appears
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.migrating_api import migrations_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import LEASES, RunApi, running

DENIED = 'admission webhook "guard.example" denied the request: not now'


@pytest.fixture
def api(authority: Authority, run_module: ModuleRunner) -> Iterator[RunApi]:
    """Nodes n1 and n2 are the run's, and two VMs on their way."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        connection: dict[str, Any] = {"host": fake.url, "api_key": "open-sesame", "ca_cert": str(authority.cert)}
        for node in ("n1", "n2"):
            fake.add_node(node)
            run_module(node_maintenance.main, **connection, name=node, owner="kernel", run="kernel")
            fake.add_vm(f"vm-{node}")
            fake.add_migration(f"move-{node}", f"vm-{node}", run="kernel")
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Maintain:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    settings = {"run": "kernel", "_invocation": invocation("a1"), "state": "aborted"}
    return partial(run_module, main, **{**connection, **settings})


@pytest.mark.parametrize("status", [400, 403])
def test_what_is_refused_keeps_nothing_else(maintain: Maintain, api: RunApi, status: int) -> None:
    """A migration and a Lease: neither what stands beside them, nor what appears while they are tried."""
    rest = ["late"]

    def refuse(request: Request) -> Answer | None:
        if request.method != "DELETE":
            return None
        if rest:
            appears(api, rest.pop())
        return refusal(status, "Denied", DENIED)

    api.faults |= {f"{migrations_path()}/move-n1": refuse, f"{LEASES}/node-n1": refuse}
    result = maintain()
    assert (result["error"]["reason"], result["error"]["problems"]) == (
        "NotUndone",
        [
            f"cancel migration shop/move-n1: the API server answered {status}, {DENIED}",
            f"release lease medik8s-leases/node-n1: the API server answered {status}, {DENIED}",
        ],
    )
    assert (result["cancelled"], result["given_back"]) == (["shop/move-n2", "shop/move-late"], ["n2"])
    assert [api.node(name)["spec"].get("unschedulable") for name in ("n1", "n2")] == [None, None]


def test_of_much_that_is_left_the_first_is_told(maintain: Maintain, api: RunApi) -> None:
    for number in range(30):
        api.add_vm(f"many-{number}")
        api.add_migration(f"many-{number}", f"many-{number}", run="kernel")
        api.faults[f"{migrations_path()}/many-{number}"] = deny
    result = maintain()
    assert (len(result["error"]["problems"]), result["msg"].count("cancel migration")) == (30, 10)
    assert "; and 20 more. Remove the cause" in result["msg"]


def deny(request: Request) -> Answer | None:
    return refusal(400, "Denied", DENIED) if request.method == "DELETE" else None


def test_a_run_that_may_not_cancel_anything_hears_so_at_once(maintain: Maintain, api: RunApi) -> None:
    def refuse(request: Request) -> Answer | None:
        words = 'cannot delete resource "virtualmachineinstancemigrations"'
        return refusal(403, "Forbidden", f'User "jane" {words}') if request.method == "DELETE" else None

    api.faults[f"{migrations_path()}/move-n1"] = refuse
    result = maintain()
    assert (result["error"]["status"], result["error"]["reason"]) == (403, "Forbidden")
    assert f"{migrations_path()}/move-n2" in api.objects
