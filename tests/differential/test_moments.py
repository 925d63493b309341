# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a plan's pods come at their moments, with others in flight, kube-scheduler would let them come."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod

from checker.cluster import CarriedCluster
from checker.order import ByLot
from checker.replay import Replay
from differential import upstream
from unit.checker.clusters import planned

Json = dict[str, Any]
CLUSTERS = 12


def test_the_scheduler_agrees_with_every_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[Json] = []
    nodes: list[str] = []
    put = CarriedCluster.put

    def noticed(cluster: CarriedCluster, raw: Object, pod: Pod, node: str) -> None:
        lists = cluster.lists()
        cases.append(_valid({"lists": {"nodes": lists["nodes"], "pods": lists["pods"]}, "asked": [raw]}))
        nodes.append(node)
        put(cluster, raw, pod, node)

    monkeypatch.setattr(CarriedCluster, "put", noticed)
    for seed in range(CLUSTERS):
        Replay(*planned(seed), ByLot(random.Random(seed).randrange)).run()  # noqa: S311 - repeatable by design
    answers = [answer for (answer,) in upstream.judge(upstream.store(cases))]
    assert [answer["unfit"] for node, answer in zip(nodes, answers, strict=True) if node not in answer["fit"]] == []
    assert len(cases) > 80


def _valid(case: Json) -> Json:
    """As an API server would take it: with other names than those that no object can have, and with images."""
    text = json.dumps(case)
    for part in ("target", "restart", "replacement"):
        text = text.replace(f"/{part}", f"-{part}")
    found: Json = json.loads(text)
    for pod in (*found["lists"]["pods"], *found["asked"]):
        for container in _containers(pod):
            container.setdefault("image", "image")
    return found


def _containers(pod: Json) -> Iterator[Json]:
    for name in ("initContainers", "containers"):
        yield from pod["spec"].get(name) or ()
