# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pod_eviction against a real scheduler and eviction API, with no more permissions than it says it needs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES
from ansible_collections.virtops.kubevirt.plugins.modules.pod_eviction import main

from integration.accounts import account
from integration.draining import Yard
from unit.plugins.support.modules import ModuleRunner

NODES = ("evicting-0", "evicting-1")
SOURCE = NODES[0]


@pytest.fixture
def evict(yard: Yard, run: ModuleRunner) -> Iterator[Any]:
    with yard.emptied_afterwards(), account(yard.testbed, yard.namespace, MODULES["pod_eviction"]) as kubeconfig:
        yield partial(run, main, kubeconfig=kubeconfig, wait_timeout=30)


@pytest.mark.gate
def test_a_pod_is_evicted_and_what_replaces_it_is_waited_for(evict: Any, yard: Yard) -> None:
    pods = [{"namespace": yard.namespace, "name": yard.deploy(name, SOURCE)} for name in ("cache", "web")]
    assert [entry["outcome"] for entry in evict(pods=pods, check=True)["evicted"]] == ["would_evict"] * 2
    with yard.cordon(SOURCE):
        result = evict(pods=pods)
    assert [entry["outcome"] for entry in result["evicted"]] == ["evicted"] * 2, result["msg"]
    places = [pod["node"] for item in result["replacements"] for pod in item["pods"]]
    assert (len(places), SOURCE in places) == (2, False)
    again = evict(pods=pods)
    assert (again["changed"], len(again["gone"])) == (False, 2)


def test_a_budget_holds_back_its_pod_until_it_yields(evict: Any, yard: Yard) -> None:
    pods = [{"namespace": yard.namespace, "name": yard.deploy("api", SOURCE, budget=1)}]
    early = evict(pods=pods, wait_timeout=2)
    assert (early["error"]["reason"], early["changed"]) == ("DeadlineExceeded", False)
    assert "The disruption budget api needs 1 healthy pods" in early["msg"]
    yard.relax("api")
    assert evict(pods=pods)["evicted"][0]["outcome"] == "evicted"
