# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small model of a cluster: what is in it, and the rule by which pods find nodes.

It knows what the reducer can tell apart, and no more: a node has room for pods of VMs up to some size, a group of VMs
keeps to one VM a zone, whose own pods do not stand in its way, and some VMs run on large nodes only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.memory import Remembered
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

NAMESPACE = "shop"
VM, REPLICA_SET = "VirtualMachine", "VirtualMachineInstanceReplicaSet"
RUN = "run-1"
# KubeVirt's caps here: small, so that they are met.
CAP_CLUSTER, CAP_OUTBOUND = 3, 2
ROOM = 4
ZONES = {"n1": "a", "n2": "b", "n3": "c", "n4": "a", "n5": "b", "n6": "c"}
LARGE = frozenset({"n2", "n4", "n6"})
OURS, THEIRS = "us", "somebody"
# Seconds for which an invocation holds the run that does not renew its Lease, and for which it need not look whether
# run and nodes are its own before it does something.
LEASE, FRESH = 30.0, 2.0


@dataclass
class Mark:
    """Of what was stopped for a node. before: the strategy of a VM that it is to get back, empty once it has it.

    vmis: uids of those stopped. ready: how many of a replica set were, before any was stopped.
    """

    before: str = ""
    ready: int = 0
    vmis: set[str] = field(default_factory=set)


@dataclass
class Owner:
    """strategy: Always, Manual, Halted; a replica set is Always. replicas: how many VMIs it wants when it may.

    picky: its VMs run on large nodes only.
    asked: somebody has asked for a start of what starts by request only. stops: uids of VMIs that were asked to stop.
    stopped_for: its marks, by node. placed, ran: uids of VMIs of it that have had a node, and have run. unwanted:
    somebody else has stopped it after it got back what it ran with.
    """

    uid: str
    kind: str
    name: str
    strategy: str = "Always"
    replicas: int = 1
    asked: bool = False
    group: str = ""
    picky: bool = False
    migratable: bool = True
    size: int = 1
    stops: set[str] = field(default_factory=set)
    stopped_for: dict[str, Mark] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)
    ran: set[str] = field(default_factory=set)
    unwanted: bool = False

    def halt(self) -> None:
        """As somebody else does it; of one that is halted already nobody sees that he wanted it as well."""
        self.unwanted = self.unwanted or self.strategy != "Halted"
        self.strategy = "Halted"


@dataclass
class Vmi:
    """phase: Pending, Scheduled, Running, Succeeded or Failed. node: empty until its pod has one. size: of its next.

    tolerant: of cordons, which nobody else needs to know.
    """

    uid: str
    name: str
    owner: Owner | None
    migratable: bool
    group: str = ""
    picky: bool = False
    node: str = ""
    phase: str = "Pending"
    ending: bool = False
    by_itself: bool = False
    size: int = 1
    tolerant: bool = False

    @property
    def title(self) -> str:
        return f"{NAMESPACE}/{self.name}"

    @property
    def alive(self) -> bool:
        return self.phase not in ("Succeeded", "Failed")


@dataclass
class Pod:
    """owner_uid: of its VMI, or of what replaces it. over: its containers end, nobody has to ask for it.

    ready: it serves. created: seconds since the epoch.
    """

    uid: str
    name: str
    node: str
    owner_uid: str
    machine: bool
    group: str = ""
    tolerates: bool = False
    ending: bool = False
    over: bool = False
    size: int = 1
    ready: bool = True
    created: float = 0.0


@dataclass
class PodSet:
    """What keeps a number of ordinary pods: a ReplicaSet or a StatefulSet. is_paused: nobody sees to it for now."""

    uid: str
    kind: str
    name: str
    replicas: int
    is_paused: bool = False


@dataclass
class Moving:
    """A VirtualMachineInstanceMigration. ours: by the run, whose label it has. target: the node it is pinned to.

    home: the node that was to be left when it was created, which stands in a label. run: of somebody else, if any.
    """

    uid: str
    name: str
    vmi: Vmi
    source: str
    target: str
    ours: bool
    phase: str = "Pending"
    phases: list[tuple[str, str]] = field(default_factory=list)
    cancelled: bool = False
    pod: str = ""
    switched: bool = False
    run: str = ""
    home: str = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.source

    @property
    def unfinished(self) -> bool:
        return self.phase not in ("Succeeded", "Failed")

    @property
    def is_coming(self) -> bool:
        """Whether the run sends it, and nothing has ended that yet."""
        return self.ours and self.unfinished and self.vmi.alive and not (self.cancelled or self.vmi.ending)


@dataclass(frozen=True)
class Snapshot:
    """What a plan was made from. places: uids of VMIs and the nodes where they have a pod, with its size.

    homes: uids of VMIs and the nodes that they are on, without those that they are still on their way to.
    sizes: of the VMIs' next pods, by uid. moving: uids of those on their way, whose actions a plan keeps as they are.
    """

    places: Mapping[tuple[str, str], int]
    homes: frozenset[tuple[str, str]]
    sizes: Mapping[str, int]
    moving: frozenset[str]


@dataclass
class World:
    """now: seconds since the epoch. cordons: by node, whose. epochs: by node, of our cordon. tight: no pod is evicted.

    sets: by uid, what keeps ordinary pods; a pod of none of them has another one in its place as soon as it is gone.
    saved: by node, what a drain of it has left for the next one. uncordoned_at: by node, when somebody has taken our
    cordon away.

    snapshots: by the hash that plans have of them. in_force: the plan that the run keeps, if the product makes plans.
    given_back: nodes with which the run is done.
    calm: nothing fails any more that need not fail. frail: launchers may die before their VMs run. gone: uids of what
    is no more. places: by uid of a VMI, all nodes it has run on. left: uid and node of what has once left a node
    altogether. holder: which invocation holds the run. lost_at: by invocation, when it lost the run. number: of objects
    so far. happened: how often something has, in words.
    """

    now: float = 1_000_000.0
    owners: dict[str, Owner] = field(default_factory=dict)
    vmis: dict[str, Vmi] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    migrations: dict[str, Moving] = field(default_factory=dict)
    cordons: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, str] = field(default_factory=dict)
    sets: dict[str, PodSet] = field(default_factory=dict)
    saved: dict[str, Remembered] = field(default_factory=dict)
    uncordoned_at: dict[str, float] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    in_force: Plan | None = None
    given_back: set[str] = field(default_factory=set)
    tight: bool = False
    calm: bool = False
    frail: bool = False
    gone: set[str] = field(default_factory=set)
    places: dict[str, list[str]] = field(default_factory=dict)
    left: set[tuple[str, str]] = field(default_factory=set)
    holder: int = 0
    lost_at: dict[int, float] = field(default_factory=dict)
    number: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    def take_over(self) -> None:
        """Another invocation holds the run from now on."""
        self.lost_at[self.holder] = self.now
        self.holder += 1

    def snapshot(self) -> str:
        """Its hash."""
        places = {(pod.owner_uid, pod.node): pod.size for pod in self.pods.values() if pod.machine and pod.node}
        name = f"snapshot-{len(self.snapshots)}"
        homes = frozenset((vmi.uid, vmi.node) for vmi in self.vmis.values())
        moving = frozenset(entry.vmi.uid for entry in self.migrations.values() if entry.unfinished)
        self.snapshots[name] = Snapshot(places, homes, {vmi.uid: vmi.size for vmi in self.vmis.values()}, moving)
        return name

    def uid(self, kind: str) -> str:
        self.number += 1
        return f"{kind}-{self.number}"

    def vmi(self, name: str) -> Vmi | None:
        return next((vmi for vmi in self.vmis.values() if vmi.name == name), None)

    def ready(self, owner: Owner) -> int:
        """VMIs of it that run and go on to."""
        return sum(vmi.owner is owner and vmi.phase == "Running" and not vmi.ending for vmi in self.vmis.values())

    def pods_of(self, uid: str) -> Iterator[Pod]:
        return (pod for pod in self.pods.values() if pod.owner_uid == uid)

    def serving(self, owner: str) -> int:
        """Pods of a set that are ready, and go on to be."""
        return sum(pod.ready and not (pod.ending or pod.over) for pod in self.pods_of(owner))

    def staying(self, owner: str) -> int:
        """Pods of a set that go on, whether they are ready or not."""
        return sum(not (pod.ending or pod.over) for pod in self.pods_of(owner))

    def moving(self, vmi: Vmi) -> Moving | None:
        """The unfinished migration of a VMI, of which there is one at most."""
        return next((entry for entry in self.migrations.values() if entry.unfinished and entry.vmi is vmi), None)

    @staticmethod
    def wanted(owner: Owner) -> int:
        """VMIs that it is to have without anybody's asking."""
        return owner.replicas if owner.strategy == "Always" else 0

    def has_left(self, uid: str, node: str) -> bool:
        """Whether it is not on the node now: neither itself, nor a pod of it."""
        vmi = self.vmis.get(uid)
        if vmi is not None and vmi.alive and vmi.node == node:
            return False
        return not any(uid in (pod.uid, pod.owner_uid) and pod.node == node for pod in self.pods.values())

    def had_left(self, uid: str, node: str) -> bool:
        return (uid, node) in self.left or self.has_left(uid, node)

    def fits(
        self, vmi: Vmi, node: str, *, without: Collection[tuple[str, str]] = (), coming: Collection[str] = ()
    ) -> bool:
        """Whether the scheduler may put a pod of a VMI on a node.

        without: uids of VMIs and the nodes where they are thought away. coming: uids of those on their way to it.
        """
        if (node in self.cordons and not vmi.tolerant) or (vmi.picky and node not in LARGE):
            return False
        here, room = {vmi.uid}, vmi.size
        for pod in self.pods.values():
            if not pod.machine or not pod.node or (pod.owner_uid, pod.node) in without:
                continue
            if pod.owner_uid == vmi.uid:
                if pod.node == node:
                    return False
                continue
            if vmi.group and pod.group == vmi.group and ZONES[pod.node] == ZONES[node]:
                return False
            if pod.node == node:
                here.add(pod.owner_uid)
                room += pod.size
        return room + sum(self.vmis[uid].size for uid in {*coming} - here) <= ROOM

    def is_empty(self, node: str, first: frozenset[str] | None) -> bool:
        """first: uids of ordinary pods that were there at first; others that tolerate a cordon do not count."""
        if any(vmi.alive and vmi.node == node for vmi in self.vmis.values()):
            return False
        return not any(
            pod.machine or first is None or pod.uid in first or not pod.tolerates
            for pod in self.pods.values()
            if pod.node == node
        )

    def add_vmi(
        self, name: str, owner: Owner | None, node: str, *, migratable: bool, group: str = "", picky: bool = False
    ) -> Vmi:
        """A VMI; one with a node runs there already."""
        vmi = Vmi(self.uid("vmi"), name, owner, migratable, group, picky)
        self.vmis[vmi.uid] = vmi
        if node:
            self.add_pod(vmi.uid, node, machine=True, group=group)
            self.settle(vmi, node)
            vmi.phase = "Running"
        return vmi

    def add_pod(
        self, owner: str, node: str, *, machine: bool, group: str = "", tolerates: bool = False, size: int = 1
    ) -> Pod:
        uid = self.uid("pod")
        pod = self.pods[uid] = Pod(uid, uid, node, owner, machine, group, tolerates, size=size)
        return pod

    def settle(self, vmi: Vmi, node: str) -> None:
        vmi.node = node
        if vmi.owner is not None:
            vmi.owner.placed.add(vmi.uid)
        self.places.setdefault(vmi.uid, []).append(node)

    def remove_pod(self, pod: Pod) -> None:
        del self.pods[pod.uid]
        self.gone.add(pod.uid)
        if pod.node:
            self._note(pod.uid, pod.node)
            self._note(pod.owner_uid, pod.node)

    def remove_vmi(self, vmi: Vmi) -> None:
        del self.vmis[vmi.uid]
        self.gone.add(vmi.uid)

    def _note(self, uid: str, node: str) -> None:
        if self.has_left(uid, node):
            self.left.add((uid, node))
