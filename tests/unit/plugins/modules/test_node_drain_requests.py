# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain costs the API server: a few requests for each migration, and one look at the whole cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import inquiries
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, busy_node
from unit.plugins.support.fake_api import Request, serving

VMIS = "/apis/kubevirt.io/v1/virtualmachineinstances"


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def reads(api: DrainingApi) -> list[Request]:
    return [item for item in api.requests if item.method == "GET" and "watch" not in item.query]


def test_a_migration_costs_four_requests(drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its VMI and its target are read before it is created, and the VMI when it is over; watches tell the rest.

    The guard of the node comes beside that, every few seconds, and what every drain reads of the whole cluster: once,
    and again where a slow machine makes it plan anew. Where it makes a watch later than the answer to a write, a VMI is
    looked at once more: that is few, and not one a migration.
    """
    monkeypatch.setattr(inquiries, "_WORDS_EVERY", 3600.0)
    for number in range(20):
        api.add_vmi(f"vm-{number}")
    assert len(drain()["moves"]) == 21
    guard = ("/nodes/n1", "/leases/node-n1")
    looks = [item for item in reads(api) if not item.path.endswith(guard)]
    of_one = [item for item in looks if "/virtualmachineinstances/" in item.path or "/nodes/" in item.path]
    created = [item for item in api.requests if item.method == "POST" and item.path.endswith("instancemigrations")]
    assert len(created) == 21
    assert len(of_one) <= 21 * 3 + 10
    times = sum(item.path == "/api/v1/nodes" for item in looks)
    assert len(looks) - len(of_one) <= (len(KINDS) + 16) * times


def test_a_watch_that_lags_behind_costs_no_plan(drain: Any, api: DrainingApi) -> None:
    """Who has left is there still by such a watch, as if somebody had brought the VM back: lists tell."""
    api.faults[VMIS] = lambda request: time.sleep(0.4) if "watch" in request.query else None
    for number in range(8):
        api.add_vmi(f"vm-{number}")
    assert {move["outcome"] for move in drain()["moves"]} == {"migrated"}
    looks = [item.path for item in reads(api)]
    assert looks.count("/api/v1/nodes") == 1
    assert looks.count(VMIS) <= 14
