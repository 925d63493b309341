# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import resources

MI = 2**20


def container(name: str = "c", restart: str | None = None, **requests: str) -> dict[str, Any]:
    kept = {"restartPolicy": restart} if restart else {}
    return {
        "name": name,
        **kept,
        "resources": {"requests": {key.replace("_", "-"): value for key, value in requests.items()}},
    }


def pod(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    return {"spec": {"containers": list(containers), "initContainers": init or [], **spec}, "status": status}


def requests(raw: dict[str, Any], **options: Any) -> dict[str, int]:
    return resources.amounts(resources.pod_requests(raw, **{"as_running": False, **options}))


SIDECAR = "Always"
CASES = [
    ("containers add up", pod(container(cpu="1"), container(cpu="500m")), {"cpu": 1500}),
    ("nothing is asked", pod({"name": "c"}), {}),
    (
        "an init container is a peak",
        pod(container(cpu="1"), init=[container(cpu="3"), container(cpu="2")]),
        {"cpu": 3000},
    ),
    ("a smaller init container vanishes", pod(container(cpu="1"), init=[container(cpu="500m")]), {"cpu": 1000}),
    (
        "peaks are taken by resource",
        pod(container(cpu="1", memory="2Mi"), init=[container(cpu="2")]),
        {"cpu": 2000, "memory": 2 * MI},
    ),
    ("sidecars stay", pod(container(cpu="1"), init=[container(restart=SIDECAR, cpu="1")]), {"cpu": 2000}),
    (
        "an init container starts beside the sidecars before it",
        pod(container(cpu="1"), init=[container(restart=SIDECAR, cpu="1"), container(cpu="3")]),
        {"cpu": 4000},
    ),
    (
        "a sidecar after it does not count for an init container",
        pod(container(cpu="1"), init=[container(cpu="3"), container(restart=SIDECAR, cpu="1")]),
        {"cpu": 3000},
    ),
    (
        "overhead comes on top",
        pod(container(cpu="1"), overhead={"cpu": "250m", "memory": "1Mi"}),
        {"cpu": 1250, "memory": MI},
    ),
    (
        "values of the pod replace those of its containers",
        pod(container(cpu="1", memory="3Mi"), resources={"requests": {"cpu": "4"}}, overhead={"cpu": "1"}),
        {"cpu": 5000, "memory": 3 * MI},
    ),
    (
        "and of no resource but cpu, memory and huge pages",
        pod(
            container(ephemeral_storage="1"), resources={"requests": {"ephemeral-storage": "4", "hugepages-2Mi": "4Mi"}}
        ),
        {"ephemeral-storage": 1, "hugepages-2Mi": 4 * MI},
    ),
    ("fractions round up after summing", pod(container(memory="0.4"), container(memory="0.4")), {"memory": 1}),
]


@pytest.mark.parametrize(("reason", "raw", "expected"), CASES, ids=[case[0] for case in CASES])
def test_effective_request(reason: str, raw: dict[str, Any], expected: dict[str, int]) -> None:
    assert requests(raw) == expected


def test_pod_level_values_can_be_left_out() -> None:
    raw = pod(container(cpu="1"), resources={"requests": {"cpu": "4"}})
    assert requests(raw, pod_level=False) == {"cpu": 1000}


def resizing(reason: str = "", allocated: str = "2", actuated: str = "3") -> dict[str, Any]:
    status = {"name": "c", "resources": {"requests": {"cpu": actuated}}, "allocatedResources": {"cpu": allocated}}
    pending = [{"type": "PodResizePending", "reason": reason}] if reason else []
    return {"containerStatuses": [status], "conditions": pending}


RESIZES = [
    ("what is wanted is most", "4", resizing(), 4000),
    ("what is in use is most", "1", resizing(), 3000),
    ("what is granted is most", "1", resizing(allocated="5"), 5000),
    ("a deferred resize counts", "4", resizing("Deferred"), 4000),
    ("a refused resize does not", "4", resizing("Infeasible"), 3000),
]


@pytest.mark.parametrize(("reason", "wanted", "status", "millis"), RESIZES, ids=[case[0] for case in RESIZES])
def test_a_running_pod_in_a_resize_counts_with_the_most(
    reason: str, wanted: str, status: dict[str, Any], millis: int
) -> None:
    raw = pod(container(cpu=wanted), status=status)
    assert requests(raw, as_running=True) == {"cpu": millis}
    assert requests(raw) == {"cpu": int(wanted) * 1000}


def test_a_resize_of_the_whole_pod() -> None:
    status = {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "5"}}
    raw = pod(container(cpu="1"), resources={"requests": {"cpu": "4"}}, status=status)
    assert requests(raw, as_running=True) == {"cpu": 6000}


def test_assumptions_fill_what_each_container_does_not_name() -> None:
    raw = pod(container(cpu="0"), {"name": "d"})
    assert requests(raw, assumed=resources.ASSUMED) == {"cpu": 100, "memory": 400 * MI}


def test_values_of_the_pod_end_assumptions_for_their_resource() -> None:
    raw = pod(container(), resources={"requests": {"cpu": "1"}})
    found = resources.pod_requests(raw, as_running=True)
    assert set(resources.assumed_for_scores(raw, found)) == {"memory"}
    assert set(resources.assumed_for_scores(pod(container(cpu="1")), {})) == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True),
        ("hugepages-1Gi", True),
        ("devices.kubevirt.io/kvm", True),
        ("example.org/gpu", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/batch", True),
        ("gpu", False),
        ("requests.example.org/gpu", False),
        ("Not_a_domain/gpu", False),
    ],
)
def test_resources_that_are_accounted_for(name: str, counted: bool) -> None:
    assert resources.is_counted(name) is counted
