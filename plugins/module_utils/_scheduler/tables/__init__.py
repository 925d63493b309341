# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the state keeps about all nodes and pods at once, in arrays and counts that follow every change.

node_table.py       all nodes side by side: an array for each label, each resource, each question; domains of nodes
pod_table.py        the pods on the nodes, and how many of each kind that was asked for are on each
labels.py           the values that one label has on many objects, and selectors filed under labels they require
term_owners.py      the affinity terms of the pods on the nodes
owner_selectors.py  which pods belong together by default: those of one service or controller
usage.py            what pods take of their nodes: resources, host ports, disks, claims and CSI volumes
storage_table.py    claims, volumes, classes and CSI objects by name
"""

from __future__ import annotations
