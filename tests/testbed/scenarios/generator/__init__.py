# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of any size from a seed.

`generate` is a pure function: profiles.py says what kinds of VM groups there are, machines.py (with placement.py and
storage.py) and background.py write them as objects, and topology.py makes the nodes as large as these need.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from testbed.api import Object
from testbed.scenarios.generator import background
from testbed.scenarios.generator.machines import MIB, Group, build_group, choose_group
from testbed.scenarios.generator.profiles import HOST, PLAIN, PROFILES, ZONE, Pool, Profile
from testbed.scenarios.generator.spec import GeneratorSpec
from testbed.scenarios.generator.storage import storage_classes
from testbed.scenarios.generator.topology import Demand, Place, build_nodes, lay_out
from testbed.scenarios.model import Scenario, Settled

__all__ = ["GeneratorSpec", "generate"]

TENANTS = [f"tenant-{number}" for number in range(1, 4)]


def generate(spec: GeneratorSpec) -> Scenario:
    """Raises TestbedError when there can be no such cluster."""
    spec.check()
    rng = random.Random(spec.seed)  # noqa: S311 - repeatable by design, no secret
    places = lay_out(spec)
    groups = list(choose_groups(spec, places, rng))
    services = background.choose_services(count(places, Pool.GENERAL) + count(places, Pool.HIGH), rng)
    nodes = build_nodes(spec, places, demand(groups, services), rng)
    workloads = [build_group(group) for group in groups] + [background.build_service(service) for service in services]
    return Scenario(
        "generated",
        (*nodes, *cluster_objects(), *(obj for objects in workloads for obj in objects)),
        Settled(pods=sum(service.replicas for service in services), vmis=spec.vmis),
    )


def choose_groups(spec: GeneratorSpec, places: list[Place], rng: random.Random) -> Iterator[Group]:
    left = spec.vmis
    for profile in PROFILES:
        most = most_together(profile, spec, places)
        if most:
            share = spec.vmis * profile.percent // 100
            left -= share
            yield from split(profile, share, most, rng)
    # The rest, half of it as VMs and half in replica sets.
    for profile, share in zip(PLAIN, (left // 2, left - left // 2), strict=True):
        yield from split(profile, share, left, rng)


def split(profile: Profile, vms: int, most: int, rng: random.Random) -> Iterator[Group]:
    """Groups of the profile with `vms` members in all and at most `most` in one."""
    fewest, usual = profile.sizes
    number = 0
    while vms > 0:
        number += 1
        size = min(vms, most, rng.randint(fewest, usual))
        yield choose_group(profile, f"{profile.name}-{number}", size, TENANTS, rng)
        vms -= size


def most_together(profile: Profile, spec: GeneratorSpec, places: list[Place]) -> int:
    """How many VMs a group can have under its own rule; 0 when the cluster is too small for the profile."""
    nodes = count(places, profile.pool)
    if profile.apart is None or not profile.apart.required:
        return spec.vmis if nodes else 0
    domains = {HOST: nodes, ZONE: spec.zones}[profile.apart.topology_key]
    return domains if domains > 1 else 0


def count(places: list[Place], pool: Pool) -> int:
    return sum(place.pool is pool for place in places)


def demand(groups: list[Group], services: list[background.Service]) -> Demand:
    memory: Counter[Pool] = Counter()
    gpus = 0
    for group in groups:
        pool = Pool.GENERAL if group.profile.pool is Pool.HIGH else group.profile.pool
        memory[pool] += group.size * group.memory
        gpus += group.size if pool is Pool.GPU else 0
    memory[Pool.GENERAL] += sum(service.replicas * service.memory * MIB for service in services)
    return Demand(memory, gpus, sum(group.size for group in groups) + sum(service.replicas for service in services))


def cluster_objects() -> list[Object]:
    """What the workloads refer to, and how KubeVirt should treat some of them."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in TENANTS]
    namespaces.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": background.NAMESPACE}})
    return [
        *namespaces,
        *storage_classes(),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "important"},
            "value": 100000,
        },
        {
            "apiVersion": "migrations.kubevirt.io/v1alpha1",
            "kind": "MigrationPolicy",
            "metadata": {"name": "slow-lane"},
            "spec": {
                "bandwidthPerMigration": "64Mi",
                "selectors": {"virtualMachineInstanceSelector": {"profile": "batch"}},
            },
        },
        {
            "apiVersion": "migrations.kubevirt.io/v1alpha1",
            "kind": "MigrationPolicy",
            "metadata": {"name": "busy-guests"},
            "spec": {
                "allowPostCopy": True,
                "selectors": {"virtualMachineInstanceSelector": {"profile": "analytics"}},
            },
        },
    ]
