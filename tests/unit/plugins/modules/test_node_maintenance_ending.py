# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against giving a node back, and what a Lease may have become by then."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.held_node import (
    FAR_OFF,
    LEASE,
    LONG_AGO,
    Maintain,
    cordon_by_hand,
    free_node,
    hold_lease,
    traces,
)
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import ObjectApi


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    fake = free_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Maintain:
    return partial(run_module, main, **{**connection, "name": "n1", "owner": "run-a"})


@pytest.mark.parametrize("arguments", [{}, {"foreign_cordon": "keep"}])
@pytest.mark.parametrize("cordoned_by", ["run-a", "kubectl-cordon"])
def test_a_node_that_another_holds_is_not_given_back(
    maintain: Maintain, api: ObjectApi, cordoned_by: str, arguments: dict[str, Any]
) -> None:
    """It took the node when our Lease had run out, and counts on the cordon."""
    maintain()
    if cordoned_by != "run-a":
        cordon_by_hand(api)
    hold_lease(api, "self-node-remediation", FAR_OFF)
    written = len(api.writes())
    result = maintain(state="uncordoned", **arguments)
    assert (result["error"]["reason"], result["error"]["node_owner"]) == ("LeaseHeld", "self-node-remediation")
    assert "Cannot uncordon node n1" in result["msg"]
    assert "self-node-remediation holds its lease medik8s-leases/node-n1 until 2999-01-01T00:01:00Z" in result["msg"]
    assert "Let the holder finish, then run this again." in result["msg"]
    assert len(api.writes()) == written


def test_a_node_whose_holder_let_its_lease_expire_is_given_back(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    hold_lease(api, "self-node-remediation", LONG_AGO)
    assert maintain(state="uncordoned")["schedulable"]
    assert traces(api) == (False, False, True), "what another holds, if only by name, is not deleted"


def test_a_lease_that_is_gone_in_between_is_released(maintain: Maintain, api: ObjectApi) -> None:
    """By the garbage collector, say, or by our own request whose answer was lost."""
    maintain()

    def be_gone(request: Request) -> Answer | None:
        if request.method == "DELETE":
            del api.objects[LEASE]
            return refusal(404, "NotFound", 'leases "node-n1" not found')
        return None

    api.faults[LEASE] = be_gone
    result = maintain(state="uncordoned")
    assert (result["changed"], result["schedulable"], result["lease"]) == (True, True, None)
    assert traces(api) == (False, False, False)


def test_a_lease_that_is_renewed_in_between_is_released(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    renewals = ["7", "8", "9", "10"]

    def renew(request: Request) -> Answer | None:
        if request.method == "DELETE" and renewals:
            api.objects[LEASE]["metadata"]["resourceVersion"] = renewals.pop()
        return None

    api.faults[LEASE] = renew
    result = maintain(state="uncordoned", diff=True)
    assert result["diff"]["before"]["cordon"]["by"] == "run-a", "the node has been looked at once"
    assert traces(api) == (False, False, False)


def test_a_lease_that_is_taken_in_between_stays(maintain: Maintain, api: ObjectApi) -> None:
    maintain()

    def take(request: Request) -> Answer | None:
        if request.method == "DELETE":
            hold_lease(api, "node-maintenance", FAR_OFF)
        return None

    api.faults[LEASE] = take
    result = maintain(state="uncordoned")
    assert (result["changed"], result["schedulable"]) == (True, True)
    assert traces(api) == (False, False, True)


def test_a_lease_that_is_renewed_without_end_is_told(maintain: Maintain, api: ObjectApi) -> None:
    maintain()
    api.faults[LEASE] = lambda request: (
        refusal(409, "Conflict", "the object has been modified") if request.method == "DELETE" else None
    )
    assert "Cannot release lease medik8s-leases/node-n1" in maintain(state="uncordoned")["msg"]
