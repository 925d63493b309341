# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """What plugin_utils/_drain_plan.py is told of VMs that cannot be migrated."""

    DOCUMENTATION = r"""
options:
  policies:
    description:
      - What is to happen to VMs that cannot be migrated. The first entry that matches a VM counts, and an entry
        matches when all of its conditions do. VMs without a match make the drain infeasible, as with V(fail).
    type: list
    elements: dict
    default: []
    suboptions:
      selector:
        description: Labels that the VirtualMachineInstance must have.
        type: dict
      expression:
        description: A JMESPath expression that must be true of the VirtualMachineInstance object.
        type: str
      policy:
        description:
          - With V(fail) the drain is infeasible.
          - With V(restart) the VM is shut down and its owner starts it on another node. The drain is infeasible if it
            fits none, or if its owner would not start it.
          - With V(stop) the VM is shut down until its node is back. The owner of a replica starts another one at once,
            which waits unless it fits elsewhere. A VirtualMachineInstance without an owner stays, as nothing would
            bring it back.
        type: str
        choices:
          - fail
          - restart
          - stop
        required: true
"""

    # As node_drain carries them out.
    DRAIN = r"""
options:
  policies:
    description:
      - What happens to VMs that cannot be migrated, or whose migrations have failed. The first rule that matches a VMI
        counts, for one that matches none it is V(fail).
      - A VM that only cannot be migrated for now, as it is backed up for example, is waited for, whatever its policy.
      - What KubeVirt says of a VM is looked at again when its turn comes. One that can be migrated by then, and was
        not told to end yet, is planned anew, and interrupted only if no node takes it.
      - A rule without O(policies[].selector) and O(policies[].expression) matches every VMI.
    type: list
    elements: dict
    default: []
    suboptions:
      selector:
        description: Labels that the VMI must have.
        type: dict
      expression:
        description: A JMESPath expression that must be true of the VMI.
        type: str
      policy:
        description:
          - V(fail) leaves the VM alone and does not drain the node.
          - V(restart) ends the VM, for its VirtualMachine or replica set to start it elsewhere, and sees that it runs.
          - V(stop) ends the VM until the node is back. A VirtualMachine is stopped, and marked by the annotation
            C(virtops.kubevirt/stopped-for) to be started by O(state=restored). The node notes it as well, by
            C(stopped.virtops.kubevirt/) and the uid, for the case that somebody replaces the VirtualMachine meanwhile.
          - Of a replica set the VMI is deleted, and the replica set is marked as well. The one in its place starts at
            once where it fits, and waits if it fits nowhere.
          - What starts elsewhere starts where the scheduler puts it. If that is a node that is maintained later, it is
            ended there once more.
        type: str
        choices: [fail, restart, stop]
        required: true
"""
