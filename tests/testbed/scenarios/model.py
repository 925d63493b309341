# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario is: objects for a cluster, and how many workloads must run before it counts as loaded."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.api import Object

# Objects that others refer to come first. A kind that is not named here is a workload, which comes last.
STAGES = (
    ("Namespace", "PriorityClass", "StorageClass", "CSIDriver", "MigrationPolicy", "Node"),
    ("PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "ServiceAccount", "Service", "ConfigMap"),
)


@dataclass(frozen=True)
class Settled:
    """What runs in a loaded scenario: Ready pods that run no VM, and Running and Ready VMIs."""

    pods: int
    vmis: int


@dataclass(frozen=True)
class Scenario:
    name: str
    objects: tuple[Object, ...]
    settled: Settled

    @property
    def nodes(self) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.objects if obj["kind"] == "Node"]

    @property
    def namespaces(self) -> list[str]:
        """Namespaces that hold objects of the scenario, sorted."""
        return sorted({obj["metadata"]["namespace"] for obj in self.objects if "namespace" in obj["metadata"]})

    def stages(self) -> list[list[Object]]:
        """The objects in the order in which they have to exist; those of one stage do not need each other."""
        staged: list[list[Object]] = [[] for _stage in range(len(STAGES) + 1)]
        for obj in self.objects:
            staged[next((i for i, kinds in enumerate(STAGES) if obj["kind"] in kinds), len(STAGES))].append(obj)
        return staged
