# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on the controller only, shared by actions, filters and tests.

_cluster_action.py  what the controller does for a module that talks to a cluster: its kubeconfig, its news
_kubeconfig.py      what is meant by a kubeconfig: a path, a mapping, or the text of one
_progress.py        shows what a module tells while it runs
_scoreboard.py      one line of totals for all drains that go on at once
_drain_plan.py      plans of drains for what a template gives
_variables.py       variables of roles and playbooks: their names, and what their values mean
_once.py            what is made of a snapshot, once for all the calls of a task
_node_source.py     nodes for an inventory, from the API or from a cache, and their texts as variables
"""

from __future__ import annotations
