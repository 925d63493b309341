# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at the cluster, and files of them. Nothing is changed here.

objects.py          nodes, migrations, VMIs and their owners, found by name or node
waiting.py          looks again until it is enough, or no time is left
snapshot.py         reads the cluster into a document, or only what matters to the place of a pod
snapshot_file.py    snapshot files
plan_file.py        plan files
inquiries.py        answers to the reducer's questions that watches do not give, such as why a migration has failed
observer.py         looks at what is on nodes and at a run's migrations, by watches
migration_looks.py  looks at VMIs that are wanted elsewhere, with as few permissions as that takes
move_looks.py       looks at pods that are evicted and VMIs that migrate, only while either is under way
landings.py         looks at where pods come up again that are evicted, and VMs that were stopped
replicas.py         the VMIs of a replica set, watched
"""

from __future__ import annotations
