# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replica sets of VMs as a task words them, and where their VMs would go.

replica_set.py         the replica set that a task wants, laid over what is there
placement.py           from a few words on where VMs may run to the fields of a VMI
placement_problems.py  what is wrong with those words
canonical.py           what a spec states, and one form for all ways of saying the same
secrets.py             what guests are told in confidence stays out of results
outlook.py             its VMIs as they are now, and what is missing, outdated, and fits nowhere
forecast.py            where kube-scheduler would put what is to come
"""

from __future__ import annotations
