# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process sees of the model: three watches, each of which may lag behind by itself, and fresh answers.

As the `Observer` of `_cluster` shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import (
    Observation,
    Questions,
    SeenPod,
    SeenVmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration

from simulation.chances import Chances
from simulation.sight import (
    see_migrations,
    see_pods,
    see_replica_sets,
    see_vmi,
    see_vmis,
    see_vms,
)
from simulation.world import World

# No watch lags further behind than this, in seconds; less than what the reducer gives a migration to show.
LAG = 20.0
# The watches, by their bits in what befalls them.
_MIGRATIONS, _VMIS, _PODS = 1, 2, 4


@dataclass
class Watches:
    """nodes: those looked at. sources: nodes that the migrations looked at leave. fresh: all seen last is as of now.

    late: whoever looks has stood still after its last look.
    _at: when each that is watched was seen for the last time.
    """

    world: World
    chances: Chances
    nodes: set[str]
    sources: set[str] = field(default_factory=set)
    fresh: bool = False
    late: bool = False
    _vmis: Mapping[str, SeenVmi] = field(default_factory=dict)
    _pods: Mapping[str, SeenPod] = field(default_factory=dict)
    _migrations: Mapping[str, tuple[Migration, ...]] = field(default_factory=dict)
    _at: dict[int, float] = field(default_factory=dict)

    def attend(self, nodes: Collection[str], sources: Collection[str]) -> None:
        if not self.nodes.issuperset(nodes):
            self.nodes.update(nodes)
            self._leave(_VMIS, _PODS)
        if not self.sources.issuperset({*sources, *self.nodes}):
            self.sources.update(sources, self.nodes)
            self._leave(_MIGRATIONS)

    def look(self, questions: Questions, seconds: float) -> Observation:
        self.chances.asks()
        seen = self._look(questions)
        self.late = self.chances.stands_still()
        self.fresh = self.fresh and not self.late
        return seen

    def forget(self) -> None:
        self._leave(_MIGRATIONS, _VMIS, _PODS)

    def _look(self, asked: Questions) -> Observation:
        world, self.fresh = self.world, False
        if migrations := self._has_news(_MIGRATIONS):
            self._migrations = see_migrations(world, self.sources)
        if vmis := self._has_news(_VMIS):
            self._vmis = see_vmis(world, self.nodes)
        if pods := self._has_news(_PODS):
            self._pods = see_pods(world, self.nodes)
        self.fresh = migrations and vmis and pods
        return Observation(
            vmis=self._with_answers(asked),
            pods=self._pods_with(asked),
            migrations=self._migrations,
            reasons=dict.fromkeys(asked.failed, "guest said no"),
            siblings={
                uid: tuple(see_vmi(vmi) for vmi in world.vmis.values() if vmi.owner and vmi.owner.uid == uid)
                for _namespace, uid in asked.owners
            },
            vms=see_vms(world, asked.vms),
            replica_sets=see_replica_sets(world, asked.replica_sets),
        )

    def _has_news(self, watch: int) -> bool:
        """What is not watched is listed, unless that fails; who is told to list anew does so at the next look."""
        now, chances = self.world.now, self.chances
        if watch not in self._at:
            chances.asks()
        elif chances.cut & watch:
            self._leave(watch)
            return False
        elif chances.lagging & watch and now - self._at[watch] <= LAG:
            return False
        self._at[watch] = now
        return True

    def _leave(self, *watches: int) -> None:
        for watch in watches:
            self._at.pop(watch, None)

    def _pods_with(self, asked: Questions) -> Mapping[str, SeenPod]:
        if not asked.pods:
            return self._pods
        anew = see_pods(self.world, self.nodes)
        present = {uid: anew.get(uid) if pod.title in asked.pods else pod for uid, pod in self._pods.items()}
        return {uid: pod for uid, pod in present.items() if pod is not None}

    def _with_answers(self, asked: Questions) -> Mapping[str, SeenVmi]:
        titles = asked.vmis | (asked.known - self._vmis.keys())
        if not titles:
            return self._vmis
        found = {title: vmi for title, vmi in self._vmis.items() if title not in titles}
        return found | {vmi.title: see_vmi(vmi) for vmi in self.world.vmis.values() if vmi.title in titles}
