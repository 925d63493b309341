# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-scheduler's filter plugins, each named as upstream names it, in snake case; in the order in which they run.

registry.py                the filters that run, in their order
node_unschedulable.py      cordoned nodes
node_name.py               pods that name their node
taint_toleration.py        taints that keep a pod out
node_affinity.py           node selector and required node affinity
node_ports.py              host ports
node_resources_fit.py      free resources, and the number of pods
volume_restrictions.py     disks and claims that pods cannot share
node_volume_limits.py      how many volumes a CSI driver can attach to a node
volume_binding.py          claims, and the volumes that they have or will get
volume_zone.py             zones and regions in the labels of bound volumes
pod_topology_spread.py     spreading over domains
inter_pod_affinity.py      pods that want others near, or far
node_declared_features.py  features that a kubelet must have
"""

from __future__ import annotations
