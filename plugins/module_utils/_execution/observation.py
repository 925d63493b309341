# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was seen of the cluster at one moment, and what has to be looked at.

Values of looks, not of watches: that something is missing here means that it was looked for and not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import drained_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_refused
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    FAILED,
    SUCCEEDED,
    VM,
    Object,
    controller,
    is_finished,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    HALTED,
    MANUAL,
    ONCE,
    RERUN_ON_FAILURE,
    run_strategy,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import find_marks, wanted_replicas


@dataclass(frozen=True, slots=True)
class SeenVmi:
    """`node`: where it runs, empty if nowhere yet. `ending`: it was told to end. `owner…`: of what controls it.

    is_refused: KubeVirt says that it cannot be migrated.
    """

    uid: str
    namespace: str
    name: str
    node: str
    phase: str
    ending: bool
    owner_kind: str = ""
    owner: str = ""
    owner_uid: str = ""
    is_refused: bool = False

    @classmethod
    def of(cls, vmi: Object) -> SeenVmi:
        metadata, status, owner = vmi["metadata"], vmi.get("status") or {}, controller(vmi) or {}
        return cls(
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            node=str(status.get("nodeName") or ""),
            phase=str(status.get("phase") or ""),
            ending=bool(metadata.get("deletionTimestamp")),
            owner_kind=str(owner.get("kind") or ""),
            owner=str(owner.get("name") or ""),
            owner_uid=str(owner.get("uid") or ""),
            is_refused=is_refused(vmi),
        )

    @property
    def stays_for_now(self) -> str:
        """Why no migration of it can be created yet; empty if one can."""
        if self.ending:
            return "it is being deleted"
        return (
            "" if self.phase == "Running" else f"it is {self.phase or 'not started'}, and only a running VM can leave"
        )

    @property
    def title(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def has_ended(self) -> bool:
        return is_finished(self.phase)

    def may_be_of(self, kind: str) -> bool:
        """Whether an owner of that kind may have made it. What is nobody's KubeVirt makes a VM's own a little later."""
        return kind != VM or self.owner_kind == VM

    @property
    def has_succeeded(self) -> bool:
        """Whether its guest has shut itself down."""
        return self.phase == SUCCEEDED


@dataclass(frozen=True, slots=True)
class SeenVm:
    """A VirtualMachine. `strategy`: its run strategy. `ending`: it was told to go.

    start_requested, stops: what KubeVirt was asked for and has yet to do; of stops the uids of VMIs, which may be there
    for as long as their guests take to shut down. before: by node for which it was stopped, the run strategy that it is
    to get back, empty once it has got it.
    """

    uid: str
    strategy: str
    ending: bool = False
    start_requested: bool = False
    stops: frozenset[str] = frozenset()
    before: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, vm: Object) -> SeenVm:
        requests = (vm.get("status") or {}).get("stateChangeRequests") or ()
        return cls(
            uid=vm["metadata"]["uid"],
            strategy=run_strategy(vm),
            ending=bool(vm["metadata"].get("deletionTimestamp")),
            start_requested=any(request["action"] == "Start" for request in requests),
            stops=frozenset(str(request.get("uid")) for request in requests if request["action"] == "Stop"),
            before={node: mark.run_strategy for node, mark in find_marks(vm).items()},
        )

    def adopts(self, vmi: SeenVmi | None) -> bool:
        """Whether KubeVirt makes a VMI of its name, which is nobody's, its own and lets it run on.

        Follows ClaimObject in pkg/controller/controller_ref_manager.go. One that was made by hand would run on as well
        where its VM is halted, as no sync of that VM gets so far; but that VM has not brought it back.
        """
        if vmi is None or vmi.owner_uid or vmi.ending or vmi.has_ended:
            return False
        return not self.ending and self.strategy != HALTED

    def brings_back(self, vmi: SeenVmi | None) -> bool:
        """Whether its next VMI comes, with nothing more asked for, when this one has gone or there is none.

        Follows syncRunStrategy in pkg/virt-controller/watch/vm/vm.go.
        """
        if self.ending:
            return False
        if self.start_requested:
            return True
        ended = vmi is not None and vmi.has_ended and not vmi.ending
        if self.strategy == RERUN_ON_FAILURE:
            return ended and vmi is not None and vmi.phase == FAILED
        return self.strategy not in (HALTED, MANUAL) and not (self.strategy == ONCE and ended)


@dataclass(frozen=True, slots=True)
class SeenReplicaSet:
    """`ready`: VMIs of it that are. `wanted`: by node for which some were stopped, how many are to be after that.

    replicas: how many there are to be now. ending: it was told to go.
    """

    uid: str
    ready: int
    wanted: Mapping[str, int]
    replicas: int = 1
    ending: bool = False

    @classmethod
    def of(cls, replica_set: Object) -> SeenReplicaSet:
        return cls(
            uid=replica_set["metadata"]["uid"],
            ready=(replica_set.get("status") or {}).get("readyReplicas") or 0,
            wanted={node: wanted_replicas(replica_set, node) for node in find_marks(replica_set)},
            replicas=replica_set["spec"].get("replicas", 1),
            ending=bool(replica_set["metadata"].get("deletionTimestamp")),
        )


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod on a node that has not ended. `machine`: it belongs to a VMI. `stays`: a drain leaves it.

    `tolerates`: it, or what replaces it, may come to a cordoned node. `owner_uid`: of what controls it, such as a VMI.
    """

    uid: str
    namespace: str
    name: str
    node: str
    ending: bool
    machine: bool
    stays: bool
    tolerates: bool
    owner_uid: str

    @classmethod
    def of(cls, pod: Object) -> SeenPod:
        metadata = pod["metadata"]
        return cls(
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            node=str(pod["spec"].get("nodeName") or ""),
            ending=bool(metadata.get("deletionTimestamp")),
            machine=drained_pod.of_a_machine(pod),
            stays=drained_pod.stays(pod),
            tolerates=drained_pod.tolerates_cordon(pod),
            owner_uid=str((controller(pod) or {}).get("uid") or ""),
        )

    @property
    def title(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Observation:
    """`vmis`: by title, those on the nodes looked at and those asked for. `pods`: by uid, those on the nodes looked at.

    migrations: by title of their VMI, those of this run. words: by uid of a migration or VMI whose pod has no node, or
    had none until the migration failed, why, in the scheduler's words. reasons: by uid of a failed migration of this
    run, why it failed. siblings: by uid of the owner, VMIs of the same owner. vms, replica_sets: by title, those asked
    for; looked at before the VMIs, so that what a VM was asked for and has done shows in its VMI.
    """

    vmis: Mapping[str, SeenVmi] = field(default_factory=dict)
    pods: Mapping[str, SeenPod] = field(default_factory=dict)
    migrations: Mapping[str, tuple[Migration, ...]] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    siblings: Mapping[str, tuple[SeenVmi, ...]] = field(default_factory=dict)
    vms: Mapping[str, SeenVm] = field(default_factory=dict)
    replica_sets: Mapping[str, SeenReplicaSet] = field(default_factory=dict)

    def vmi(self, title: str, uid: str) -> SeenVmi | None:
        """The VMI itself, unless it has ended or another one has its name."""
        found = self.vmis.get(title)
        return found if found is not None and found.uid == uid and not found.has_ended else None


@dataclass(frozen=True, slots=True)
class Questions:
    """What the next look has to answer beside what is on the nodes.

    vmis: titles of those to read anew, wherever they are. known: titles of those of which anything that was seen at
    this look will do. unplaced: uids of VMIs whose pod may lack a node, with their namespace. placing: uids of
    migrations whose target pods may lack a node, by namespace. failed: uids of failed migrations to be explained, with
    the title of their VMI. owners: namespace and uid of those whose VMIs are to be read. vms, replica_sets: titles of
    those to read. pods: titles of those on the nodes to read anew.
    """

    vmis: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    unplaced: Mapping[str, str] = field(default_factory=dict)
    placing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    owners: frozenset[tuple[str, str]] = frozenset()
    vms: frozenset[str] = frozenset()
    replica_sets: frozenset[str] = frozenset()
    pods: frozenset[str] = frozenset()

    def __or__(self, other: Questions) -> Questions:
        """What both ask."""
        namespaces = {*self.placing, *other.placing}
        placing = {
            name: self.placing.get(name, frozenset()) | other.placing.get(name, frozenset()) for name in namespaces
        }
        return Questions(
            vmis=self.vmis | other.vmis,
            known=self.known | other.known,
            unplaced={**self.unplaced, **other.unplaced},
            placing=placing,
            failed={**self.failed, **other.failed},
            owners=self.owners | other.owners,
            vms=self.vms | other.vms,
            replica_sets=self.replica_sets | other.replica_sets,
            pods=self.pods | other.pods,
        )
