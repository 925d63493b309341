# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection has to be allowed in a cluster, and why: one table, from which everything else is made.

The manifests in roles/access/files, the tables of docs/docsite/rst/rights.rst, what tasks ask for before they touch
anything, and what accounts are given come from here; `make generate` writes the files anew.

right.py    one verb on one resource, what several of them are needed for, and the rules and roles that grant them
needs.py    the rights to read what decides the placement of VMs, and to act, and why each
roles.py    which role and which module has which needs
account.py  the objects of a service account that has the rights of some roles, and of no others
"""

from __future__ import annotations
