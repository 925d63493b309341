# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against a live migration, one rule a file, in the order in which KubeVirt would stumble over it.

contract.py         what a rule gets, what it tells, and what comes instead of a target pod that cannot be made
find.py             asks all rules about a VMI, out of the lists of a cluster
registry.py         the rules, in their order
state.py            it does not run
live_migratable.py  KubeVirt says itself that it cannot be migrated
in_flight.py        it is migrating already
evacuation.py       KubeVirt is about to migrate it
claims.py           no second node can use its claims
backup.py           it is being backed up
utility_volumes.py  volumes for dumps or backups are attached to it
launcher_pods.py    pods of an earlier migration are left
target_pod.py       no target pod can be made
limit_range.py      the namespace's limit ranges do not allow its target pod, or another new one
quota.py            the namespace's quotas do not allow a second pod, or another new one
hotplug.py          its hotplugged volumes cannot follow
added_selector.py   the VMI's own node selector outdoes the migration's
descheduler.py      somebody asked to leave it where it is
"""

from __future__ import annotations
