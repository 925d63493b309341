# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a case is: something planted in a cluster that the linter has to find, and how its consequence shows.

Cases share a cluster. Each has a namespace of its own, and those that are about nodes have nodes of their own, which
taints keep from the others; the rest share a pair.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from testbed.api import Object
from testbed.nodes import fake_node

TAINT = "case"
COMMON = "common"
CLUSTER_WIDE = frozenset({"MigrationPolicy", "PersistentVolume"})


class Proof(Enum):
    """How the consequence is shown on a real cluster."""

    MIGRATION_PENDING = auto()
    NODE_NOT_EMPTIED = auto()  # its VMs leave one after the other, and the last one cannot
    DRAIN_STOPS = auto()  # the same on a cordoned node
    NODE_NEVER_REACHED = auto()  # a migration to the case's last node stays Pending
    POD_PENDING = auto()  # a new pod, with the scheduler's word on it
    POD_IGNORED = auto()  # a new pod, without a word
    SHARED_NODE = auto()  # two pods on a node that are to be apart
    EVICTION_KILLS = auto()
    EVICTION_REFUSED = auto()  # by KubeVirt
    BUDGET_REFUSES = auto()
    API_REFUSES = auto()  # the API server does not know how
    EVICTION_ALLOWED = auto()  # although a budget was made
    MIGRATION_FAILS = auto()
    DRAIN_TAKES_LONG = auto()


@dataclass(frozen=True)
class Place:
    """A node: its labels, and its size where it matters. `model`: of the CPU."""

    labels: Mapping[str, str] = field(default_factory=dict)
    memory: str = "16Gi"
    model: str = "Skylake-Server"
    devices: Mapping[str, int] = field(default_factory=dict)


PAIR = (Place(memory="64Gi"), Place(memory="64Gi"))


@dataclass(frozen=True)
class Case:
    """`places`: its own nodes, none for the common pair.

    `rule` is to find the `subjects` of this `kind`, by default the first object that is planted. `also`: other rules
    that rightly find them too. `words`: what the cluster's answer has to contain where the finding does not quote it.
    `leaves`: rules that find something else once the patch is applied.
    """

    name: str
    rule: str
    proof: Proof
    planted: tuple[Object, ...]
    places: tuple[Place, ...] = ()
    kind: str = ""
    subjects: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    words: str = ""
    patched: bool = False
    leaves: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        return f"lint-{self.name}"

    @property
    def pool(self) -> str:
        return self.name if self.places else COMMON

    @property
    def nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in nodes(self.pool, self.places or PAIR)]

    @property
    def at_fault(self) -> list[tuple[str, str, str]]:
        """Kind, namespace and name of what is to be found."""
        first = self.planted[0]
        kind = self.kind or first["kind"]
        namespace = "" if kind in ("Node", *CLUSTER_WIDE) else self.namespace
        return [(kind, namespace, name) for name in self.subjects or (first["metadata"]["name"],)]

    @property
    def machines(self) -> int:
        """How many VMs it has."""
        owners = (obj for obj in self.planted if obj["apiVersion"] == "kubevirt.io/v1")
        return sum(obj["spec"].get("replicas", 1) for obj in owners)

    @property
    def pods(self) -> int:
        """How many other pods it has."""
        return sum(obj["spec"]["replicas"] for obj in self.planted if obj["kind"] == "Deployment")

    def objects(self) -> list[Object]:
        """All that the case puts into a cluster, beside the common nodes."""
        namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        return [namespace, *nodes(self.pool, self.places), *(self._placed(obj) for obj in self.planted)]

    def _placed(self, given: Object) -> Object:
        """An object in the case's namespace, its pods on the case's nodes."""
        obj = copy.deepcopy(given)
        if obj["kind"] not in CLUSTER_WIDE:
            obj["metadata"]["namespace"] = self.namespace
        spec: dict[str, Any] = obj.get("spec", {}).get("template", {}).get("spec", {})
        if spec:
            spec["tolerations"] = [{"key": TAINT, "operator": "Equal", "value": self.pool, "effect": "NoSchedule"}]
        if obj["kind"] == "Deployment":
            # Ordinary pods would also run on nodes that KubeVirt leaves alone.
            spec["nodeSelector"] = {TAINT: self.pool}
        return obj


def nodes(pool: str, places: Sequence[Place]) -> list[Object]:
    """Nodes that only who tolerates the pool's taint comes to: `pool-1` and so on."""
    taint = {"key": TAINT, "value": pool, "effect": "NoSchedule"}
    return [
        fake_node(
            f"{pool}-{number}",
            cpu=16,
            memory=place.memory,
            labels={TAINT: pool, **place.labels},
            taints=[taint],
            cpu_model=place.model,
            devices=place.devices,
        )
        for number, place in enumerate(places, start=1)
    ]
