# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoilt input: each gets an answer or one clear error, soon.

grounds.py    inputs that are right: clusters and documents
spoiling.py   mistakes and malice, put into a value at random
doors.py      everything pure that takes a cluster
documents.py  everything pure that takes a document back
campaign.py   spoil, ask, and judge what comes out
"""
