# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a scenario's objects into a cluster, in the right order and several at a time."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from testbed.api import Api, ApiError, Object
from testbed.home import TestbedError
from testbed.scenarios.deadline import Deadline
from testbed.scenarios.model import Scenario
from testbed.scenarios.settle import wait_nodes_ready, wait_settled

# The API server and the webhooks share two cores with everything else: more requests at once only queue up there.
PARALLEL = 8


def load(api: Api, scenario: Scenario, timeout: float) -> None:
    """Make the cluster hold the scenario and return once it has settled; repeating it changes nothing.

    Objects that the cluster holds beside the scenario's stay. `timeout` in seconds for all of it; a TestbedError then
    says what is missing.
    """
    deadline = Deadline(timeout)
    *prerequisites, workloads = scenario.stages()
    for stage in prerequisites:
        apply_all(api, stage)
    # Pods that are created before there are nodes for them only wait longer, in the scheduler's back-off.
    wait_nodes_ready(api, scenario.nodes, deadline)
    apply_all(api, workloads)
    deadline.report(f"{len(scenario.objects)} objects applied")
    wait_settled(api, scenario, deadline)


def apply_all(api: Api, objects: Iterable[Object]) -> None:
    def apply_one(obj: Object) -> None:
        apply(api, obj)

    with ThreadPoolExecutor(PARALLEL) as pool:
        # Draining the iterator raises the first error; the pool lets what is under way end.
        for _done in pool.map(apply_one, objects):
            pass


def apply(api: Api, obj: Object) -> None:
    """Server-side apply; a node that exists with another size is also resized."""
    try:
        stored = api.apply(obj)
        if obj["kind"] == "Node":
            resize(api, obj, stored)
    except ApiError as error:
        metadata = obj["metadata"]
        where = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
        raise TestbedError(f"Could not apply {obj['kind']} {where}: {error.message or error}") from error


def resize(api: Api, node: Object, stored: Object) -> None:
    """Nodes keep their status when applied anew, so a changed size has to go through the status subresource."""
    sizes = {key: node["status"][key] for key in ("capacity", "allocatable")}
    if any(stored["status"].get(key) != value for key, value in sizes.items()):
        api.patch(f"/api/v1/nodes/{node['metadata']['name']}/status", {"status": sizes})
