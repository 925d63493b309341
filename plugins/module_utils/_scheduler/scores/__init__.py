# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-scheduler's score plugins, which rank the nodes that fit.

registry.py                   the scores of each profile, with their weights
taint_toleration_score.py     fewer taints that one would rather avoid
node_affinity_score.py        preferred node affinity
pod_topology_spread_score.py  emptier domains first
inter_pod_affinity_score.py   preferred company
node_resources_fit_score.py   emptier, or fuller, nodes first
balanced_allocation.py        CPU and memory used alike
image_locality.py             nodes that have the pod's images
"""

from __future__ import annotations
