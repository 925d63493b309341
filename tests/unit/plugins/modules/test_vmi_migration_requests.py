# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many VMs at once are no burden: what is asked of the API server grows with their number, not with its square."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import inquiries
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.migrating_api import NO_NODE, MigratingApi, shop
from unit.plugins.support.modules import ModuleRunner, Result

PODS = "/api/v1/namespaces/shop/pods"


class Migrate(Protocol):
    def __call__(self, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def migrate(run_module: ModuleRunner, connection: dict[str, Any]) -> Migrate:
    return partial(run_module, main, **connection, namespace="shop")


def many(api: MigratingApi, number: int) -> list[dict[str, str]]:
    names = [f"vm-{index}" for index in range(number)]
    for name in names:
        api.add_vmi(name)
    return [{"name": name} for name in names]


def pod_lists(api: MigratingApi) -> int:
    return len([request for request in api.requests if request.path == PODS])


def test_forty_vms(migrate: Migrate, api: MigratingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """They migrate one after the other, as KubeVirt lets them, while the others are queued."""
    monkeypatch.setattr(inquiries, "_WORDS_EVERY", 3600.0)
    result = migrate(vmis=many(api, 40), target_node="n2")
    assert {entry["outcome"] for entry in result["migrations"]} == {"migrated"}
    assert pod_lists(api) == 1
    # Of each: the VMI three times, its migration, and an event for each of its four phases.
    assert len(api.requests) < 40 * 9


def test_forty_vms_that_take_their_time(migrate: Migrate, api: MigratingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked for again only because time passes."""
    monkeypatch.setattr(inquiries, "_WORDS_EVERY", 3600.0)
    api.step_seconds = 0.02
    migrate(vmis=many(api, 40), target_node="n2")
    assert len(api.requests) < 40 * 9


def test_what_is_queued_has_no_pod_to_ask_for(migrate: Migrate, api: MigratingApi) -> None:
    api.courses = [("Pending", "Running", "Succeeded")]
    migrate(vmis=many(api, 5), target_node="n2")
    assert pod_lists(api) == 0


def test_one_list_tells_of_all(migrate: Migrate, api: MigratingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inquiries, "_WORDS_EVERY", 0.05)
    api.homeless, api.courses = True, [("Pending", "Scheduling")]
    result = migrate(vmis=many(api, 3), target_node="n2", wait_timeout=1)
    assert [entry["scheduler_message"] for entry in result["migrations"]] == [NO_NODE] * 3
    (query,) = {tuple(request.query.items()) for request in api.requests if request.path == PODS}
    assert dict(query) == {"labelSelector": "kubevirt.io/migrationJobUID", "fieldSelector": "spec.nodeName="}
