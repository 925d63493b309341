# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that the API server tells of some collections while something is done to them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.api import Api, Object

# How long one watch lasts before the next goes on from its last event, and so how long the end may take.
SECONDS = 2.0


class Watches(ABC):
    """Watches collections within a `with` statement, in which all of them change.

    paths: of the collections, by names for them. first: their lists before anything is done, by these names. A watch
    that broke off or told nothing is an error, as something was missed.
    """

    def __init__(self, kubeconfig: Path, paths: Mapping[str, str]) -> None:
        self._paths = paths
        self._apis = {name: Api(kubeconfig) for name in paths}
        self.first = {name: self._apis[name].get(path) for name, path in paths.items()}
        self._watches: dict[str, Future[None]] = {}
        self._over = threading.Event()
        self._changed: set[str] = set()

    @abstractmethod
    def see(self, name: str, event: Object) -> None:
        """Take an event of a collection: what is there at first is added, and then all that changes, in its order."""

    def __enter__(self) -> Self:
        pool = ThreadPoolExecutor(len(self._paths))
        self._watches = {name: pool.submit(self._watch, name) for name in self._paths}
        pool.shutdown(wait=False)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        # Waits for all, whatever ended them.
        gaps = [f"{name}: {watch.exception()!r}" for name, watch in self._watches.items() if watch.exception()]
        gaps = gaps or [f"nothing was told of {name}" for name in self._paths if name not in self._changed]
        for api in self._apis.values():
            api.close()
        if gaps and error is None:
            raise AssertionError(f"The history has a gap: {'; '.join(gaps)}.")

    def _watch(self, name: str) -> None:
        for item in self.first[name]["items"]:
            self.see(name, {"type": "ADDED", "object": item})
        version = self.first[name]["metadata"]["resourceVersion"]
        last = False
        while not last:
            # One more watch after the end was called tells what came before it.
            last = self._over.is_set()
            for event in self._apis[name].changes(self._paths[name], version, SECONDS):
                if event["type"] == "ERROR":
                    raise RuntimeError(event["object"].get("message"))
                self.see(name, event)
                self._changed.add(name)
                version = event["object"]["metadata"]["resourceVersion"]
