# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All disturbances by name."""

from __future__ import annotations

from collections.abc import Mapping

from faults.disturbances import machines, nodes, parts, people, processes, wire
from faults.disturbances.contract import Disturbance

ALL: Mapping[str, Disturbance] = {
    disturbance.__name__: disturbance
    for disturbance in (
        processes.killed,
        processes.terminated,
        processes.interrupted,
        processes.one_worker_killed,
        processes.paused,
        processes.disk_full,
        people.uncordoned,
        people.cordoned,
        people.drained_by_somebody,
        people.under_medik8s,
        people.leases_deleted,
        people.memory_deleted,
        people.same_run_again,
        people.another_run,
        machines.migration_deleted,
        machines.migrations_fail,
        machines.migrated_by_somebody,
        machines.pod_evicted,
        machines.guests_slow,
        machines.guests_never_converge,
        machines.guest_shut_down,
        machines.vm_created,
        machines.vm_deleted,
        machines.vm_stopped,
        machines.vm_relabelled,
        nodes.source_lost,
        nodes.target_lost,
        nodes.flaps,
        nodes.handler_silent,
        nodes.tainted,
        nodes.relabelled,
        parts.server_away,
        parts.server_ended,
        parts.server_frozen,
        parts.controller_away,
        parts.controller_frozen,
        parts.virt_api_frozen,
        parts.scheduler_frozen,
        wire.server_troubled,
        wire.answers_lost,
        wire.watches_dropped,
        wire.token_rotated,
        wire.token_expired,
    )
}
