# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes something: each verb asks first whether it is done already, or is guarded by what it was asked for.

carrying_out.py  carries commands out, each as often as it may come
migrations.py    create, find and cancel migrations
cancellation.py  cancel the unfinished migrations of some VMIs
evacuations.py   withdraw what an eviction has made KubeVirt do
machines.py      stop, start and restart VMs through what brings them back
replica_sets.py  find, test, write and delete replica sets
nodes.py         read and write whole Node objects
namespaces.py    create an object in a namespace that may be missing
tokens.py        make tokens of service accounts, and tell what one is for
leases.py        read, write and delete Leases, and take and renew those of nodes
maintenance.py   cordon a node with an owner, and undo just that
run_lease.py     hold a run for one invocation of it, and see that it is still held
renewer.py       renews the Leases of a run as long as its ansible-playbook lives
run_store.py     what a run has to remember, kept in the cluster
run_memory.py    lets a run remember something while a task works
"""

from __future__ import annotations
