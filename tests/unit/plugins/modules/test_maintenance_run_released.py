# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that ends holds no node any more that it has given back, though letting go of one was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, KEPT, MAINTAINED
from ansible_collections.virtops.kubevirt.plugins.modules import node_maintenance
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import Maintain, invocation
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.run_api import LEASES, RunApi, running

LEASE = f"{LEASES}/node-n1"


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.add_node("n1")
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Maintain:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    return partial(run_module, main, **{**connection, "run": "kernel", "_invocation": invocation("a1")})


Node: TypeAlias = Callable[..., Result]


@pytest.fixture
def node(run_module: ModuleRunner, connection: dict[str, Any]) -> Node:
    """Take or give back node n1 for the run."""
    given = {"name": "n1", "owner": "kernel", "run": "kernel", "invocation": "a1"}
    return partial(run_module, node_maintenance.main, **{**connection, **given})


def refuse_to_release(api: RunApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than anybody asks."""

    def refuse(request: Request) -> Answer | None:
        return refusal(503, "ServiceUnavailable", "not now") if request.method == "DELETE" else None

    monkeypatch.setattr(persistence, "READING", 0.0)
    api.faults[LEASE] = refuse


@pytest.fixture
def given_back(maintain: Maintain, node: Node, api: RunApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is done with n1, and holds it all the same: its Lease could not be released."""
    maintain()
    node()
    with monkeypatch.context() as context:
        refuse_to_release(api, context)
        assert node(state="uncordoned", maintained=True)["error"]["status"] == 503
    assert api.node("n1")["metadata"]["labels"] == {MAINTAINED: "kernel"}
    assert LEASE in api.objects
    api.faults.clear()


@pytest.mark.parametrize("keep", [False, True])
def test_a_node_that_is_given_back_is_let_go_of_in_the_end(
    maintain: Maintain, api: RunApi, given_back: None, keep: bool
) -> None:
    """By the start that has given it back, or by the next one, for whose tasks the node is done."""
    maintain()
    result = maintain(state="released", keep_record=keep)
    assert (result["changed"], result["left"]) == (True, [])
    assert LEASE not in api.objects
    assert api.run_lease() is None


def test_check_mode_lets_go_of_nothing(maintain: Maintain, api: RunApi, given_back: None) -> None:
    maintain(state="released", check=True)
    assert LEASE in api.objects


def test_who_does_not_hold_the_run_lets_go_of_nothing(maintain: Maintain, api: RunApi, given_back: None) -> None:
    """The other one may be about to take the node."""
    api.hold_run("b2")
    maintain(state="released")
    assert LEASE in api.objects
    del api.objects[f"{LEASES}/virtops-run-kernel"]
    maintain(state="released")
    assert LEASE in api.objects


@pytest.mark.parametrize(("holder", "run"), [("others", "kernel"), ("kernel", "another")])
def test_a_lease_of_others_stays(maintain: Maintain, api: RunApi, given_back: None, holder: str, run: str) -> None:
    api.objects[LEASE]["spec"]["holderIdentity"] = holder
    api.objects[LEASE]["metadata"]["labels"] = {"virtops.kubevirt/run": run}
    maintain(state="released")
    assert LEASE in api.objects


@pytest.fixture
def kept(maintain: Maintain, node: Node, api: RunApi) -> None:
    """The run has taken n1 beside a cordon of somebody else."""
    maintain()
    node(owner="others", run=None, invocation=None)
    del api.objects[LEASE]
    node(foreign_cordon="keep")


@pytest.mark.parametrize("cordoned_by_others", [False, True])
def test_a_node_that_is_still_taken_stays_held(
    maintain: Maintain, node: Node, api: RunApi, cordoned_by_others: bool
) -> None:
    maintain()
    if cordoned_by_others:
        node(owner="others", run=None, invocation=None)
        del api.objects[LEASE]
    node(foreign_cordon="keep")
    result = maintain(state="released")
    assert LEASE in api.objects
    assert (result["still_taken"], result["left"]) == (["n1"], ["node n1, not given back"])


def test_a_node_that_is_given_back_beside_a_cordon_of_others_is_not_left(
    maintain: Maintain, node: Node, kept: None
) -> None:
    node(foreign_cordon="keep", state="uncordoned", maintained=True)
    assert maintain(state="released")["left"] == []


@pytest.mark.parametrize("held", [True, False])
def test_one_that_is_not_is_given_back_with_the_run_whether_its_lease_is_there_or_not(
    maintain: Maintain, api: RunApi, kept: None, held: bool
) -> None:
    if not held:
        del api.objects[LEASE]
    foretold = maintain(state="aborted", check=True, diff=True)["diff"]["before"]
    assert "mark on node n1, beside a cordon of somebody else\n" in foretold
    assert ("cordon of node n1" in foretold, "lease node-n1" in foretold) == (False, False)
    assert maintain(state="aborted", force=True)["given_back"] == ["n1"]
    found = api.node("n1")
    assert (LEASE in api.objects, found["spec"]["unschedulable"]) == (False, True)
    assert [KEPT in found["metadata"]["annotations"], CORDON_NOTE in found["metadata"]["annotations"]] == [False, True]


def test_a_lease_that_cannot_be_released_is_told_and_the_run_stays_held(
    maintain: Maintain, api: RunApi, given_back: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_release(api, monkeypatch)
    result = maintain(state="released")
    assert "Cannot release lease medik8s-leases/node-n1" in result["msg"]
    assert api.run_lease() is not None
