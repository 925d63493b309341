# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is known about one VMI at one moment: what the rules decide from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed.simulator.changes import Replacement
from testbed.simulator.facts import Migration, Pod, Raw, Vmi
from testbed.simulator.fault import Faults


@dataclass(frozen=True)
class Host:
    """A node as far as its VMs care.

    `on`: the machine runs (kubelet, guests), else not since `off_since` (seconds since the epoch, 0 for unknown).
    `handled`: its virt-handler works too.
    """

    on: bool
    handled: bool
    address: str = ""
    off_since: float = 0.0


ABSENT = Host(on=False, handled=False)


@dataclass(frozen=True)
class Situation:
    """A VMI, its virt-launcher pods, the nodes and the faults.

    `vmi` is None once it is gone and only pods are left. `began`: when the simulator saw the current migration start
    (seconds since the epoch; the VMI tells whole seconds only), 0 for not seen. `attempt` numbers the VM's migrations,
    so that chances repeat from run to run.
    """

    vmi: Vmi | None
    pods: tuple[Pod, ...]
    hosts: Mapping[str, Host]
    faults: Faults
    now: float
    began: float = 0.0
    attempt: int = 0

    def host(self, node: str) -> Host:
        return self.hosts.get(node, ABSENT)

    def pod(self, name: str) -> Pod | None:
        return next((pod for pod in self.pods if pod.name == name), None)

    def occasion(self, vmi: Vmi) -> str:
        """What chances are drawn for: this migration of this VM."""
        return f"{vmi.key}#{self.attempt}"

    def elapsed(self, migration: Migration) -> float:
        """Simulated seconds since the migration started."""
        return (self.now - (self.began or migration.started)) * self.faults.scale

    def moment(self, migration: Migration, elapsed: float) -> float | None:
        """The real time at which so many simulated seconds will have passed since the start; None for never."""
        return (self.began or migration.started) + elapsed / self.faults.scale if math.isfinite(elapsed) else None


def guest_pod(situation: Situation, vmi: Vmi) -> Pod | None:
    """The pod in which the guest runs by the VMI's own account; a live one before one that is over."""
    target = vmi.migration.target_pod if vmi.migration and not vmi.migration.done else ""
    here = [pod for pod in situation.pods if pod.node == vmi.node and pod.name != target]
    return min(here, key=lambda pod: pod.over, default=None)


def vmi_change(vmi: Vmi, changes: Raw, says: str) -> Replacement:
    """The VMI with some values changed; None removes one."""
    namespace, name = vmi.key.split("/")
    path = f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}"
    return Replacement(path, merged(vmi.raw, changes), f"{vmi.key}: {says}")


def merged(old: Raw, changes: Raw) -> dict[str, Any]:
    """JSON merge (RFC 7386): dictionaries are merged, all else is replaced."""
    new = dict(old)
    for key, value in changes.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, Mapping):
            new[key] = merged(new.get(key) or {}, value)
        else:
            new[key] = value
    return new
