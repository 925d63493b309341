# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """What plugin_utils/_drain_plan.py is told of where VMs may go, and of pods that may not go."""

    DOCUMENTATION = r"""
options:
  avoid:
    description: Names of nodes that VMs go to only if they fit nowhere else, such as those to be drained next.
    type: list
    elements: str
    default: []
  targets:
    description: Nodes for VMs that may go nowhere else, by V(namespace/name) of the VirtualMachineInstance.
    type: dict
    default: {}
  delete_emptydir_data:
    description:
      - Whether pods may be evicted that keep data in C(emptyDir) volumes, which is lost with them. With V(false) they
        make the drain infeasible.
      - Without it nothing is said of them but in RV(_value.pods[].needs).
    type: bool
  force:
    description:
      - Whether pods may be evicted that no controller would create anew. With V(false) they make the drain infeasible.
      - Without it nothing is said of them but in RV(_value.pods[].needs).
    type: bool
"""

    # What the plan of node_drain's own is asked for.
    NODE = r"""
options:
  avoid:
    description: Names of nodes that VMs go to only if they fit nowhere else, such as those to be drained next.
    type: list
    elements: str
    default: []
  delete_emptydir_data:
    description: Whether pods may go that have C(emptyDir) volumes, whose data is lost then.
    type: bool
    default: false
  force:
    description: Whether pods may go that no controller would replace.
    type: bool
    default: false
  option_prefix:
    description: What the names of such options begin with where errors name them, for a role whose variables they are.
    type: str
    default: ""
"""
