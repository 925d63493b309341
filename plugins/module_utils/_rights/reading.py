# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights to read what decides the placement of VMs: one for each kind of a snapshot."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS, Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Right, need

# By the kind's name in a snapshot.
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
