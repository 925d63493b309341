# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `testbed status` prints."""

from __future__ import annotations

import time

import httpx
import psutil

from testbed import cluster, processes
from testbed.api import Api, ApiError
from testbed.home import Home

MIB = 2**20


def show(home: Home) -> int:
    """Print parts and cluster; 0 when all is well, 1 when a part is missing."""
    settings = home.settings()
    if settings is None:
        print(f"There is no testbed {home.name}.")
        return 1
    live = processes.running(home)
    print(f"testbed {home.name}  {'' if settings.ready else '(not ready) '}in {home.root}")
    for name in cluster.NAMES:
        print(f"  {name:<26}{describe(live.get(name))}")
    dead = cluster.died(home)
    if dead:
        print(cluster.obituary(home, dead) if settings.ready else f"Its logs: {home.logs}")
        return 1
    print(f"  {'kubeconfig':<26}{home.kubeconfig()}")
    print(f"  {'cluster':<26}{contents(home)}")
    return 0


def describe(process: psutil.Process | None) -> str:
    if process is None:
        return "not running"
    with process.oneshot():
        cpu = process.cpu_times()
        age = time.time() - process.create_time()
        memory = process.memory_info().rss
    return f"pid {process.pid:<8} up {age:5.0f} s  cpu {cpu.user + cpu.system:6.1f} s  memory {memory / MIB:5.0f} MiB"


def contents(home: Home) -> str:
    try:
        with Api(home.kubeconfig()) as api:
            nodes = api.items("/api/v1/nodes")
            pods = api.items("/api/v1/pods")
            vmis = api.items("/apis/kubevirt.io/v1/virtualmachineinstances")
    except (httpx.TransportError, ApiError) as error:
        return f"does not answer: {error}"
    ready = sum(
        any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
        for node in nodes
    )
    running = sum(vmi.get("status", {}).get("phase") == "Running" for vmi in vmis)
    return f"{ready}/{len(nodes)} nodes ready, {len(pods)} pods, {running}/{len(vmis)} VMIs running"
