# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that are filled so far: VMs that keep apart by host or zone, and groups of nodes that are reserved."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace

Json = dict[str, Any]
Lists = dict[str, list[Json]]

HOST, ZONE, POOL = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/pool"
_SIZES_GIB = (2, 2, 4, 4, 4, 8, 8, 16)
_OVERHEAD_GIB = 0.4
_DEVICES = {f"devices.kubevirt.io/{name}": "1k" for name in ("kvm", "tun", "vhost-net")}


@dataclass(frozen=True)
class Wanted:
    """fill: share of the nodes' memory that VMs have, in each pool. rules: whether VMs keep apart from each other.

    pools: groups of nodes that are reserved, each a tenth of all nodes, at least three.
    """

    nodes: int
    vms: int
    fill: float
    rules: bool = True
    pools: int = 1
    zones: int = 3
    seed: int = 0


class Full(Exception):
    """The VMs do not fit, by the rules or in size."""


def filled_cluster(wanted: Wanted) -> Lists:
    """The same for the same. Raises Full."""
    dice = random.Random(wanted.seed)  # noqa: S311 - repeatable by design, no secret
    pools = _pools(wanted)
    groups = list(_groups(wanted, pools, dice))
    sizes = {
        pool: sum(group.size + _OVERHEAD_GIB for group in groups if group.pool == pool for _vm in range(group.count))
        for pool in pools
    }
    # Without one of its nodes a pool still has to be large enough.
    fills = {pool: min(wanted.fill, 0.95 * (len(names) - 1) / len(names)) for pool, names in pools.items()}
    rooms = {pool: sizes[pool] / fills[pool] / len(names) for pool, names in pools.items()}
    zone_of = {
        name: f"zone-{number % wanted.zones}"
        for number, name in enumerate(sorted(n for v in pools.values() for n in v))
    }
    free = {name: rooms[pool] for pool, names in pools.items() for name in names}
    lists: Lists = {"nodes": [], "pods": [], "vmis": [], "vms": []}
    for pool, names in pools.items():
        lists["nodes"] += [_node(name, zone_of[name], pool, rooms[pool]) for name in names]
    lists["nodes"].sort(key=lambda node: str(node["metadata"]["name"]))
    for group in sorted(groups, key=lambda group: (-group.size, group.name)):
        _place(lists, group, pools[group.pool], free, zone_of, dice)
    return lists


@dataclass(frozen=True)
class _Group:
    name: str
    pool: str
    size: int
    count: int
    apart: str


def _pools(wanted: Wanted) -> dict[str, list[str]]:
    """The nodes of each pool; the general one has no name."""
    names = [f"node-{number:04}" for number in range(wanted.nodes)]
    each = max(3, wanted.nodes // 10)
    found = {f"pool-{number}": names[number * each : (number + 1) * each] for number in range(wanted.pools)}
    return {**found, "": names[wanted.pools * each :]}


def _groups(wanted: Wanted, pools: dict[str, list[str]], dice: random.Random) -> list[_Group]:
    found: list[_Group] = []
    for pool, names in pools.items():
        left = round(wanted.vms * len(names) / wanted.nodes)
        while left > 0:
            apart = dice.choice(("", "", HOST, HOST, ZONE)) if wanted.rules else ""
            most = {HOST: max(2, len(names) // 2), ZONE: wanted.zones - 1}.get(apart, 12)
            count = min(left, dice.randint(2, max(2, min(most, 12))))
            found.append(_Group(f"{pool or 'app'}-{len(found)}", pool, dice.choice(_SIZES_GIB), count, apart))
            left -= count
    return found


def _place(
    lists: Lists, group: _Group, names: list[str], free: dict[str, float], zone_of: dict[str, str], dice: random.Random
) -> None:
    vmi, pod = _templates(group)
    taken: defaultdict[str, int] = defaultdict(int)
    for number in range(group.count):
        fits = [name for name in names if free[name] >= group.size + _OVERHEAD_GIB
                and not (group.apart and taken[name if group.apart == HOST else zone_of[name]])]  # fmt: skip
        if not fits:
            raise Full(f"{group} does not fit")
        node = max(dice.sample(fits, min(3, len(fits))), key=lambda name: (free[name], name))
        free[node] -= group.size + _OVERHEAD_GIB
        taken[node] += 1
        taken[zone_of[node]] += 1
        _settle(lists, vmi, pod, f"{group.name}-{number}", node)


def _settle(lists: Lists, vmi: Json, pod: Json, name: str, node: str) -> None:
    owner = {"kind": "VirtualMachine", "name": name, "uid": f"vm-{name}", "controller": True}
    own = copy.deepcopy(vmi)
    own["metadata"] |= {"name": name, "uid": f"vmi-{name}", "ownerReferences": [owner]}
    own["status"] = {"phase": "Running", "nodeName": node, "selinuxContext": "none"}
    launcher = copy.deepcopy(pod)
    launcher["metadata"] |= {
        "name": f"virt-launcher-{name}",
        "uid": f"pod-{name}",
        "labels": {**pod["metadata"]["labels"], "kubevirt.io/created-by": f"vmi-{name}", "vm.kubevirt.io/name": name},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": name,
                "uid": f"vmi-{name}",
                "controller": True,
            }
        ],
    }
    launcher["spec"]["nodeName"] = node
    launcher["status"] = {"phase": "Running"}
    lists["vms"].append(
        {
            "kind": "VirtualMachine",
            "metadata": {"namespace": "shop", "name": name, "uid": f"vm-{name}"},
            "spec": {
                "runStrategy": "Always",
                "template": {"metadata": {"labels": own["metadata"]["labels"]}, "spec": own["spec"]},
            },
        }
    )
    lists["vmis"].append(own)
    lists["pods"].append(launcher)


def _templates(group: _Group) -> tuple[Json, Json]:
    """A VMI of the group, and its launcher pod as KubeVirt renders it."""
    rules: Json = {}
    if group.apart:
        term = {"labelSelector": {"matchLabels": {"app": group.name}}, "topologyKey": group.apart}
        rules["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if group.pool:
        rules["nodeSelector"] = {POOL: group.pool}
        rules["tolerations"] = [{"key": POOL, "operator": "Equal", "value": group.pool, "effect": "NoSchedule"}]
    vmi: Json = {
        "metadata": {"namespace": "shop", "name": "template", "uid": "template", "labels": {"app": group.name}},
        "spec": {
            "architecture": "amd64",
            "evictionStrategy": "LiveMigrate",
            "domain": {
                "cpu": {"cores": 1},
                "memory": {"guest": f"{group.size}Gi"},
                "machine": {"type": "q35"},
                "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
            },
            "networks": [{"name": "default", "pod": {}}],
            **rules,
        },
    }
    return vmi, launcher_pod({**vmi, "status": {"phase": "Running"}}, Configuration(), Namespace())


def _node(name: str, zone: str, pool: str, memory_gib: float) -> Json:
    labels = {
        HOST: name,
        ZONE: zone,
        "kubernetes.io/arch": "amd64",
        "kubevirt.io/schedulable": "true",
        "machine-type.node.kubevirt.io/q35": "true",
    }
    taints = [{"key": POOL, "value": pool, "effect": "NoSchedule"}] if pool else []
    amounts = {
        "cpu": "512",
        "memory": f"{int(memory_gib * 1024)}Mi",
        "pods": "500",
        "ephemeral-storage": "10000Gi",
        **_DEVICES,
    }
    return {
        "metadata": {"name": name, "uid": f"node-{name}", "labels": {**labels, POOL: pool} if pool else labels},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts},
    }
