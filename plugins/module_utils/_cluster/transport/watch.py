# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list that is kept up to date by watching it.

The stream of its events is read beside the caller, who gets all that have come when it looks. With a request for each
event, many objects that change at once would cost a request each, and the caller's work as often.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from queue import Empty, Queue

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_GONE = 410
# After so many seconds the server ends a stream, and the next look begins another one.
_STREAM_SECONDS = 30
# Events seldom come alone: with this many seconds without a further one they are taken for all there are.
_LULL = 0.02
# Seconds between a watch that has failed, or has ended at once, and the next one.
_REST = 0.5


class WatchedList:
    """`objects`: by (namespace, name), as of the last call of `update`. Not thread-safe.

    path: of the list, over one namespace or all. title: what messages call it. selectors: which of its objects, by the
    names of the API. bell: rung with each event, for who waits for several lists.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        title: str,
        selectors: Mapping[str, str],
        bell: threading.Event | None = None,
    ) -> None:
        self.objects: dict[tuple[str, str], JsonObject] = {}
        self._client = client
        self._path = path
        self._title = title
        self._selectors = dict(selectors)
        self._bell = bell
        self._version: str | None = None
        self._stream: _Stream | None = None

    def update(self, seconds: float) -> None:
        """Read the list the first time, then return with the next changes, or after some seconds without one.

        Nothing is lost between calls: each goes on where the one before ended, or reads the list again where a watch
        was cut or fell silent. Raises Failure.
        """
        if self._version is None:
            self._version = self._read()
            if self._bell is not None:
                self._stream = self._begin(self._version)
            return
        stream = self._stream = self._stream or self._begin(self._version)
        try:
            for event in stream.at_hand(seconds):
                self._apply(event["type"], event["object"])
        except Failure as error:
            self._version = None
            if error.status != _GONE and not error.passing:
                raise
        finally:
            if stream.ended or self._version is None:
                self._stream = None
        if self._version is None:
            # A server that cuts each watch has a rest. The list has to be read, for which the next update is patient.
            time.sleep(min(max(0.0, seconds), _REST))
        elif self._bell is not None and self._stream is None:
            # Who waits for the bell would hear of nothing before the next look.
            self._stream = self._begin(self._version)

    def forget(self) -> None:
        """Let the next update read the list again."""
        if self._stream is not None:
            self._stream.leave()
        self._version, self._stream = None, None

    def _begin(self, version: str) -> _Stream:
        return _Stream(self._watch(version), self._bell or threading.Event())

    def _read(self) -> str:
        """The version of what was read."""
        page = self._client.get(self._path, f"list {self._title}", **self._selectors)
        self.objects = {_key(item): item for item in page["items"]}
        return str(page["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> Iterator[JsonObject]:
        query = {**self._selectors, "resourceVersion": version, "allowWatchBookmarks": "true"}
        return self._client.watch(self._path, f"watch {self._title}", _STREAM_SECONDS, **query)

    def _apply(self, kind: str, item: JsonObject) -> None:
        if kind == "ERROR":  # the server has forgotten what happened since the last call, and ends the stream
            self._version = None
            return
        self._version = item["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self.objects.pop(_key(item), None)
        elif kind != "BOOKMARK":
            self.objects[_key(item)] = item


class _Stream:
    """Events, read in a thread of their own. `ended`: whether all have been taken."""

    def __init__(self, events: Iterable[JsonObject], bell: threading.Event) -> None:
        self.ended = False
        self._is_left = False
        self._bell = bell
        self._queue: Queue[JsonObject | Exception | None] = Queue()
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def at_hand(self, seconds: float) -> Iterator[JsonObject]:
        """Those that have come, after waiting so long for the first one. Raises Failure."""
        end = time.monotonic() + seconds
        while not self.ended:
            try:
                item = self._queue.get(timeout=max(0.0, seconds))
            except Empty:
                return
            self.ended = not isinstance(item, dict)
            if isinstance(item, Exception):
                raise item
            if item is not None:
                yield item
            seconds = min(_LULL, end - time.monotonic())

    def leave(self) -> None:
        """Nobody takes any more: the next event ends it, and rings for nobody."""
        self._is_left = True

    def _read(self, events: Iterable[JsonObject]) -> None:
        """A server that ends each watch at once has a rest: its end is told when that is over, as the next one follows.

        Who looks at several lists by one bell has no time of its own in which to rest.
        """
        rested = time.monotonic() + _REST
        last: Exception | None = None
        try:
            for event in events:
                if self._is_left:
                    return
                self._put(event)
                rested = 0.0
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            last = error
        time.sleep(max(0.0, rested - time.monotonic()))
        self._put(last)

    def _put(self, item: JsonObject | Exception | None) -> None:
        if self._is_left:
            return
        self._queue.put(item)
        self._bell.set()


def _key(item: JsonObject) -> tuple[str, str]:
    return item["metadata"].get("namespace") or "", item["metadata"]["name"]
