# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a pod comes up in place of an evicted one counts for how much of the plan came true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.landings import LandingLook
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ObjectReference

from testbed.pki import Authority
from unit.plugins.support.draining_api import DrainingApi, busy_node
from unit.plugins.support.fake_api import serving


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.mark.parametrize(("lands", "done"), [("n4", "came back on n4"), ("", "was not seen to come back")])
def test_a_pod_that_comes_back_elsewhere_is_not_as_planned(drain: Any, api: DrainingApi, lands: str, done: str) -> None:
    api.lands = lands
    result = drain()
    (deviation,) = result["deviations"]
    assert (result["left"], result["as_planned"]) == ([], 1)
    assert (deviation["name"], deviation["planned"], deviation["done"]) == ("api", "comes back on n2", done)
    assert deviation["why"]


def test_what_came_in_place_of_a_pod_that_is_gone_is_known_by_its_name(
    connection: dict[str, str], api: DrainingApi
) -> None:
    old, younger = ({"generateName": "web-", "creationTimestamp": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2))
    api.add_pod("web-bbbbb", "n3", metadata=old)
    api.add_pod("web-ccccc", "n2", metadata=younger)
    api.objects.pop("/api/v1/namespaces/shop/pods/api")
    look = LandingLook(connect_by(connection, 5), [ObjectReference("Pod", "shop", "web-aaaaa", "uid-web-aaaaa")])
    assert look.landings(["uid-web-aaaaa"], ["n2"], 0.0).came == {"o": ["n2"]}
