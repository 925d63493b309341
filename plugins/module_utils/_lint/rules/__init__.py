# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the linter, one a file, in the order in which the documentation lists them.

registry.py                       the rules, in their order
own_pod_blocks_migration.py       a VM's own pod stands against its migration
anti_affinity_fills_domains.py    anti-affinity has no domain left for a VM that has to move
partner_blocks_migration.py       required affinity is to pods that are nowhere else
single_eligible_node.py           a VM's node is the only one for it
host_name_in_selector.py          a VM is bound to nodes by name
cpu_on_single_host.py             only a VM's own host offers its CPU
no_room_elsewhere.py              no other node has room for a VM
node_overcommitted.py             the VMs of a node have no room on the others
spread_stops_drain.py             spread constraints keep a node from being emptied
several_rules_together.py         a VM has nowhere to go, for more than one reason
migration_times_out.py            a migration is given up before the memory is copied
drain_exceeds_window.py           a node is not drained within the time that there is
no_eviction_strategy.py           a drain shuts a migratable VM down
bridge_binding.py                 an interface on the pod network does not survive a migration
read_write_once_disk.py           only one node can have a disk at a time
not_live_migratable.py            KubeVirt does not migrate a VM for another reason than those two
topology_key_unknown.py           no node has a topology key
topology_key_partial.py           only some nodes have a topology key
node_selector_matches_nothing.py  no node meets a node selector or a required node affinity
pod_selector_matches_nothing.py   no pod meets a selector of affinity or spreading
deprecated_labels.py              Kubernetes has renamed a label
unknown_scheduler.py              nobody answers to the name of a scheduler
pdb_never_allows.py               a disruption budget refuses every eviction
pdb_blind_to_vms.py               a disruption budget cannot count VMs
pdbs_overlap.py                   several disruption budgets count a pod
pdb_matches_nothing.py            a disruption budget protects nothing
"""

from __future__ import annotations
