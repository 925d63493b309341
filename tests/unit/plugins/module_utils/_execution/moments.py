# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builders of what an action in progress is shown."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    SeenPod,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import Moment
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

NOW = 1_000_000.0
_TIMES = ("2026-11-22T02:00:00Z", "2026-11-22T02:00:04Z", "2026-11-22T02:00:09Z")


def seen_vmi(name: str = "web", node: str = "n1", **changes: Any) -> SeenVmi:
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "shop",
        "name": name,
        "node": node,
        "phase": "Running",
        "ending": False,
    }
    return SeenVmi(**fields | changes)


def seen_pod(name: str = "cache", node: str = "n1", **changes: Any) -> SeenPod:
    fields: dict[str, Any] = {"uid": f"uid-{name}", "namespace": "shop", "name": name, "node": node, "ending": False}
    traits = {"machine": False, "stays": False, "tolerates": False, "owner_uid": "uid-set"}
    return SeenPod(**fields | traits | changes)


def launcher(vmi: str = "web", node: str = "n1", name: str = "launcher") -> SeenPod:
    return seen_pod(f"{name}-{vmi}", node, machine=True, owner_uid=f"uid-{vmi}")


def migration(name: str, *phases: str, vmi: str = "web", target: str = "n2", **changes: Any) -> Migration:
    """phases: those it has reached; without any it waits for KubeVirt."""
    fields: dict[str, Any] = {
        "namespace": "shop",
        "name": name,
        "uid": f"uid-{name}",
        "vmi": vmi,
        "run": "run-1",
        "node_selector": {"kubernetes.io/hostname": target},
        "priority": "",
        "created": _TIMES[0],
        "phase": phases[-1] if phases else "Pending",
        "phases": tuple(zip(phases, _TIMES, strict=False)),
        "blocked": "",
        "cancelled": False,
    }
    return Migration(**fields | changes)


def look(*items: SeenVmi | SeenPod | Migration, **others: Any) -> Observation:
    migrations: dict[str, tuple[Migration, ...]] = {}
    for item in items:
        if isinstance(item, Migration):
            title = f"{item.namespace}/{item.vmi}"
            migrations[title] = (*migrations.get(title, ()), item)
    return Observation(
        vmis={item.title: item for item in items if isinstance(item, SeenVmi)},
        pods={item.uid: item for item in items if isinstance(item, SeenPod)},
        migrations=migrations,
        **others,
    )


def moment(*items: SeenVmi | SeenPod | Migration, after: float = 0.0, **changes: Any) -> Moment:
    """What is seen so many seconds after the beginning, when nothing has to be waited for."""
    names = {"ready", "slot", "retries", "taken", "run", "epoch", "binding", "wanted"}
    traits = {name: value for name, value in changes.items() if name in names}
    others = {name: value for name, value in changes.items() if name not in names}
    fields: dict[str, Any] = {"run": "run-1", "epoch": "e", "ready": True, "slot": True}
    return Moment(look=look(*items, **others), now=NOW + after, **fields | traits)
