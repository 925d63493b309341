# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains through a proxy that has its own ways: that has no server for a moment, or keeps no watch open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main as node_drain
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main as node_maintenance

from faults.proxy import ENDED, Moment, Proxy, proxied
from integration.draining import Yard
from unit.plugins.support.listener import listener
from unit.plugins.support.modules import ModuleRunner

NODES = ("proxied-0", "proxied-1")
SOURCE, TARGET = NODES
VMS = ("first", "second")
KUBEVIRT = r"/apis/kubevirt\.io/v1"
MIGRATING = rf"{KUBEVIRT}/namespaces/[^/]+/virtualmachineinstancemigrations"
# What a drain looks at between its first migration and its end.
LOOKS = {
    "a VM that has arrived": rf"{KUBEVIRT}/namespaces/[^/]+/virtualmachineinstances/first",
    "the VMs of the node": rf"{KUBEVIRT}/virtualmachineinstances",
    "the run's migrations": rf"{KUBEVIRT}/virtualmachineinstancemigrations",
    "the pods of the node": "/api/v1/pods",
    "the node": f"/api/v1/nodes/{SOURCE}",
    "its Lease": rf"/apis/coordination\.k8s\.io/v1/namespaces/[^/]+/leases/node-{SOURCE}",
}
PAGES = 2  # for each of them, one after the other
# Seconds: without news, after which a watch ends; and for which a drain at least lasts that meets such a proxy.
AT_ONCE, LASTS = 0.02, 6.0

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def proxy(yard: Yard, tmp_path: Path) -> Iterator[tuple[str, Proxy]]:
    with proxied(yard.testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy):
        yield str(kubeconfig), proxy


@pytest.fixture
def relay(proxy: tuple[str, Proxy]) -> Proxy:
    return proxy[1]


@pytest.fixture
def drain(yard: Yard, run: ModuleRunner, proxy: tuple[str, Proxy]) -> Iterator[Run]:
    """Through the proxy."""
    connection: dict[str, Any] = {"kubeconfig": proxy[0], "name": SOURCE, "owner": "test"}
    with yard.emptied_afterwards():
        yield partial(run, node_drain, **connection, cordon=True, wait_timeout=60)
        run(node_maintenance, **connection, state="uncordoned")


def outcomes(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in entries}


def uids(yard: Yard) -> dict[str, str]:
    return {name: yard.vmi(name)["metadata"]["uid"] for name in VMS}


def test_never_takes_a_proxys_page_for_the_end_of_a_vm(drain: Run, relay: Proxy, yard: Yard) -> None:
    """It says 404 to each kind of look, from the first migration on, when all watches have to begin anew as well."""
    for name in VMS:
        yard.start_vm(name, SOURCE)
    pod, before = yard.deploy("web", SOURCE), uids(yard)
    met: dict[str, Moment] = {}

    def lose_its_server() -> None:
        met.update({what: relay.at("GET", path, only=PAGES, page="404 Not Found") for what, path in LOOKS.items()})
        relay.dropped += 1

    relay.at("POST", MIGRATING, act=lose_its_server)
    with listener() as heard:
        result = drain(_progress=heard.path)
    relay.moments.clear()
    assert not result.get("failed"), result
    assert {what: moment.met for what, moment in met.items()} == dict.fromkeys(LOOKS, PAGES)
    assert (outcomes(result["moves"]), result["left"]) == (dict.fromkeys(VMS, "migrated"), [])
    assert outcomes(result["evicted"]) == {pod: "evicted"}
    assert [line for line in heard.told if "gone" in line or "ended" in line or "the plan has changed" in line] == []
    assert (uids(yard), {yard.node_of(name) for name in VMS}) == (before, {TARGET})


def test_never_asks_without_a_pause_where_each_watch_ends_at_once(drain: Run, relay: Proxy, yard: Yard) -> None:
    """While a disruption budget holds a pod back."""
    uid = yard.start_vm("first", SOURCE)["metadata"]["uid"]
    pod = yard.deploy("web", SOURCE, budget=1, waiting=True)
    relay.curt = AT_ONCE
    timer, begun, before = threading.Timer(LASTS, yard.relax, ["web"]), time.monotonic(), relay.requests
    timer.start()
    try:
        result = drain()
    finally:
        timer.join()
    seconds, asked = time.monotonic() - begun, relay.requests - before
    relay.curt = None
    assert not result.get("failed"), result
    assert (outcomes(result["moves"]), outcomes(result["evicted"])[pod]) == ({"first": "migrated"}, "evicted")
    assert (yard.vmi("first")["metadata"]["uid"], yard.node_of("first")) == (uid, TARGET)
    # Three lists are watched, each of them again after half a second. Before that, rights are asked for and lists read.
    assert LASTS <= relay.done[ENDED] <= 10 * seconds, (relay.done, seconds)
    assert asked <= 200 + 25 * seconds, (asked, relay.done, seconds)
