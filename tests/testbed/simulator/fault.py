# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults: what a person wants to go wrong, for which VMs or node, how often and when.

They live as JSON in a ConfigMap, one key each. Times there are RFC 3339, in here seconds since the epoch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from testbed.simulator.facts import Vmi, seconds

NAMESPACE = "testbed"
CONFIG_MAP = "testbed-faults"

MIGRATION_FAILURE = "migration-failure"
MIGRATION_STALL = "migration-stall"
SLOW_MIGRATION = "slow-migration"
NEVER_CONVERGES = "never-converges"
GUEST_SHUTDOWN = "guest-shutdown"
NODE_REBOOT = "node-reboot"
NODE_LOST = "node-lost"
STALE_HEARTBEAT = "stale-heartbeat"
SILENT_HANDLER = "silent-handler"

VM_FAULTS = (MIGRATION_FAILURE, MIGRATION_STALL, SLOW_MIGRATION, NEVER_CONVERGES, GUEST_SHUTDOWN)
OUTAGES = (NODE_REBOOT, NODE_LOST)
NODE_FAULTS = (*OUTAGES, STALE_HEARTBEAT, SILENT_HANDLER)
KINDS = (*VM_FAULTS, *NODE_FAULTS)

# Where a migration can be made to fail, in the order of its life.
SCHEDULING = "Scheduling"
PREPARING_TARGET = "PreparingTarget"
TARGET_READY = "TargetReady"
RUNNING = "Running"
HANDOFF = "Handoff"
TARGET_POD = "TargetPod"
PHASES = (SCHEDULING, PREPARING_TARGET, TARGET_READY, RUNNING, HANDOFF, TARGET_POD)

REBOOT_SECONDS = 60.0
SLOW_FACTOR = 10.0
# An outage noticed later than this, in real seconds, was not noticed by a simulator that was there when it began.
LATEST = 60.0


@dataclass(frozen=True)
class Fault:
    """One fault.

    VMs are chosen by `vmi` (namespace/name), `selector` (labels) and `node` (where they run, or migrate to), by all
    that are given together; by none of them, every VM is. Node faults need `node`. In force from `since` until `until`
    (None: until cleared). `duration`: simulated seconds that a reboot takes; `factor`: how many times slower a
    migration gets.
    """

    id: str
    kind: str
    vmi: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    phase: str = RUNNING
    probability: float = 1.0
    since: float = 0.0
    until: float | None = None
    duration: float = REBOOT_SECONDS
    factor: float = SLOW_FACTOR

    def __post_init__(self) -> None:
        """Raises ValueError in a sentence that says what to write instead."""
        if self.kind not in KINDS:
            raise ValueError(f"There is no fault {self.kind!r}; there are: {', '.join(KINDS)}.")
        if self.kind in NODE_FAULTS and not self.node:
            raise ValueError(f"Fault {self.kind} needs a node: add --node NAME.")
        if self.kind in NODE_FAULTS and (self.vmi or self.selector):
            raise ValueError(f"Fault {self.kind} concerns a node, not VMs: leave --vmi and --selector out.")
        if self.vmi and self.vmi.count("/") != 1:
            raise ValueError(f"{self.vmi!r} names no VM: write NAMESPACE/NAME.")
        if self.phase not in PHASES:
            raise ValueError(f"A migration has no phase {self.phase!r} to fail in; write one of {', '.join(PHASES)}.")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"A probability lies between 0 and 1, not at {self.probability:g}.")
        if self.duration <= 0 or self.factor <= 0:
            raise ValueError(f"Duration and factor of fault {self.kind} must be above 0.")

    def ends(self, scale: float) -> float | None:
        """When it is over by itself; of a reboot's simulated seconds `scale` pass in a real one."""
        return self.since + self.duration / scale if self.kind == NODE_REBOOT else self.until

    def active(self, now: float, scale: float) -> bool:
        end = self.ends(scale)
        return self.since <= now and (end is None or now < end)

    def noticed(self, now: float) -> Fault:
        """The fault as it is for who hears of it now: an outage has its full length from then on.

        A short one could be over on a busy machine before anybody has heard of it, and the node would never go off.
        """
        late = now - self.since
        if self.kind not in OUTAGES or not 0 < late < LATEST:
            return self
        return replace(self, since=now, until=None if self.until is None else self.until + late)

    def concerns(self, vmi: Vmi) -> bool:
        migration = vmi.migration
        nodes = {vmi.node} | ({migration.source_node, migration.target_node} if migration else set())
        return (
            self.vmi in {"", vmi.key}
            and all(vmi.labels.get(key) == value for key, value in self.selector.items())
            and (not self.node or self.node in nodes)
        )

    def to_json(self) -> str:
        values = {
            "kind": self.kind,
            "vmi": self.vmi,
            "selector": dict(self.selector),
            "node": self.node,
            "phase": self.phase,
            "probability": self.probability,
            "from": datetime.fromtimestamp(self.since, UTC).isoformat(),
            "until": datetime.fromtimestamp(self.until, UTC).isoformat() if self.until else None,
            "duration": self.duration,
            "factor": self.factor,
        }
        return json.dumps({key: value for key, value in values.items() if value not in (None, "", {})})


def from_json(name: str, text: str) -> Fault:
    """The fault under a key of the ConfigMap. Raises ValueError for text that is none."""
    try:
        values = json.loads(text)
        if until := values.pop("until", None):
            values["until"] = seconds(until)
        return Fault(id=name, since=seconds(values.pop("from", None)), **values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"Key {name} of ConfigMap {NAMESPACE}/{CONFIG_MAP} holds no fault: {error}") from error


@dataclass(frozen=True)
class Faults:
    """All faults, the seed of their chances, and the time scale (simulated seconds in a real one)."""

    known: tuple[Fault, ...] = ()
    seed: int = 0
    scale: float = 1.0

    def active(self, now: float, kinds: Iterable[str]) -> Iterable[Fault]:
        wanted = frozenset(kinds)
        return (fault for fault in self.known if fault.kind in wanted and fault.active(now, self.scale))

    def draw(self, fault: Fault, occasion: str) -> float:
        """A number in [0, 1) that is always the same for this seed, fault and occasion."""
        digest = hashlib.sha256(f"{self.seed}|{fault.id}|{occasion}".encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2.0**56

    def for_vmi(self, kind: str, vmi: Vmi, now: float, occasion: str = "") -> Fault | None:
        """The first fault of this kind that hits the VM on this occasion."""
        for fault in self.active(now, (kind,)):
            if fault.concerns(vmi) and self.draw(fault, occasion or vmi.key) < fault.probability:
                return fault
        return None

    def for_migration(self, phase: str, vmi: Vmi, now: float, occasion: str) -> Fault | None:
        """The first fault that makes this migration fail in this phase."""
        for fault in self.active(now, (MIGRATION_FAILURE,)):
            if fault.phase == phase and fault.concerns(vmi) and self.draw(fault, occasion) < fault.probability:
                return fault
        return None

    def for_node(self, kinds: Iterable[str], node: str, now: float) -> Fault | None:
        return next((fault for fault in self.active(now, kinds) if fault.node == node), None)
