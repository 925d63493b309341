# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit ranges as the API server applies them to new pods."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.limit_range import violations

Object = dict[str, Any]


def container(name: str = "c", requests: Object | None = None, limits: Object | None = None, **more: Any) -> Object:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def pod(*containers: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "new"}, "spec": {"containers": list(containers), **spec}}


def limit_range(*limits: Object) -> Object:
    return {"metadata": {"name": "r"}, "spec": {"limits": list(limits)}}


def bound(kind: str = "Container", **fields: Any) -> Object:
    return {"type": kind, **fields}


SMALL = container("a", {"cpu": "500m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"})
BARE = container("b")
STARTING = container("i", {"memory": "4Gi"}, {"memory": "4Gi"})
CASES: list[tuple[Object, Object, str]] = [
    # pod, limit, reason
    (pod(SMALL), bound(min={"cpu": "500m"}, max={"cpu": "1"}, maxLimitRequestRatio={"cpu": "2"}), ""),
    (pod(SMALL), bound(min={"cpu": "501m"}), "cpu of container a: a request of 500m, at least 501m"),
    (pod(SMALL), bound(min={"cpu": "2", "memory": "1Gi"}), "cpu of container a: a request of 500m, at least 2"),
    (
        pod(container("l", {"cpu": "2"}, {"cpu": "1"})),
        bound(min={"cpu": "2"}),
        "cpu of container l: a limit of 1, at least 2",
    ),
    (pod(BARE), bound(min={"cpu": "1m"}), "cpu of container b: no request, at least 1m"),
    (pod(SMALL), bound(max={"memory": "2047Mi"}), "memory of container a: a limit of 2Gi, at most 2047Mi"),
    (
        pod(container("r", {"cpu": "3"}, {"cpu": "1"})),
        bound(max={"cpu": "2"}),
        "cpu of container r: a request of 3, at most 2",
    ),
    (pod(BARE), bound(max={"memory": "1Gi"}), "memory of container b: no limit, at most 1Gi"),
    (
        pod(SMALL),
        bound(maxLimitRequestRatio={"memory": "1.5"}),
        "memory of container a: a limit of 2 times the request, at most 1.5 times",
    ),
    (
        pod(BARE),
        bound(maxLimitRequestRatio={"cpu": "2"}),
        "cpu of container b: no request, a limit of at most 2 times the request",
    ),
    (
        pod(container("r", {"cpu": "1"})),
        bound(maxLimitRequestRatio={"cpu": "2"}),
        "cpu of container r: no limit, a limit of at most 2 times the request",
    ),
    (
        pod(SMALL, initContainers=[BARE]),
        bound(min={"cpu": "1m"}),
        "cpu of container b: no request, at least 1m",
    ),
    # Of the pod as a whole: sums, or the start if that needs more, and no overhead.
    (pod(SMALL, BARE, overhead={"cpu": "9"}), bound("Pod", min={"cpu": "500m"}, max={"cpu": "1"}), ""),
    (pod(SMALL, SMALL), bound("Pod", max={"cpu": "1"}), "cpu of the pod: a limit of 2, at most 1"),
    (
        pod(SMALL, initContainers=[STARTING]),
        bound("Pod", max={"memory": "3Gi"}),
        "memory of the pod: a request of 4Gi, at most 3Gi",
    ),
    (
        pod(SMALL, SMALL),
        bound("Pod", maxLimitRequestRatio={"cpu": "1"}),
        "cpu of the pod: a limit of 2 times the request, at most 1 times",
    ),
    # A default that makes the pod invalid.
    (
        pod(container("d", {"memory": "1Gi"}, {"memory": "70M"})),
        bound(default={"memory": "70M"}),
        "memory of container d: a request of 1Gi, and a limit of 70M by default",
    ),
    (pod(SMALL), bound(default={"memory": "70M"}), ""),
    (pod(SMALL), bound("PersistentVolumeClaim", min={"cpu": "9"}), ""),
    (pod(SMALL), bound(defaultRequest={"cpu": "9"}), ""),
]


@pytest.mark.parametrize(("new", "limit", "reason"), CASES)
def test_what_is_refused(new: Object, limit: Object, reason: str) -> None:
    assert [violation.reason for violation in violations(new, [limit_range(limit)])] == ([reason] if reason else [])


def test_each_limit_range_is_told_once_with_all_its_reasons() -> None:
    both = limit_range(bound(min={"cpu": "2"}), bound("Pod", max={"memory": "1Gi"}))
    (found,) = violations(pod(SMALL), [limit_range(), both])
    assert found.limit_range == "r"
    assert found.reason == (
        "cpu of container a: a request of 500m, at least 2; memory of the pod: a limit of 2Gi, at most 1Gi"
    )
