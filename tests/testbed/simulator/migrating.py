# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration after its hand-over by virt-controller: what the virt-handlers of both nodes report, step by step.

Each function below is one state and gives the step out of it, so that no step can come before the one it follows:

    handed over -> prepared -> started -> received -> switched -> completed -> cleaned up
                                      `-> failed -> cleaned up

A virt-handler that does not work reports nothing; a guest whose machine is off does nothing.
"""

from __future__ import annotations

import math
from typing import Any

from testbed.simulator import course, guest, plugged
from testbed.simulator.changes import Decision
from testbed.simulator.course import POST_COPY, Course
from testbed.simulator.facts import (
    EVICTION_SOURCE,
    MIGRATION_TARGET_NODE,
    NODE_NAME,
    OUTDATED_LAUNCHER,
    Migration,
    Vmi,
    timestamp,
)
from testbed.simulator.fault import (
    HANDOFF,
    MIGRATION_STALL,
    NEVER_CONVERGES,
    RUNNING,
    SLOW_MIGRATION,
    TARGET_READY,
    Fault,
)
from testbed.simulator.situation import Situation, vmi_change

# Ports on which a target's virt-handler listens, and what they lead to.
PORTS = {"49152": 0, "49153": 49152, "49154": 49153}
# A guest that never converges dirties its memory so many times faster than the link carries it.
DIRTY = 1.5
# libvirt gives a silent peer up after so many (simulated) seconds.
KEEPALIVE = 30.0
# A stalled connection stalls after this share of the copying, an injected failure comes between these two.
STALL_AT, FAIL_FROM, FAIL_TO = 0.5, 0.2, 0.8

ABORTED = "Live migration aborted "
INJECTED = "virError(Code=9, Domain=10, Message='operation failed: migration out job: unexpectedly failed')"
NOT_STARTED = "virError(Code=38, Domain=7, Message='unable to connect to the destination: Connection refused')"
HANDOFF_FAILED = "virError(Code=9, Domain=10, Message='operation failed: domain failed to resume on the destination')"
PEER_LOST = "virError(Code=39, Domain=7, Message='internal error: connection closed due to keepalive timeout')"
GUEST_GONE = "virError(Code=55, Domain=10, Message='Requested operation is not valid: domain is not running')"


def migrate(situation: Situation, vmi: Vmi) -> Decision | None:
    """The next step of the VMI's current or last migration; None when there is none to take."""
    migration = vmi.migration
    if migration is None or not migration.uid or vmi.final:
        return None
    if migration.done:
        return clean_up(situation, vmi)
    if vmi.phase != "Running":
        return None
    if migration.started:
        return in_flight(situation, vmi, migration)
    return begin(situation, vmi, migration) if migration.prepared else prepare(situation, vmi, migration)


def step(vmi: Vmi, says: str, state: dict[str, Any], **more: Any) -> Decision:
    """A change of `status.migrationState`, and of whatever else."""
    status = {"migrationState": state, **more.pop("status", {})}
    assert vmi.migration is not None
    return Decision(vmi_change(vmi, {"status": status, **more}, f"migration to {vmi.migration.target_node} {says}"))


def failed(situation: Situation, vmi: Vmi, reason: str, **state: Any) -> Decision:
    """The source reports the end; it leaves `completed` alone, which only a target sets."""
    state = {"failed": True, "endTimestamp": timestamp(situation.now), "failureReason": reason, **state}
    status = {}
    if vmi.migration and vmi.migration.mode == POST_COPY:
        # Half of the guest's memory is on either side: it cannot go on anywhere.
        status = guest.phase(vmi, "Failed", situation.now)
    return step(vmi, f"failed: {reason}", state, status=status)


def prepare(situation: Situation, vmi: Vmi, migration: Migration) -> Decision | None:
    target = situation.host(migration.target_node)
    pod = situation.pod(migration.target_pod)
    asked = vmi.labels.get(MIGRATION_TARGET_NODE) == migration.target_node
    if not asked or not target.handled or pod is None or not pod.live:
        return None
    address = target.address or "127.0.0.1"
    return step(vmi, "prepared", {"targetNodeAddress": address, "targetDirectMigrationNodePorts": PORTS})


def begin(situation: Situation, vmi: Vmi, migration: Migration) -> Decision | None:
    if not situation.host(migration.source_node).handled or guest.ending(situation, vmi):
        return None
    state = {"startTimestamp": timestamp(situation.now), "mode": course.PRE_COPY}
    if situation.faults.for_migration(TARGET_READY, vmi, situation.now, situation.occasion(vmi)):
        return failed(situation, vmi, NOT_STARTED, **state)
    planned = course_of(situation, vmi, migration)
    return step(vmi, f"started, {vmi.memory / 2**30:.1f} GiB in {planned.end:.1f} s", state)


def course_of(situation: Situation, vmi: Vmi, migration: Migration) -> Course:
    """The course of the migration under the faults in force."""
    occasion = situation.occasion(vmi)

    def fault(kind: str) -> Fault | None:
        return situation.faults.for_vmi(kind, vmi, situation.now, occasion)

    slow = fault(SLOW_MIGRATION)
    limits = course.limits(migration.configuration, vmi.memory, slow.factor if slow else 1.0)
    copying = vmi.memory / limits.link
    stalls_at = STALL_AT * copying if fault(MIGRATION_STALL) else math.inf
    dirty_rate = DIRTY * limits.link if fault(NEVER_CONVERGES) else 0.0
    planned = course.plan(course.Guest(vmi.memory, dirty_rate, stalls_at), limits)
    failure = situation.faults.for_migration(RUNNING, vmi, situation.now, occasion)
    if failure is None:
        return planned
    share = FAIL_FROM + (FAIL_TO - FAIL_FROM) * situation.faults.draw(failure, f"{occasion} when")
    return course.cut(planned, share, copying, INJECTED)


def in_flight(situation: Situation, vmi: Vmi, migration: Migration) -> Decision | None:
    source, target = situation.host(migration.source_node), situation.host(migration.target_node)
    planned = course_of(situation, vmi, migration)
    elapsed = situation.elapsed(migration)
    if migration.switched and (migration.mode != POST_COPY or elapsed >= planned.end):
        return complete(situation, vmi, migration) if target.handled else None
    if not source.on:
        # The guest died with the machine, which its virt-handler tells when it is back; in post-copy the target knows.
        postcopy = migration.mode == POST_COPY and target.handled
        return failed(situation, vmi, PEER_LOST) if postcopy else None
    broken = breaks(situation, vmi, migration)
    if broken:
        return broken if source.handled else None
    return proceed(situation, vmi, migration, planned, elapsed)


def breaks(situation: Situation, vmi: Vmi, migration: Migration) -> Decision | None:
    """The source's report that the migration failed, or its wait until it is sure; None while all goes well."""
    if guest.ending(situation, vmi):
        return failed(situation, vmi, GUEST_GONE)
    if migration.abort_requested and not migration.abort_status:
        return abort(situation, vmi, migration)
    pod = situation.pod(migration.target_pod)
    if pod is None or pod.over:
        return failed(situation, vmi, PEER_LOST)
    target = situation.host(migration.target_node)
    if not target.on:
        noticed = target.off_since + KEEPALIVE / situation.faults.scale
        return failed(situation, vmi, PEER_LOST) if situation.now >= noticed else Decision(wake=noticed)
    return None


def abort(situation: Situation, vmi: Vmi, migration: Migration) -> Decision:
    if migration.mode == POST_COPY:
        return step(vmi, "cannot be aborted: the guest already runs on the target", {"abortStatus": "Failed"})
    return failed(situation, vmi, ABORTED, abortStatus="Succeeded")


def proceed(situation: Situation, vmi: Vmi, migration: Migration, planned: Course, elapsed: float) -> Decision | None:
    """The next report of a migration that goes its way."""
    source, target = situation.host(migration.source_node), situation.host(migration.target_node)
    if not migration.received:
        return step(vmi, "received", {"targetNodeDomainDetected": True}) if target.handled else None
    if elapsed >= planned.switch and migration.mode != planned.mode:
        return step(vmi, f"goes on as {planned.mode}", {"mode": planned.mode}) if source.handled else None
    if elapsed >= planned.end and planned.failure:
        status = {"abortStatus": "Succeeded"} if planned.aborted else {}
        return failed(situation, vmi, planned.failure, **status) if source.handled else None
    if elapsed >= planned.end and situation.faults.for_migration(HANDOFF, vmi, situation.now, situation.occasion(vmi)):
        return failed(situation, vmi, HANDOFF_FAILED) if source.handled else None
    if (elapsed >= planned.end or migration.mode == POST_COPY) and not migration.switched:
        state = {"targetNodeDomainReadyTimestamp": timestamp(situation.now)}
        return step(vmi, "switched over", state) if target.handled else None
    following = planned.switch if elapsed < planned.switch < planned.end else planned.end
    return Decision(wake=situation.moment(migration, following))


def progress(situation: Situation, vmi: Vmi) -> float | None:
    """The share of the current migration's time that has passed; None when none is in flight."""
    migration = vmi.migration
    if migration is None or not migration.started or migration.done or vmi.final:
        return None
    return min(1.0, situation.elapsed(migration) / max(course_of(situation, vmi, migration).end, 1e-9))


def complete(situation: Situation, vmi: Vmi, migration: Migration) -> Decision:
    """The target takes the VMI over."""
    status: dict[str, Any] = {
        "nodeName": migration.target_node,
        "evacuationNodeName": None,
        "launcherContainerImageVersion": None,
        "migrationTransport": "Unix",
    }
    arrived, labels = plugged.arrived(vmi)
    status |= arrived
    overhead = migration.raw.get("targetMemoryOverhead")
    if overhead is not None:
        status["memory"] = {**status.get("memory", {}), "memoryOverhead": overhead}
    return step(
        vmi,
        "completed",
        {"endTimestamp": timestamp(situation.now), "completed": True},
        status=status,
        metadata={
            "labels": {NODE_NAME: migration.target_node, OUTDATED_LAUNCHER: None, **labels},
            "annotations": {EVICTION_SOURCE: None},
        },
    )


def clean_up(situation: Situation, vmi: Vmi) -> Decision | None:
    """The target forgets the migration; as long as the label stands, its virt-handler is still busy with it."""
    node = vmi.labels.get(MIGRATION_TARGET_NODE)
    if not node or not situation.host(node).handled:
        return None
    body = {"metadata": {"labels": {MIGRATION_TARGET_NODE: None}}}
    return Decision(vmi_change(vmi, body, f"target {node} cleaned up"))
