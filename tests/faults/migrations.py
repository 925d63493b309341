# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of a run's own migrations, and which of them have touched a VM in vain.

A run that is asked neither to make room nor to rebalance moves VMs away from its nodes only, each once, and from none
that has been maintained. What others have done to a VM, or to a node, excuses it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from math import inf

from faults.scene import RUN_LABEL, title
from testbed.api import Object

_SUCCEEDED, _FAILED = "Succeeded", "Failed"
# Of a run's own: the node that the VM is to leave.
_SOURCE_LABEL = "virtops.kubevirt/source-node"


class Migrations:
    """Of a cluster, as they were last seen: those that are over go at some time, at the latest with their VMI."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._last: dict[str, Object] = {}
        self._moved: dict[str, tuple[str, str]] = {}

    def see(self, vmis: Iterable[Object], migrations: Iterable[Object]) -> None:
        """What is there now. A VMI of the same name that comes later is another one."""
        uids = {title(vmi): vmi["metadata"]["uid"] for vmi in vmis}
        for item in migrations:
            uid, vm = item["metadata"]["uid"], f"{item['metadata']['namespace']}/{item['spec']['vmiName']}"
            self._last[uid] = item
            self._moved.setdefault(uid, (vm, uids.get(vm, "")))

    def ended(self) -> dict[str, int]:
        """How many of the run's succeeded, and how many failed or were cancelled."""
        phases = [_phase(item) for item in self._last.values() if self._is_own(item)]
        succeeded = phases.count(_SUCCEEDED)
        return {"succeeded": succeeded, "failed": len(phases) - succeeded}

    def in_vain(self, nodes: Container[str], maintained: Mapping[str, float], excused: Container[str]) -> Iterator[str]:
        """A sentence for each that succeeded and should not have been.

        nodes: of the run. maintained: when each was last looked at by its maintenance, in seconds since the epoch.
        excused: titles of VMs, and names of nodes, that somebody else has interrupted or given back.
        """
        theirs = {self._moved[uid] for uid, item in self._last.items() if not self._is_own(item) and _may_move(item)}
        seen: set[tuple[tuple[str, str], str]] = set()
        for uid, item in sorted(self._last.items(), key=lambda entry: _created(entry[1])):
            if not self._is_own(item) or _phase(item) != _SUCCEEDED:
                continue
            vmi, source = self._moved[uid], _source(item)
            name, once = f"{vmi[0]} was migrated away from {source}", (vmi, source)
            if vmi in theirs or vmi[0] in excused or source in excused:
                continue
            if source not in nodes:
                yield f"{name}, which is no node of the run"
            elif _created(item) > maintained.get(source, inf):
                yield f"{name}, which had been maintained"
            elif once in seen:
                yield f"{name} once more"
            seen.add(once)

    def _is_own(self, item: Object) -> bool:
        return bool(item["metadata"].get("labels", {}).get(RUN_LABEL) == self._run)


def _phase(item: Object) -> str:
    return str((item.get("status") or {}).get("phase") or "")


def _may_move(item: Object) -> bool:
    return _phase(item) != _FAILED


def _source(item: Object) -> str:
    """As KubeVirt notes it after the end, unless it is kept from that, or else as the run has asked for it."""
    state = (item.get("status") or {}).get("migrationState") or {}
    return str(state.get("sourceNode") or item["metadata"]["labels"][_SOURCE_LABEL])


def _created(item: Object) -> float:
    """In seconds since the epoch, without fractions."""
    return datetime.fromisoformat(item["metadata"]["creationTimestamp"]).timestamp()
