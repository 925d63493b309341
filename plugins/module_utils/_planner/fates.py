# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of the VMs of drained nodes if nobody follows the plan."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fate import Event, fate
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import MachineFates
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.residents import Machine


def machine_fates(machines: Iterable[Machine], cluster: Surroundings) -> tuple[MachineFates, ...]:
    """Of those that run there, by name. Raises `QuantityError`."""
    found = [_fates(machine, cluster) for machine in machines if not (machine.unknown or machine.arriving)]
    return tuple(sorted(found, key=lambda entry: (entry.namespace, entry.name)))


def _fates(machine: Machine, cluster: Surroundings) -> MachineFates:
    namespace, _slash, name = machine.key.partition("/")
    return MachineFates(
        namespace=namespace,
        name=name,
        node=machine.node,
        drain=fate(machine.vmi, Event.DRAIN, cluster),
        eviction=fate(machine.vmi, Event.EVICTION, cluster),
        node_failure=fate(machine.vmi, Event.NODE_FAILURE, cluster),
    )
