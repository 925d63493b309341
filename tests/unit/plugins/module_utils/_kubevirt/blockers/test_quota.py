# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas as the API server counts them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.quota import excesses, usage
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.quantity import NANO

Object = dict[str, Any]


def container(name: str = "c", requests: Object | None = None, limits: Object | None = None, **more: Any) -> Object:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def pod(*containers: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "new"}, "spec": {"containers": list(containers), **spec}}


def quota(hard: Object, used: Object | None = None, **spec: Any) -> Object:
    counted = dict.fromkeys(hard, "0") if used is None else used
    return {"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": counted}}


GIB = NANO * 2**30
SMALL = container(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "1", "memory": "2Gi"})
SIDECAR = container("s", {"memory": "1Gi"}, {"memory": "1Gi"}, restartPolicy="Always")
BIG_START = container("i", {"memory": "4Gi"}, {"memory": "4Gi"})
GPU, KVM = "nvidia.com/gpu", "devices.kubevirt.io/kvm"


def test_what_is_charged() -> None:
    charged = usage(pod(SMALL, initContainers=[SIDECAR], overhead={"cpu": "250m", "pods": "9"}))
    assert charged == {
        "count/pods": NANO,
        "pods": NANO,
        "cpu": NANO * 3 // 4,
        "requests.cpu": NANO * 3 // 4,
        "limits.cpu": NANO * 5 // 4,
        "memory": 2 * GIB,
        "requests.memory": 2 * GIB,
        "limits.memory": 3 * GIB,
    }


def test_the_start_counts_if_it_needs_more() -> None:
    charged = usage(pod(SMALL, initContainers=[SIDECAR, BIG_START]))
    assert charged["requests.memory"] == charged["limits.memory"] == 5 * GIB


def test_devices_and_huge_pages_are_charged_by_request() -> None:
    asked = {KVM: "1", GPU: "2", "hugepages-2Mi": "1Gi", "attachable-volumes-csi": "1"}
    charged = usage(pod(container(requests=asked)))
    assert charged[f"requests.{KVM}"] == NANO
    assert charged[f"requests.{GPU}"] == 2 * NANO
    assert charged["hugepages-2Mi"] == charged["requests.hugepages-2Mi"] == GIB
    assert not {GPU, KVM, "requests.attachable-volumes-csi"} & set(charged)


@pytest.mark.parametrize(
    ("hard", "used", "reason"),
    [
        ({"requests.memory": "2Gi"}, {"requests.memory": "1Gi"}, ""),
        (
            {"requests.memory": "2Gi"},
            {"requests.memory": "1025Mi"},
            "requests.memory: 1024Mi on top of 1025Mi of 2Gi",
        ),
        ({"cpu": "1"}, {"cpu": "501m"}, "cpu: 500m on top of 501m of 1"),
        ({"limits.cpu": "2"}, {"limits.cpu": "1500m"}, "limits.cpu: 1000m on top of 1500m of 2"),
        ({"pods": "3"}, {"pods": "3"}, "pods: 1 on top of 3 of 3"),
        ({"count/pods": "3"}, {"count/pods": "3"}, "count/pods: 1 on top of 3 of 3"),
        ({"pods": "3", "cpu": "0"}, {"pods": "3", "cpu": "0"}, "cpu: 500m on top of 0 of 0, pods: 1 on top of 3 of 3"),
        ({"requests.storage": "0", "count/secrets": "0"}, {}, ""),
        ({"pods": "3"}, {}, "the API server has not yet counted what is used of it"),
        ({"requests.ephemeral-storage": "1Gi"}, {"requests.ephemeral-storage": "2Gi"}, ""),
    ],
)
def test_what_is_left(hard: Object, used: Object, reason: str) -> None:
    assert [excess.reason for excess in excesses(pod(SMALL), [quota(hard, used)])] == ([reason] if reason else [])


def test_pods_that_have_gone_and_come_by_then() -> None:
    full = quota({"cpu": "1", "pods": "2"}, {"cpu": "1", "pods": "2"})
    assert excesses(pod(SMALL), [full], gone=[pod(SMALL)]) == []
    (excess,) = excesses(pod(SMALL), [full], gone=[pod(SMALL)], come=[pod(SMALL)])
    assert excess.reason == "cpu: 500m on top of 1 of 1, pods: 1 on top of 2 of 2"
    (excess,) = excesses(pod(SMALL, SMALL), [full], gone=[pod(SMALL)])
    assert excess.reason == "cpu: 1000m on top of 500m of 1"
    # Only what the quota counts.
    scoped = quota({"pods": "1"}, {"pods": "1"}, scopes=["BestEffort"])
    assert excesses(pod(container()), [scoped], gone=[pod(SMALL)]) != []


def test_a_device_over_its_quota() -> None:
    (excess,) = excesses(pod(container(requests={GPU: "2"})), [quota({f"requests.{GPU}": "1"})])
    assert (excess.quota, excess.reason) == ("q", f"requests.{GPU}: 2 on top of 0 of 1")


def test_what_a_quota_wants_named() -> None:
    unnamed = pod(SMALL, container("bare"), initContainers=[container("start", {"cpu": "1"})])
    (excess,) = excesses(
        unnamed, [quota({"limits.cpu": "9", "requests.memory": "9Gi", "limits.ephemeral-storage": "1"})]
    )
    assert excess.reason == (
        "it wants limits.cpu of container bare, limits.cpu of container start, "
        "requests.memory of container bare, requests.memory of container start"
    )
    assert (
        excesses({**unnamed, "spec": {**unnamed["spec"], "resources": {"limits": {"cpu": "1"}}}}, [quota({"cpu": "9"})])
        == []
    )


def priority(operator: str, *values: str) -> Object:
    entry: Object = {"scopeName": "PriorityClass", "operator": operator}
    return {"scopeSelector": {"matchExpressions": [{**entry, "values": list(values)} if values else entry]}}


ACROSS: Object = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaceSelector": {}}]}}
AT_HOME: Object = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}]}}


@pytest.mark.parametrize(
    ("spec", "scope", "counts"),
    [
        ({}, {"scopes": ["Terminating"]}, False),
        ({}, {"scopes": ["NotTerminating"]}, True),
        ({"activeDeadlineSeconds": 9}, {"scopes": ["Terminating"]}, True),
        ({}, {"scopes": ["NotBestEffort"]}, True),
        ({}, {"scopes": ["BestEffort"]}, False),
        ({"containers": [container(requests={GPU: "1"})]}, {"scopes": ["BestEffort"]}, True),
        ({"priorityClassName": "high"}, {"scopes": ["PriorityClass"]}, True),
        ({}, {"scopes": ["PriorityClass"]}, False),
        ({"priorityClassName": "high"}, priority("In", "high", "higher"), True),
        ({"priorityClassName": "low"}, priority("In", "high"), False),
        ({}, priority("NotIn", "high"), True),
        ({}, priority("DoesNotExist"), True),
        ({"priorityClassName": "high"}, priority("DoesNotExist"), False),
        ({"affinity": ACROSS}, {"scopes": ["CrossNamespacePodAffinity"]}, True),
        ({"affinity": AT_HOME}, {"scopes": ["CrossNamespacePodAffinity"]}, False),
        ({"priorityClassName": "high"}, {"scopes": ["NotTerminating", "BestEffort"]}, False),
        ({}, {"scopes": ["VolumeAttributesClass"]}, False),
    ],
)
def test_scopes(spec: Object, scope: Object, counts: bool) -> None:
    asked = pod(SMALL)
    asked["spec"].update(spec)
    assert bool(excesses(asked, [quota({"pods": "0"}, **scope)])) is counts
