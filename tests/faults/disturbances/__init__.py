# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may happen to a run: each is one function, and says in a few words what it has done.

What begins with `nothing` has found nothing to disturb.

registry.py    all of them by name
contract.py    what each is given, and what some need
processes.py   the run's own processes, and the disk under them
people.py      others who work on the cluster, run by run or by hand
machines.py    VMs, their owners and their migrations
nodes.py       nodes that are lost, flap or change
parts.py       the control plane's parts
wire.py        what stands between the run and the API server
"""
