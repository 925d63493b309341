# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What KubeVirt would do with a VM: which pods it makes, whether and when it migrates, and how it ends.

configuration.py     KubeVirt's configuration, with its own defaults
labels.py            labels by which KubeVirt finds nodes and pods, and all those of launcher pods
workloads.py         VMs, VMIs, their replica sets and their pods, indexed
namespaces.py        what shapes the pods of a namespace
instance_types/      what instance types and preferences make of a VM when it starts
launcher/            the launcher pod of a VMI that does not run yet
node_selector.py     the node selector of launcher pods
affinity.py          their affinity, and when it counts the VM's own pod
migration_target.py  the pod of a migration, or why there can be none
target_resources.py  its containers and their sizes
container_disks.py   the very images that the guest was started from
next_pod.py          the next pod of a VM: of its migration, or of its start, and why that is refused
blockers/            what stands against a migration before the scheduler is asked
migration_rules.py   why a VMI cannot be migrated as wanted
migration_policy.py  on which terms a VMI is migrated
migration_course.py  how long its migration takes, and what happens when that is too long
queue.py             which migrations wait for which, and how long they take under the caps
eviction.py          what a drain is to do with it, and what becomes of an eviction of its pod
successors.py        who starts it again when it has ended, and the pods that come in the place of others
fitness.py           whether a node is fit for VMs, and what keeps it from them
fate.py              all that together: what a drain, an eviction or a lost node does to a VM
"""

from __future__ import annotations
