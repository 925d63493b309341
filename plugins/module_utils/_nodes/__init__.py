# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of nodes that say where they are: what a task wants, and what has to be written for it.

keys.py      keys of labels: which say where a node is, which are out of date, which belong to others
rules.py     labels derived from a Node object by JMESPath expressions
topology.py  which labels a task wants on which node, what has to be written for that, and what stays wanting
"""

from __future__ import annotations
