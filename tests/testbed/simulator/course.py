# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a migration: when it ends and how, in simulated seconds after its start.

Follows virt-launcher's migration monitor (pkg/virt-launcher/virtwrap/live-migration-source.go in KubeVirt v1.8.4): its
timeouts, the order in which it looks at them, and its words. The copying itself is QEMU's pre-copy: pass after pass,
each carrying what the guest has dirtied during the one before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from testbed.simulator.facts import Raw
from testbed.simulator.quantity import number

# Without a limit in the migration configuration the network is the limit: 10 Gbit/s.
LINK = 1.25e9
# QEMU ends the copying when the rest takes no longer than this with the guest stopped.
DOWNTIME = 0.3
# A guest that dirties this share of what the link carries, or more, never gets to the end.
HOPELESS = 0.99
# Auto-converge (QEMU's defaults): share of CPU time taken from the guest from the third pass on, and growth per pass.
THROTTLE_AFTER, THROTTLE_FIRST, THROTTLE_STEP, THROTTLE_MAX = 2, 0.2, 0.1, 0.99

PRE_COPY, POST_COPY, PAUSED = "PreCopy", "PostCopy", "Paused"
STUCK = "Live migration stuck for {:.0f} seconds and has been aborted"
TOO_SLOW = "Live migration is not completed after {:.0f} seconds and has been aborted"


@dataclass(frozen=True)
class Limits:
    """A migration configuration. Seconds and bytes per second; a timeout of 0 never comes."""

    link: float
    completion_timeout: float
    progress_timeout: float
    auto_converge: bool
    post_copy: bool
    workload_disruption: bool


@dataclass(frozen=True)
class Guest:
    """What is copied: bytes of memory, bytes dirtied per second, and when (if ever) the connection stalls."""

    memory: float
    dirty_rate: float = 0.0
    stalls_at: float = math.inf


@dataclass(frozen=True)
class Course:
    """Seconds after the start, infinite for never.

    From `switch` on `mode` instead of pre-copy; at `end` success or, when `failure` is not empty, failure for that
    reason: by the monitor's own decision when `aborted`.
    """

    end: float
    failure: str = ""
    aborted: bool = False
    switch: float = math.inf
    mode: str = PRE_COPY


def limits(configuration: Raw, memory: float, slow_down: float = 1.0) -> Limits:
    """The limits of `status.migrationState.migrationConfiguration` for a VM with so many bytes of memory."""
    post_copy = bool(configuration.get("allowPostCopy"))
    disruption = configuration.get("allowWorkloadDisruption")
    # KubeVirt counts begun units of 10^9 bytes, whatever the setting's name says.
    gigabytes = math.ceil(memory / 1e9)
    return Limits(
        link=(number(configuration.get("bandwidthPerMigration") or 0) or LINK) / slow_down,
        completion_timeout=float(configuration.get("completionTimeoutPerGiB") or 0) * gigabytes,
        progress_timeout=float(configuration.get("progressTimeout") or 0),
        auto_converge=bool(configuration.get("allowAutoConverge")),
        post_copy=post_copy,
        workload_disruption=post_copy if disruption is None else bool(disruption),
    )


def plan(guest: Guest, limits: Limits) -> Course:
    """How the migration of this guest goes within these limits."""
    converged = converges(guest, limits)
    # The monitor acts when more than the timeout has passed, and counts whole seconds.
    late = limits.completion_timeout + 1 if limits.completion_timeout else math.inf
    stuck = guest.stalls_at + limits.progress_timeout + 1 if limits.progress_timeout else math.inf
    if converged <= min(late, stuck):
        return Course(converged)
    if late <= stuck and limits.workload_disruption:
        return assisted(guest, limits, late, stuck)
    if stuck <= late:
        return Course(stuck, STUCK.format(limits.progress_timeout + 1), aborted=True)
    return Course(late, TOO_SLOW.format(limits.completion_timeout), aborted=True)


def assisted(guest: Guest, limits: Limits, switch: float, stuck: float) -> Course:
    """The course from the moment at which the monitor helps: post-copy, which is never given up, or a paused guest."""
    stalled = guest.stalls_at < math.inf
    done = math.inf if stalled else switch + guest.memory / limits.link
    if limits.post_copy:
        return Course(done, switch=switch, mode=POST_COPY)
    patience = 2 * limits.completion_timeout
    if done <= min(patience + 1, stuck):
        return Course(done, switch=switch, mode=PAUSED)
    if stuck <= patience + 1:
        return Course(stuck, STUCK.format(limits.progress_timeout + 1), True, switch, PAUSED)
    return Course(patience + 1, TOO_SLOW.format(patience), True, switch, PAUSED)


def converges(guest: Guest, limits: Limits) -> float:
    """Seconds until pre-copy has carried everything over; infinite when the guest is too fast for the link."""
    elapsed, rest, throttle, passes = 0.0, guest.memory, 0.0, 0
    while rest > DOWNTIME * limits.link:
        dirty_rate = guest.dirty_rate * (1 - throttle)
        if dirty_rate > HOPELESS * limits.link and (throttle >= THROTTLE_MAX or not limits.auto_converge):
            return math.inf
        duration = rest / limits.link
        elapsed += duration
        passes += 1
        rest = min(guest.memory, dirty_rate * duration)
        if limits.auto_converge and passes >= THROTTLE_AFTER:
            throttle = min(throttle + THROTTLE_STEP, THROTTLE_MAX) if throttle else THROTTLE_FIRST
    elapsed += rest / limits.link
    return elapsed if elapsed <= guest.stalls_at else math.inf


def cut(course: Course, share: float, copying: float, failure: str) -> Course:
    """The same course, but the copying (`copying` seconds long if nothing else ends it) breaks after a share of it."""
    end = share * min(course.end, course.switch, copying)
    return Course(end, failure)
