# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of the API: what a cluster holds, parsed once, and the snapshot that holds all of it.

objects.py              the shapes in which objects travel, who makes them, what they can be named, and shared words
invalid_request.py      the exception of what is asked for and cannot be meant so
expected.py             what all errors have in common about what was given; a Python library that is missing
printable.py            text that anybody may have written, for a terminal
quantity.py             amounts such as 250m and 1.5Gi as exact integers
arrays.py               the one door to NumPy
selectors.py            label selectors and node selector terms
affinity.py             terms of pod affinity and anti-affinity
taints.py               taints and tolerations
resources.py            what pods request and nodes offer, in which unit
storage.py              claims, volumes, storage classes and the CSI objects
csi_migration.py        volumes of built-in types that CSI drivers have taken over
node.py                 a node as the scheduler sees it
occupant.py             what a pod means to the others, such as what it takes of its node, and its volumes
pod.py                  a pod that is to be placed, with its topology spread constraints
migratability.py        KubeVirt's own word on whether a VMI can be migrated
migration.py            a migration as KubeVirt's API tells of it
run_strategy.py         when a VirtualMachine runs
disruption_budget.py    whether a disruption budget lets a pod be evicted now
cordon.py               who made a node unschedulable, and who is done with it
leases.py               Leases: of a node, for its maintainers, and of a run, for which invocation of it may act
stopped_mark.py         the mark on what was stopped for a node, and the note of it on the node
shapes.py               of which types the fields of an object are: a small language
shapes_core.py          the types of what is read of nodes, pods and namespaces
shapes_instance_types.py  the types of what is read of instance types and preferences
shapes_kubevirt.py      the types of what is read of KubeVirt's objects
shapes_storage.py       the types of what is read of claims, volumes and CSI objects
snapshot.py             a cluster as a value: lists of objects, from a file or in plain form
snapshot_kinds.py       the lists of a snapshot, and where the API serves them
snapshot_format.py      the snapshot's file, decoded so that equal parts are one object
snapshot_diff.py        how two snapshots differ, in a few lines
projection.py           which fields of an object are kept: a small language
projection_core.py      what is kept of nodes, pods and namespaces
projection_kubevirt.py  what is kept of KubeVirt's objects
projection_instance_types.py  what is kept of instance types, preferences and what VMs have stored of them
secret_fields.py        where a secret can stand in a VMI: snapshots and results use it
projection_storage.py   what is kept of claims, volumes and CSI objects
drained_pod.py          what a drain makes of a pod
prospect.py             a VMI that is wanted elsewhere, and what the cluster says to that
replacement.py          pods that come in place of evicted ones
"""

from __future__ import annotations
