# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights to read what decides the placement of VMs, and to act, and why each.

To read them all is one need. What one need says of a right, another one may say differently.

Leases and ConfigMaps stand in one namespace, so a Role there is enough for them.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS, Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Right, need, on, on_leases

_KUBEVIRT, _ACTS, _COORDINATION = "kubevirt.io", "subresources.kubevirt.io", "coordination.k8s.io"
_VMIS, _MIGRATIONS = "virtualmachineinstances", "virtualmachineinstancemigrations"
_VMS, _REPLICA_SETS = "virtualmachines", "virtualmachineinstancereplicasets"
# Why each list of a snapshot is read, by the list's name.
_WHY = {
    "kubevirts": "know KubeVirt's version, and how many migrations it runs at once",
    "namespaces": "know which cluster it is, and the labels that selectors of namespaces go by",
    "nodes": "know their room, labels and taints, and who has cordoned them",
    "vmis": "know which VMs run where, and whether they can be migrated",
    "vms": "know what starts a VM again, and which were stopped for a node",
    "vmireplicasets": "know what replaces a VM, and which were stopped for a node",
    "migrations": "know which VMs are on their way already",
    "migrationpolicies": "know how a VM may be migrated",
    "instancetypes": "know the size of VMs that do not run; may be missing",
    "clusterinstancetypes": "know the size of VMs that do not run; may be missing",
    "preferences": "know what VMs that do not run prefer; may be missing",
    "clusterpreferences": "know what VMs that do not run prefer; may be missing",
    "controllerrevisions": "know the instance types of VMs as they were stored with them; may be missing",
    "pdbs": "know which pods may not leave yet",
    "pvcs": "know the volumes of VMs and pods",
    "pvs": "know from where volumes can be reached",
    "storageclasses": "know where volumes that do not exist yet would be",
    "csinodes": "know how many volumes a node takes",
    "csidrivers": "know whether a driver counts its capacity",
    "csistoragecapacities": "know where there is room for new volumes",
    "volumeattachments": "know which volumes a node has already",
    "resourcequotas": "know whether a namespace has room for the second pod of a migration",
    "limitranges": "know what pods get that ask for nothing",
    "priorityclasses": "know who would displace whom",
    "runtimeclasses": "know what pods cost beside their containers",
    "networkattachmentdefinitions": "know which devices the networks of VMs take; may be missing",
    "services": "know which pods are spread by default",
    "replicationcontrollers": "know which pods belong together",
    "replicasets": "know which pods belong together",
    "statefulsets": "know which pods belong together",
    "daemonsets": "know which pods stay on their node",
    "pods": "know what runs on each node, and what it asks for",
}


def listing(kind: Kind) -> Right:
    return Right(kind.group, kind.resource, "list")


READ = need("Read the cluster", {listing(kind): _WHY[kind.name] for kind in KINDS})
# Who has not got these goes without what they would tell.
DISPENSABLE = frozenset(listing(kind) for kind in KINDS if kind.dispensable)

IDENTIFY = need(
    "Tell the cluster from others",
    on("", "namespaces", "kube-system", get="see by its uid that it is the cluster that was planned for"),
)

LOOK_AT_RUN = need(
    "Look at a run",
    on_leases(_COORDINATION, "leases", get="see who holds the run"),
    on_leases("", "configmaps", get="read the plan that the run goes by", list="find what the run remembers"),
)

HOLD_RUN = need(
    "Hold a run",
    on_leases(
        _COORDINATION,
        "leases",
        get="see who holds the run",
        create="hold the run",
        update="renew the Leases of the run and of its nodes, and take over from a dead process",
        delete="release the run",
        list="find the Leases of the run's nodes, which are renewed with it",
    ),
)

REMEMBER = need(
    "Let a run remember",
    on_leases(
        "",
        "configmaps",
        get="go on by what the run remembers",
        create="keep the plan and what has failed",
        update="keep what has changed of it",
        delete="remove what is outdated",
    ),
)

FORGET = need(
    "Forget a run",
    on_leases(
        "",
        "configmaps",
        list="find what the run remembers",
        delete="remove what the run remembers when it is complete",
    ),
)

TAKE = need(
    "Take a node",
    on("", "nodes", get="see before each step whose the node is", patch="cordon it in its owner's name"),
    on_leases(
        _COORDINATION,
        "leases",
        get="see who holds the node and the run",
        create="hold the node",
        update="renew the Leases of the node and of the run",
        delete="release the node, also when it cannot be cordoned",
    ),
)

GIVE_BACK = need(
    "Give a node back",
    on("", "nodes", get="see whose it is", patch="uncordon it, and label it as maintained"),
    on_leases(
        _COORDINATION,
        "leases",
        get="see who holds the node and the run",
        update="renew the Lease of the run",
        delete="release the node",
    ),
)

SEE_FITNESS = need(
    "See that a node is fit for VMs",
    on("", "nodes", get="see whether it is fit"),
    on(_KUBEVIRT, _VMIS, list="find VMs on it that KubeVirt wants to evacuate"),
)

FOLLOW = need(
    "Follow what leaves a node",
    on("", "pods", list="find the pods on it", watch="see them leave"),
    on(_KUBEVIRT, _VMIS, list="find the VMs on it", watch="see them leave"),
)

MIGRATE = need(
    "Live-migrate VMs",
    on("", "nodes", get="see whether the target is still open", list="find nodes by their labels"),
    on(_KUBEVIRT, _VMIS, get="see whether a VM is still where it was planned for"),
    on(
        _KUBEVIRT,
        _MIGRATIONS,
        create="migrate a VM to its target",
        get="find a migration whose answer was lost",
        list="find migrations that are under way already",
        watch="follow a migration to its end",
    ),
)

EXPLAIN = need(
    "Tell why a migration fails",
    on("", "events", list="repeat what KubeVirt and the scheduler have said"),
    on("", "pods", list="repeat why no node takes its target pod"),
)

EVICT = need(
    "Evict pods",
    on("", "pods", list="find them, and what comes instead"),
    on("", "pods/eviction", create="let a pod leave with respect for its disruption budgets"),
)

INTERRUPT = need(
    "Restart or stop VMs by a policy",
    on(
        _KUBEVIRT,
        _VMIS,
        delete="end a VM that is started anew by itself",
        get="see whether it has ended",
        list="see which VM a replica set has put in its place",
    ),
    on("", "nodes", patch="note on it which VMs are stopped for it"),
    on(_KUBEVIRT, _VMS, get="see how a VM is started again", patch="mark a VM that is stopped for a node"),
    on(_KUBEVIRT, _REPLICA_SETS, get="see what replaces a VM", patch="mark one whose VM is stopped for a node"),
    on(_ACTS, "virtualmachines/stop", update="stop a VM until its node is back"),
    on(_ACTS, "virtualmachines/restart", update="restart a VM that only starts on request"),
)

START = need(
    "Start what was stopped for a node",
    on("", "nodes", get="find what was stopped for it", patch="forget what runs again"),
    on("", "pods", list="tell why a VM gets no node"),
    on(_KUBEVIRT, _VMIS, get="see whether the VM runs", list="see whether a replica set has its VM back"),
    on(_KUBEVIRT, _VMS, get="see how it ran", list="find those that were stopped", patch="let it run as before"),
    on(
        _KUBEVIRT,
        _REPLICA_SETS,
        get="see whether it is complete",
        list="find those with a VM that was stopped",
        patch="take the mark off",
    ),
    on(_ACTS, "virtualmachines/start", update="start a VM that only starts on request"),
)

WITHDRAW = need(
    "Withdraw evacuations",
    on(_KUBEVIRT, _VMIS, get="see what is to leave", list="find VMs on a node that KubeVirt wants to evacuate"),
    # The API server judges by the first part of the subresource's path, virt-api by all of it.
    on(_ACTS, "virtualmachineinstances/evacuate", update="let a VM stay that KubeVirt is evacuating"),
    on(_ACTS, "virtualmachineinstances/evacuate/cancel", update="let a VM stay that KubeVirt is evacuating"),
)

CANCEL = need(
    "Cancel migrations",
    on(_KUBEVIRT, _VMIS, get="see where a VM stays"),
    on(
        _KUBEVIRT,
        _MIGRATIONS,
        delete="cancel a migration",
        get="see whether it is undone",
        list="find what is under way",
    ),
)

FIND_NODES = need("Find the nodes of a run", on("", "nodes", list="find those that carry its mark"))
