# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a generated cluster: how many of each pool, where they stand, and how large they have to be."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from testbed.api import Object
from testbed.nodes import ICELAKE, ROME, SKYLAKE, fake_node
from testbed.scenarios.generator.profiles import LARGEST, ZONE, Pool
from testbed.scenarios.generator.spec import GeneratorSpec

GPU_DEVICE = "nvidia.com/GA102GL_A10"
HIGH_LABEL = {"performance": "high"}
TAINTS = {
    Pool.DEDICATED: {"key": "dedicated", "value": "billing", "effect": "NoSchedule"},
    Pool.GPU: {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
}
# From this number of nodes on there are tainted pools and hosts with different CPUs.
LARGE = 12
# Room for two of the largest VMs and what runs on every node.
SMALLEST_NODE_GIB = 2 * LARGEST + 8
MEMORY_STEP_GIB = 4
GIB_PER_CORE = 4


@dataclass(frozen=True)
class Place:
    """One node before its size is known; `weight` is its size relative to others of its pool."""

    name: str
    pool: Pool
    zone: str
    weight: int


@dataclass(frozen=True)
class Demand:
    """What the pods of a cluster request together: bytes of memory by pool, GPUs, pods."""

    memory: Mapping[Pool, int]
    gpus: int
    pods: int


def lay_out(spec: GeneratorSpec) -> list[Place]:
    """Every zone gets the same share of every pool, one node more or less."""
    gpu, dedicated = (max(1, spec.nodes // 20), max(2, spec.nodes // 10)) if spec.nodes >= LARGE else (0, 0)
    general = spec.nodes - gpu - dedicated
    pools = [Pool.HIGH if i // spec.zones % 3 == 1 else Pool.GENERAL for i in range(general)]
    pools += [Pool.DEDICATED] * dedicated + [Pool.GPU] * gpu
    weights = {Pool.HIGH: (4,), Pool.GENERAL: (2, 2, 3), Pool.DEDICATED: (2,), Pool.GPU: (2,)}
    places = []
    for i, pool in enumerate(pools):
        row, zone = divmod(i, spec.zones)
        weight = weights[pool][row % len(weights[pool])]
        places.append(Place(f"worker-{i + 1:0{len(str(spec.nodes))}}", pool, f"zone-{zone + 1}", weight))
    return places


def build_nodes(spec: GeneratorSpec, places: list[Place], demand: Demand, rng: random.Random) -> list[Object]:
    """Nodes just large enough that `spec.fill` of each pool's memory is requested; small pools get a minimum size."""
    # High-performance nodes also take pods of all kinds: they share the general pool's demand.
    shared = {place.name: Pool.GENERAL if place.pool is Pool.HIGH else place.pool for place in places}
    weights: Counter[Pool] = Counter()
    for place in places:
        weights[shared[place.name]] += place.weight
    gpu_nodes = sum(place.pool is Pool.GPU for place in places)
    # Twice the average, so that one node can stand in for another.
    pods = max(110, 2 * math.ceil(demand.pods / spec.nodes))
    nodes = []
    for place in places:
        pool = shared[place.name]
        needed = demand.memory.get(pool, 0) / 2**30 * place.weight / weights[pool] / spec.fill
        memory = MEMORY_STEP_GIB * math.ceil(max(needed, SMALLEST_NODE_GIB) / MEMORY_STEP_GIB)
        nodes.append(
            fake_node(
                place.name,
                cpu=memory // GIB_PER_CORE,
                memory=f"{memory}Gi",
                pods=pods,
                labels=labels(place, rng),
                taints=[TAINTS[place.pool]] if place.pool in TAINTS else [],
                cpu_model=cpu_model(spec, rng),
                devices={GPU_DEVICE: math.ceil(demand.gpus / gpu_nodes / spec.fill)} if place.pool is Pool.GPU else {},
            )
        )
    return nodes


def labels(place: Place, rng: random.Random) -> dict[str, str]:
    chosen = {"topology.kubernetes.io/region": "region-1", ZONE: place.zone, "pool": place.pool.value}
    if place.pool is Pool.HIGH:
        chosen |= HIGH_LABEL
    # A label that only some nodes have, as in clusters that grew over years.
    if rng.random() < 0.4:
        chosen["storage"] = rng.choice(["nvme", "ssd"])
    return chosen


def cpu_model(spec: GeneratorSpec, rng: random.Random) -> str:
    return rng.choices([SKYLAKE, ICELAKE, ROME], (6, 3, 1))[0].model if spec.nodes >= LARGE else SKYLAKE.model
