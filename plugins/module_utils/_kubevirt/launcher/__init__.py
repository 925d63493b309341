# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher pod of a VMI that does not run: what KubeVirt makes, as the API server stores it.

vmi.py             the VMI that a VM or a replica set would start, with defaults that KubeVirt's webhook gives it
traits.py          what several parts of the pod ask of a VMI
pod.py             the pod, put together
containers.py      its containers, in KubeVirt's order, and hooks that run beside the guest
resources.py       what the guest's container asks for
overhead.py        memory that is needed beside the guest's
devices.py         devices of the node's plugins
volumes.py         volumes that tie the pod to nodes, and images that a node may hold
admission.py       what the API server makes of the pod
open_questions.py  what the lists do not tell of it: never silently
"""

from __future__ import annotations
