# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people are shown of a plan, and of a run in the end.

plan_text.py  a plan as lines of text, action by action, also one by which things only move
obstacles.py  what stands against a plan, each cause once, and what would clear it
overview.py   a plan on one screen, its batches as a table, and in one sentence; which of its nodes can be maintained
departures.py what left each node of a batch, by what all of its drains have returned
run_text.py   a run as lines of text: how many left each node, and one by one what did not go well
"""
