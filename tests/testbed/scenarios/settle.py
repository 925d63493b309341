# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a scenario runs.

The objects are polled as tables, in which the API server sends a few words per object instead of all of it: watching
hundreds of VMs start must not slow down their start.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from testbed.api import Api, checked, resource_path
from testbed.home import TestbedError
from testbed.scenarios.deadline import Deadline
from testbed.scenarios.diagnosis import missing
from testbed.scenarios.model import Scenario, Settled

# Seconds between two looks, or so many times what the last look took if that is longer.
INTERVAL, PATIENCE = 1.0, 20
NOT_READY = "node.kubernetes.io/not-ready"


def wait_nodes_ready(api: Api, names: list[str], deadline: Deadline) -> None:
    """Return when pods can be scheduled to the nodes: Ready, and without the lifecycle controller's taint."""
    wanted = set(names)
    while wanted:
        waiting = {name for name in unready_nodes(api) if name in wanted}
        deadline.report(f"{len(wanted) - len(waiting)}/{len(wanted)} nodes Ready")
        if not waiting:
            return
        if deadline.passed:
            raise TestbedError(
                f"After {deadline.timeout:.0f} s these nodes are not Ready: {', '.join(sorted(waiting))}. "
                "`testbed status` says whether all parts run."
            )
        time.sleep(INTERVAL / 2)


def unready_nodes(api: Api) -> Iterator[str]:
    for node in api.items("/api/v1/nodes"):
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
        if not ready or any(taint["key"] == NOT_READY for taint in node["spec"].get("taints", ())):
            yield node["metadata"]["name"]


def wait_settled(api: Api, scenario: Scenario, deadline: Deadline) -> None:
    wanted = scenario.settled
    while True:
        began = time.monotonic()
        now = running(api, scenario.namespaces)
        deadline.report(f"{now.vmis}/{wanted.vmis} VMIs Running, {now.pods}/{wanted.pods} other pods Ready")
        if now.vmis >= wanted.vmis and now.pods >= wanted.pods:
            return
        if deadline.passed:
            headline = f"After {deadline.timeout:.0f} s scenario {scenario.name} does not run:"
            raise TestbedError("\n  ".join([headline, *missing(api, scenario.namespaces)]))
        # The larger the cluster, the more it costs to look, and the longer it takes anyway.
        time.sleep(max(INTERVAL, PATIENCE * (time.monotonic() - began)))


def running(api: Api, namespaces: list[str]) -> Settled:
    """How many pods and VMIs run now in these namespaces."""
    pods = vmis = 0
    for namespace in namespaces:
        # Launcher pods are counted by their VMIs.
        rows = table(api, resource_path("v1", "pods", namespace), labelSelector="kubevirt.io!=virt-launcher")
        pods += sum(row["Status"] == "Running" and ready(row["Ready"]) for row in rows)
        rows = table(api, resource_path("kubevirt.io/v1", "virtualmachineinstances", namespace))
        vmis += sum(row["Phase"] == "Running" and row["Ready"] == "True" for row in rows)
    return Settled(pods, vmis)


def ready(containers: str) -> bool:
    """Whether all containers are ready, by the column that says `1/2`."""
    some, every = containers.split("/")
    return some == every


def table(api: Api, path: str, **params: str) -> list[dict[str, Any]]:
    """A collection's rows by column name, as `kubectl get` shows them."""
    answer = checked(
        api.http.get(
            path,
            # Any state that the API server has in memory will do, and costs etcd nothing.
            params={"includeObject": "None", "resourceVersion": "0", **params},
            headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"},
        )
    )
    columns = [column["name"] for column in answer["columnDefinitions"]]
    return [dict(zip(columns, row["cells"], strict=True)) for row in answer.get("rows") or ()]
