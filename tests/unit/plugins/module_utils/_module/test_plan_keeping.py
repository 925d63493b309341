# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan in force of a run is kept by who holds the run when it is written, not only when that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import run_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.plan_keeping import keep
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import plan_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal
from unit.plugins.support.run_api import CONFIG_MAPS, RunApi, running

RUN = {"run": "kernel", "invocation": "a1", "lease_namespace": "medik8s-leases"}
PLAN = PlanInForce.new(plan_of(()))
BUSY = refusal(429, "TooManyRequests", "too many requests")


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    """Invocation a1 holds the run."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.hold_run("a1", seconds=10**9)
        yield fake


@pytest.fixture
def client(api: RunApi, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(persistence, "READING", 5.0)
    return connect_by(connection, 5)


@pytest.mark.parametrize("answer", [BUSY, SILENCE])
def test_a_plan_is_not_written_again_for_a_run_that_is_lost(api: RunApi, client: Client, answer: Answer) -> None:
    def take(_request: Request) -> Answer:
        api.hold_run("b2", seconds=10**9)
        return answer

    api.faults[CONFIG_MAPS] = take
    with pytest.raises(Failure, match="it is held by invocation b2") as told:
        keep(client, RUN, PLAN)
    assert told.value.reason == "RunLost"
    assert [write.path for write in api.writes()].count(CONFIG_MAPS) == 1


def test_a_plan_that_is_there_is_not_replaced_for_a_run_that_was_lost_since(api: RunApi, client: Client) -> None:
    keep(client, RUN, PLAN)
    (before,) = api.config_maps()
    api.faults[f"{CONFIG_MAPS}/{before['metadata']['name']}"] = lambda _request: api.hold_run("b2", seconds=10**9)
    with pytest.raises(Failure, match="it is held by invocation b2"):
        keep(client, RUN, PlanInForce(PLAN.plan, "another"))
    assert api.config_maps() == [before]
