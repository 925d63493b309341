# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ordinary pods beside the VMs: Deployments, most of them with a PodDisruptionBudget."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from testbed.api import Object
from testbed.scenarios.generator.profiles import HOST, ZONE

NAMESPACE = "services"
PODS_PER_NODE = 2


@dataclass(frozen=True)
class Service:
    """A Deployment; `memory` in MiB and `cpu` in thousandths of a core are one pod's requests."""

    name: str
    replicas: int
    cpu: int
    memory: int
    rule: str
    budget: str


def choose_services(nodes: int, rng: random.Random) -> list[Service]:
    """About `PODS_PER_NODE` pods for each of the `nodes` that ordinary pods can run on."""
    services: list[Service] = []
    left = PODS_PER_NODE * nodes
    while left > 0:
        number = len(services)
        # At most one per node, for the rule that keeps them apart.
        replicas = min(left, nodes, rng.randint(1, 6))
        services.append(
            Service(
                name=f"service-{number + 1}",
                replicas=replicas,
                cpu=rng.choice([50, 100, 200]),
                memory=rng.choice([128, 256, 512]),
                rule=("", "one per host", "even zones")[number % 3],
                # A budget for a single pod would block every drain for ever.
                budget=("maxUnavailable", "minAvailable", "")[number % 4 % 3] if replicas > 1 else "",
            )
        )
        left -= replicas
    return services


def build_service(service: Service) -> list[Object]:
    match = {"matchLabels": {"app": service.name}}
    metadata = {"name": service.name, "namespace": NAMESPACE}
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": f"registry.example/{service.name}:1",
                "resources": {"requests": {"cpu": f"{service.cpu}m", "memory": f"{service.memory}Mi"}},
            }
        ],
        **rules(service, match),
    }
    objects: list[Object] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": service.replicas,
                "selector": match,
                "template": {"metadata": {"labels": {"app": service.name}}, "spec": pod},
            },
        }
    ]
    if service.budget:
        amount = 1 if service.budget == "maxUnavailable" else service.replicas - 1
        objects.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": metadata,
                "spec": {"selector": match, service.budget: amount},
            }
        )
    return objects


def rules(service: Service, match: Object) -> Object:
    if service.rule == "one per host":
        term = {"topologyKey": HOST, "labelSelector": match}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if service.rule == "even zones":
        soft = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": match}
        return {"topologySpreadConstraints": [soft]}
    return {}
