# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What instance types and preferences make of a VM when it starts.

catalog.py      those that there are, and which of them a VM goes by
expansion.py    a VM with all that they give it, or why virt-api does not take it or KubeVirt does not start it
sizes.py        what an instance type sets, and what it cannot set as the VM does so itself
preferences.py  what a preference sets where the VM leaves it open
"""

from __future__ import annotations
