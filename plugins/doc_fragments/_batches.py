# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """How nodes are put into batches; see module_utils/_planner/plan_options.py."""

    DOCUMENTATION = r"""
options:
  nodes:
    description:
      - Names of nodes, which are put into batches as O(batch), O(order) and O(batch_constraints) say.
      - With O(plan) they have to be those that it maintains, in whatever order.
    type: list
    elements: str
  batch:
    description:
      - How many of O(nodes) are out of service together at most, or which share of them, such as V(25%).
      - A share is of all nodes that the run has, also of those that are done. It is rounded down, but at least 1.
      - More than V(100%), or than the run has nodes, is refused. Nodes that the run is done with count, also where they
        are not named any more.
      - With V(auto) a batch is as large as costs no migration more, and never larger than what fills KubeVirt's limits
        for migrations at the same time.
      - With O(order=free) a batch is smaller where that many nodes cannot be emptied together.
      - Whatever the order, two nodes do not come into one batch if it would have all that runs of KubeVirt's
        C(virt-api), or of its C(virt-controller), as nothing is migrated without one of each. A node that has all of
        one is alone in its batch.
    type: str
    default: "1"
  order:
    description:
      - With V(free) the order of the nodes, and which are in a batch together, is chosen such that each batch can be
        emptied, with as few migrations as possible.
      - With V(given) it is that of O(nodes).
      - In either order nodes that the run has taken already come before all others, whatever V(first), V(last) and
        V(together) of O(batch_constraints) say, as they are out of service.
    type: str
    choices: [free, given]
    default: given
  batch_constraints:
    description: What holds for all batches that are made of O(nodes).
    type: dict
    suboptions:
      apart:
        description: Keys of labels. Of the nodes with the same value of such a label one at a time is out of service.
        type: list
        elements: str
        default: []
      together:
        description: Key of a label. All nodes with one value of it are done before those with another value.
        type: str
      first:
        description: Names of nodes that are maintained before all others.
        type: list
        elements: str
        default: []
      last:
        description: Names of nodes that are maintained after all others.
        type: list
        elements: str
        default: []
  room:
    description:
      - How many VMs on nodes that stay in service may be migrated, in all, so that a VM that would find no node gets
        its place. It is done only where a VM would stay on its node or be interrupted without it, whatever the order
        that O(order) allows, and each of these migrations says in RV(lines) for whose sake it is.
    type: int
    default: 0
  reserve:
    description:
      - What may fail while a batch is out of service. There has to be memory for its VMs then on the nodes that are
        left, once the batch is empty. RV(totals) has in C(batch_reserves) how many bytes would be left.
      - V(largest_node) is the node that the VMs of which would leave the least, V(zone) the zone, by the label
        C(topology.kubernetes.io/zone). A node without that label stands for itself. With V(none) nothing is asked for,
        and RV(totals) tells of nodes.
      - It is an estimate, by the memory that is free on nodes to which KubeVirt schedules VMs. Rules among VMs, and in
        how small pieces memory is free, are not looked at.
      - With O(order=free) a batch is smaller where that keeps the reserve. One that leaves too little all the same
        stands against the plan, as what cannot leave does, and is not begun.
    type: str
    choices: [none, largest_node, zone]
    default: none
"""
