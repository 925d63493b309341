# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who waits for an inventory because its API server is busy hears of it, once; time is the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ansible_collections.virtops.kubevirt.plugins.inventory.nodes import InventoryModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._node_source import NodeQuery, look

from unit.plugins.support.fake_api import FakeApi, refusal
from unit.plugins.support.objects import node
from unit.plugins.support.own_time import Time, own_time

BUSY = refusal(429, "TooManyRequests", "Too many requests")


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    yield from own_time(monkeypatch)


@pytest.mark.parametrize(("busy_for", "lines"), [(5.0, 0), (40.0, 1), (110.0, 1)])
def test_a_busy_server_is_told_of_after_ten_seconds(
    api: FakeApi, connection: dict[str, str], time: Time, busy_for: float, lines: int
) -> None:
    api.lists["nodes"] = [node("w1")]
    api.fail("nodes", lambda _request: BUSY if time.now < 1000.0 + busy_for else None)
    told: list[str] = []
    found = look(NodeQuery({**connection, "request_timeout": 60}, (), ()), told.append)
    assert ([item["metadata"]["name"] for item in found.nodes], len(told)) == (["w1"], lines)
    assert all(line.startswith("API server busy (429), trying again since ") for line in told)


def test_a_server_that_never_answers_is_left(api: FakeApi, connection: dict[str, str]) -> None:
    api.fail("nodes", lambda request: request.outlast())
    with pytest.raises(Failure, match="there was no answer in time"):
        look(NodeQuery({**connection, "request_timeout": 1}, (), ()), lambda _line: None)


def test_it_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, warnings = InventoryModule(), list[str]()
    monkeypatch.setattr(plugin.display, "warning", warnings.append)
    plugin._tell("API server busy (429), trying again since 02:14:07")
    assert warnings == ["Nodes are not read yet: API server busy (429), trying again since 02:14:07."]
