# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler, virt-launcher and the guests of a testbed, simulated against the real control plane.

Pure, without I/O, clock or randomness of their own:

- facts.py       what is read of a VMI, a pod and a node
- fault.py       the faults people inject, and which of them concern a VMI, a migration or a node now
- course.py      how long a migration takes and how it ends, as virt-launcher's monitor would see it
- situation.py   all that is known about one VMI at one moment
- changes.py     what the simulator can do to the cluster, as values
- guest.py, migrating.py, launchers.py   the rules, each giving the next change to a VMI or to one of its pods
- node_agent.py  the rules for a node: heartbeat, outage, boot
- machine.py     the rules in order

The rest does what they say: client.py (HTTP, list and watch), world.py (what was seen last), writer.py (changes to
requests), loop.py (when to decide again).

The behaviour follows KubeVirt v1.8.4: pkg/virt-handler, pkg/virt-launcher/virtwrap/live-migration-source.go.
"""
