# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kube-scheduler's verdicts and scores for a pod, in a model of the cluster.

verdict.py    plain lists and a pod in, plain data out
framework.py  runs filters and scores in their order; the first filter that a node fails decides it
contract.py   what a plugin is: a filter, or a score
filters/      one file for each of kube-scheduler's filter plugins, and registry.py with their order
scores/       the same for what ranks the nodes that fit
state.py      the cluster, made from lists: nodes, storage, and pods that come and go (apply and undo)
tables/       the arrays and counts that the state keeps
"""

from __future__ import annotations
