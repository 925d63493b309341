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
