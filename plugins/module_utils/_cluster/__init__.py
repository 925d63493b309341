# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only package that talks to a cluster, and to files. What carries plans out stands on looks and verbs.

transport/       the API and files: requests, lists, watches
looks/           looks at the cluster, which change nothing
verbs/           what changes something
plan_run.py      carry a plan out: look, let the reducer say what follows, do it, tell of it
drain.py         empty a node by a plan, and plan anew what does not come about
moves_run.py     carry out what only moves: VMIs, and pods whose replacements are waited for
starts.py        start the VMs again that were stopped for a node
run_traces.py    what a run has left in the cluster
undoing.py       undo that, where a run is given up
"""

from __future__ import annotations
