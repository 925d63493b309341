# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as hosts of an inventory: which, under which names, in which groups, and what is told of them.

hosts.py      the hosts of nodes: which are meant, their names, and their variables
addresses.py  names and addresses under which nodes say that they are reached, and which of them are to be believed
groups.py     the groups in which a node is by what it is, without being asked for more
"""

from __future__ import annotations
