# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on a node that is to be emptied, and how each of it is to leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import Eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import Interruption
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Wish

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """A node as it is now.

    vmis: those that run on it. pods: those that a drain is to evict. launchers: pods of VMIs that have not ended, also
    of a VMI that has just left. migrations: unfinished ones, by the title of their VMI.
    """

    node: str
    vmis: tuple[Object, ...]
    pods: tuple[Object, ...]
    launchers: tuple[Object, ...]
    migrations: Mapping[str, Migration]

    @property
    def is_empty(self) -> bool:
        return not (self.vmis or self.pods or self.launchers)

    def titles(self) -> list[str]:
        """Of all that is to leave: VMs first, then pods, each by name."""
        return [*sorted(f"vm {title(vmi)}" for vmi in self.vmis), *sorted(f"pod {title(pod)}" for pod in self.pods)]


@dataclass(frozen=True, slots=True)
class PlannedMigration:
    """`follows`: whether the VM asks to be near other pods, so that it may have to wait for pods that leave before."""

    wish: Wish
    wave: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Stuck:
    """A VM or pod that nothing is to be done to. `kind`: vm or pod. `why`: a clause, with what would help."""

    kind: str
    namespace: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class Departures:
    """How everything on a node is to leave. `waiting`: VMs that are left alone for now, with the reason."""

    migrations: tuple[PlannedMigration, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """How many leave in which way."""
        actions = Counter(item.action for item in self.interruptions)
        numbers = {"migration": len(self.migrations), "eviction": len(self.evictions), **actions}
        parts = [f"{number} {noun}{'s' if number > 1 else ''}" for noun, number in numbers.items() if number]
        return ", ".join(parts) or "nothing"


class Leaver(Protocol):
    """A VM or pod on its way. `wave`: before its turn it is not started."""

    namespace: str
    name: str
    wave: int
    outcome: str

    @property
    def title(self) -> str:
        """namespace/name."""

    @property
    def unfinished(self) -> bool:
        """Whether it has not come to its end."""

    def status(self) -> str:
        """Where it stands, in a few words."""

    def news(self) -> str | None:
        """A line on it if it stands elsewhere than when this was last asked."""


def title(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"
