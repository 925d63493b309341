# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the rules of a cluster: lists in, findings out.

problem.py     what is wrong with which object, as values
contract.py    what a rule is, and what it finds
lint.py        which rules run, and in which order findings come
rules/         one file a rule, and registry.py with their order
cluster.py     what rules look at: the lists, and what several rules need computed from them, once
workloads.py   pods and VMs by the object that one would edit to change them
placement.py   the parts of a pod's specification that decide where it may run, each with its place in it
domains.py     labels that make domains of nodes, outdated or mistaken, and rules that have no domain
trials.py      migrations tried in the scheduler's model, with what stands against them
population.py  pods and what templates would make, by their labels
covered.py     disruption budgets with the pods they count
words.py       words that several rules share
"""

from __future__ import annotations
