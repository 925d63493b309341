# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's life outside migrations: it starts, it shuts down, it dies with its machine."""

from __future__ import annotations

from typing import Any

from testbed.simulator import migratable
from testbed.simulator.changes import Decision
from testbed.simulator.facts import Vmi, timestamp
from testbed.simulator.fault import GUEST_SHUTDOWN
from testbed.simulator.situation import Situation, guest_pod, vmi_change

# There is no SELinux here; without any value virt-controller refuses to make a migration's target pod.
SELINUX = "none"


def phase(vmi: Vmi, phase: str, now: float) -> dict[str, Any]:
    """The part of a VMI's status that a change of phase writes."""
    transitions = list(vmi.status.get("phaseTransitionTimestamps") or [])
    transitions.append({"phase": phase, "phaseTransitionTimestamp": timestamp(now)})
    return {"phase": phase, "phaseTransitionTimestamps": transitions}


def interfaces(vmi: Vmi) -> list[dict[str, Any]]:
    """All of them are there from the start: virt-controller would migrate a guest to plug in one that is missing."""
    known = {entry.get("name"): entry for entry in vmi.status.get("interfaces") or []}
    names = [entry["name"] for entry in (vmi.spec["domain"].get("devices") or {}).get("interfaces") or []]
    return [{**known.get(name, {}), "name": name, "infoSource": "domain"} for name in names]


def start(situation: Situation, vmi: Vmi) -> Decision | None:
    """virt-controller has handed the VMI over to the node: start the guest."""
    pod = guest_pod(situation, vmi)
    if vmi.phase != "Scheduled" or vmi.deleting or not situation.host(vmi.node).handled:
        return None
    if pod is None or not pod.live:
        return (
            None
            if pod is None or not pod.over
            else finished(situation, vmi, "Failed", "virt-launcher died before the start")
        )
    fresh = migratable.conditions(vmi)
    kinds = {condition["type"] for condition in fresh}
    status = {
        **phase(vmi, "Running", situation.now),
        "conditions": [condition for condition in vmi.conditions if condition["type"] not in kinds] + fresh,
        "migrationMethod": migratable.method(vmi),
        "interfaces": interfaces(vmi),
        "selinuxContext": SELINUX,
    }
    return Decision(vmi_change(vmi, {"status": status}, f"guest started on {vmi.node}"))


def ending(situation: Situation, vmi: Vmi) -> tuple[str, str] | None:
    """The phase in which the guest has ended or is to end now, and why; None while it runs on."""
    pod = guest_pod(situation, vmi)
    if pod is None:
        return None  # then the phase is virt-controller's to set
    if pod.over:
        return "Failed", "the guest died with its pod"
    if pod.deleting:
        return "Succeeded", "guest shut down because its pod is being deleted"
    fault = situation.faults.for_vmi(GUEST_SHUTDOWN, vmi, situation.now)
    # A guest that was started again after the fault came into force is another one.
    if fault and vmi.created <= fault.since:
        return "Succeeded", "guest shut down"
    return None


def end(situation: Situation, vmi: Vmi) -> Decision | None:
    """Report that the guest is no more. Never during a migration: that has to be over first."""
    migrating = vmi.migration is not None and bool(vmi.migration.started) and not vmi.migration.done
    if vmi.phase != "Running" or migrating or not situation.host(vmi.node).handled:
        return None
    ended = ending(situation, vmi)
    return finished(situation, vmi, *ended) if ended else None


def finished(situation: Situation, vmi: Vmi, into: str, why: str) -> Decision:
    return Decision(vmi_change(vmi, {"status": phase(vmi, into, situation.now)}, f"{into}: {why}"))
