# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit ranges and quotas that refuse the pods with which VMs would start, against the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.next_pod import pod_of_start

from integration.clusters import VMIS
from integration.launcher import cluster
from integration.launcher.instance_types import OWN_SIZE, vm
from integration.launcher.lists import read
from testbed.api import Api, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

TIMEOUT = 60.0
# A limit range, a quota, and whether the one or the other refuses the pod: 400m of CPU, some 1.4 GiB of memory.
CASES: list[tuple[Object, Object, str]] = [
    ({"type": "Pod", "max": {"memory": "2Gi"}}, {}, ""),
    ({"type": "Container", "min": {"cpu": "1m"}, "max": {"cpu": "4"}}, {}, ""),
    ({"type": "Pod", "max": {"memory": "1Gi"}}, {}, "LimitRange tight"),
    ({"type": "Container", "min": {"cpu": "50m"}}, {}, "LimitRange tight"),
    ({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, {}, "LimitRange tight"),
    ({}, {"requests.memory": "2Gi", "pods": "1"}, ""),
    ({}, {"requests.memory": "1Gi"}, "ResourceQuota small"),
    ({}, {"limits.cpu": "3"}, "ResourceQuota small"),
    ({}, {"limits.cpu": "5", "requests.cpu": "450m"}, ""),
]


@pytest.fixture(scope="module")
def api(testbed: RunningTestbed) -> Iterator[Api]:
    with cluster.cluster(testbed.api):
        yield testbed.api


@pytest.mark.parametrize(("limit", "hard", "refuses"), CASES)
def test_starts_are_refused_as_foretold(
    testbed: RunningTestbed, api: Api, limit: Object, hard: Object, refuses: str
) -> None:
    where = testbed.namespace()
    made = [("LimitRange", "tight", {"limits": [limit]})] if limit else [("ResourceQuota", "small", {"hard": hard})]
    for kind, name, spec in made:
        metadata = {"name": name, "namespace": where}
        api.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
    if hard:
        counted = resource_path("v1", "resourcequotas", where, "small")
        wait_for("the quota to be counted", lambda: "used" in api.get(counted).get("status", {}), TIMEOUT)
    machine = vm("db", where, OWN_SIZE)
    foretold = pod_of_start(machine, surroundings(read(api))).refusals
    try:
        api.create(object_path(machine).rsplit("/", 1)[0], machine)
        wait_for("KubeVirt to try", lambda: outcome(api, where) is not None, TIMEOUT)
        refused = outcome(api, where)
    finally:
        api.delete(object_path(machine))
        testbed.drop_namespace(where)
    assert [text.startswith(refuses) for text in foretold] == ([True] if refuses else []), foretold
    assert bool(refused) is bool(refuses), refused


def outcome(api: Api, where: str) -> str | None:
    """Why KubeVirt makes no pod, empty if it has made one; None as long as it has not tried."""
    if api.items(resource_path("v1", "pods", where)):
        return ""
    found: list[Any] = [
        entry
        for vmi in api.items(resource_path("kubevirt.io/v1", VMIS, where))
        for entry in vmi.get("status", {}).get("conditions") or ()
        if entry["type"] == "Synchronized" and entry["status"] == "False"
    ]
    return found[0]["message"] if found else None
