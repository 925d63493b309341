# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty a node, wave by wave: evictions, migrations and interruptions side by side, each followed to its end.

What is in a wave starts when everything in the waves before has left. A pod that a disruption budget holds back keeps
only those VMs waiting that have to follow pods; it is tried again all the while. A wave in which something fails is
the last: what is left then is planned anew, on what the cluster looks like by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import following
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.evictions import Evictions, pods_on
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.interruptions import Interruptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migration_run import MigrationRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Departures, Leaver
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.eviction import NOT_EVICTED, Eviction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.interruption import FAILED, Interruption
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.move import NOT_MIGRATED, WAITING
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect

# Seconds between two looks at pods and VMs that end, and the longest wait for a change of migrations meanwhile.
_PAUSE, _WATCH = 0.3, 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """owner: of the maintenance. grace_period: of evicted pods, seconds. unschedulable_timeout: of migrations."""

    node: str
    owner: str
    grace_period: int | None
    unschedulable_timeout: int


class DrainRun:
    """One attempt to empty a node. It can be interrupted after any `follow` and resumed in another process."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        migrations: MigrationRun,
        evictions: Iterable[Eviction],
        interruptions: Iterable[Interruption],
    ) -> None:
        self.migrations = migrations
        self.evictions = Evictions(client, evictions, settings.grace_period)
        self.interruptions = Interruptions(client, interruptions, settings.owner)
        self.followers: frozenset[int] = frozenset()
        self.trouble: Failure | None = None
        self.away = False
        self._client = client
        self._node = settings.node
        migrations.wave = 1

    @classmethod
    def begin(cls, client: Client, settings: Settings, leaving: Departures, prospects: Iterable[Prospect]) -> DrainRun:
        """prospects: of the migrations, in their order."""
        migrations = MigrationRun.begin(client, prospects, **_for_migrations(settings))
        for move, planned in zip(migrations.moves, leaving.migrations, strict=True):
            move.wave = planned.wave
        run = cls(client, settings, migrations, leaving.evictions, leaving.interruptions)
        run.followers = frozenset(planned.wave for planned in leaving.migrations if planned.follows)
        return run

    @classmethod
    def resume(cls, client: Client, settings: Settings, state: Mapping[str, Any]) -> DrainRun:
        migrations = MigrationRun.resume(client, state["migrations"], **_for_migrations(settings))
        evictions = [Eviction(**item) for item in state["evictions"]]
        run = cls(client, settings, migrations, evictions, [Interruption(**item) for item in state["interruptions"]])
        run.followers = frozenset(state["followers"])
        migrations.wave, run.away = state["wave"], state["away"]
        return run

    def to_json(self) -> dict[str, Any]:
        """What `resume` takes."""
        return {
            "migrations": self.migrations.to_json(),
            "evictions": [asdict(item) for item in self.evictions.evictions],
            "interruptions": [asdict(item) for item in self.interruptions.interruptions],
            "followers": sorted(self.followers),
            "wave": self.migrations.wave,
            "away": self.away,
        }

    @property
    def leavers(self) -> list[Leaver]:
        return [*self.migrations.moves, *self.evictions.evictions, *self.interruptions.interruptions]

    @property
    def unfinished(self) -> list[Leaver]:
        """What has not come to its end; after a failure only what was begun before."""
        left = [item for item in self.leavers if item.unfinished]
        return [item for item in left if item.wave <= self.migrations.wave] if self.has_failed else left

    @property
    def has_failed(self) -> bool:
        migrations_failed = any(move.outcome == NOT_MIGRATED for move in self.migrations.moves)
        return migrations_failed or self.has_failed_for_good

    @property
    def has_failed_for_good(self) -> bool:
        """Whether something has failed that no other plan mends; a migration may succeed to another node."""
        return any(item.outcome == NOT_EVICTED for item in self.evictions.evictions) or any(
            item.outcome == FAILED for item in self.interruptions.interruptions
        )

    def follow(self, seconds: float, *, until_news: bool = False) -> list[str]:
        """Until all have left, or for so long, or until there is news; lines on the news. Raises Failure."""
        return following.follow(self, seconds, until_news=until_news)

    def rehearse(self) -> None:
        """Put everything to the server without doing it. Raises Failure."""
        self.migrations.start(dry_run=True)
        self.evictions.rehearse()
        self.interruptions.rehearse()

    def step(self, seconds: float) -> None:
        self._open_waves()
        wave = self.migrations.wave
        self.evictions.ask(wave)
        self.interruptions.ask(wave)
        if any(move.wave <= wave for move in self.migrations.unfinished):
            self.migrations.step(min(seconds, _WATCH))
        else:
            time.sleep(min(seconds, _PAUSE))
        if self.evictions.unfinished:
            self.evictions.look(pods_on(self._client, self._node))
        self.interruptions.look()

    def news(self) -> list[str]:
        # A move that has not begun is no news.
        begun = (item for item in self.leavers if item.outcome != WAITING or item.wave <= self.migrations.wave)
        return [line for line in (item.news() for item in begun) if line]

    def _open_waves(self) -> None:
        last = max((item.wave for item in self.leavers), default=1)
        while self.migrations.wave < last and not self.has_failed and self._is_over(self.migrations.wave):
            self.migrations.wave += 1

    def _is_over(self, wave: int) -> bool:
        patient = wave + 1 in self.followers
        return all(
            isinstance(item, Eviction) and item.held_back and not patient
            for item in self.leavers
            if item.wave <= wave and item.unfinished
        )


def _for_migrations(settings: Settings) -> dict[str, int]:
    """A failed migration is not repeated as it is, but planned anew."""
    return {"retries": 0, "unschedulable_timeout": settings.unschedulable_timeout}
