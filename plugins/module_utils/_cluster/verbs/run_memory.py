# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task lets its run remember while it works: seldom written, and never in the task's way.

A write that fails is tried again with the next one, and told once: when trouble has lasted for as long as any that is
told, and at once if time does not mend it. Where the server is in trouble until the last one, that is told with how
often it was tried. Two tasks may add to the same document: each adds to what the other has
written. Once the run is lost nothing is written any more: it is for others to say what it remembers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.conflicts import retry_on_conflict
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import TOLD_AFTER
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import (
    RUN_LOST,
    RunHold,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import BROKEN, RunStore

# A document made anew from what is kept under its name, None if nothing is; None to leave that as it is.
Make: TypeAlias = "Callable[[bytes | None], bytes | None]"

# Seconds from one write to the next, unless it cannot wait.
_PAUSE = 5.0


@dataclass
class _Trouble:
    """With one document. begun: when, by the clock that never runs backwards."""

    error: Failure
    begun: float
    is_told: bool = False


class RunMemory:
    """`hold`: of the run whose store it is. tell: takes lines for people."""

    def __init__(self, hold: RunHold, store: RunStore, tell: Callable[[str], None]) -> None:
        self._hold, self._brief = hold, hold.briefly()
        self._store = store
        self._tell = tell
        self._waiting: dict[str, Make] = {}
        self._next = float("-inf")
        self._is_urgent = False
        self._troubles: dict[str, _Trouble] = {}

    def remember(self, name: str, make: Make) -> None:
        """To be written next, in place of what was to be written under the name."""
        self._waiting[name] = make

    def write(self, *, at_once: bool = False, last: bool = False) -> None:
        """Write what waits, unless that was done a moment ago and it can wait: `last` says that it will not be again.

        What fails for a moment is left to the next time, if there is one, which is no later for what cannot wait.
        Nothing waits any more if the run is lost.
        """
        self._is_urgent = self._is_urgent or at_once
        if not self._waiting or (time.monotonic() < self._next and not (self._is_urgent or last)):
            return
        begun = time.monotonic()
        self._next = begun + _PAUSE
        # A task that ends may have been slow to hear that the run is lost.
        if last:
            store = self._store.guarded(partial(self._hold.require, anew=True))
        else:
            store = self._store.briefly().guarded(self._brief.require)
        for name, make in list(self._waiting.items()):
            try:
                retry_on_conflict(partial(_put, store, name, make))
            except Failure as error:
                if error.reason == RUN_LOST:
                    self._waiting.clear()
                    return
                self._endure(name, error, begun, last=last)
            else:
                del self._waiting[name]
                self._troubles.pop(name, None)
        self._is_urgent = self._is_urgent and any(self._troubles[name].error.passing for name in self._waiting)

    def _endure(self, name: str, error: Failure, begun: float, *, last: bool) -> None:
        """begun: when what has failed was begun."""
        before = self._troubles.get(name)
        if before is not None and before.error.passing != error.passing:
            before = None  # that time does not mend it any more, or does by now, is news
        error.following(before.error if before else None)
        trouble = self._troubles[name] = _Trouble(error, before.begun if before else begun)
        trouble.is_told = error.announced or (before is not None and before.is_told)
        lasts = not error.passing or time.monotonic() - trouble.begun >= TOLD_AFTER
        if last and (error.passing or not trouble.is_told):
            self._tell(str(error.replaced(message=error.at_the_end)))
        elif lasts and not (last or trouble.is_told):
            trouble.is_told = True
            self._tell(f"{error} Trying again{f' since {error.since}' if error.since else ''}.")


def _put(store: RunStore, name: str, make: Make) -> None:
    """One that cannot be read is written anew, if it is known without what it was. Raises Failure."""
    broken: Failure | None = None
    try:
        found = store.get(name)
    except Failure as error:
        if error.reason != BROKEN:
            raise
        found, broken = None, error
    content = make(found.content if found else None)
    if content is not None:
        store.put(name, content, after=found.generation if found else None if broken else 0)
    elif broken is not None:
        raise broken
