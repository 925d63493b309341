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
from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure

Object = dict[str, Any]
_GONE = 410
# After so many seconds the server ends a stream, and the next look begins another one.
_STREAM_SECONDS = 30
# Events seldom come alone: with this many seconds without a further one they are taken for all there are.
_LULL = 0.02


class WatchedList:
    """`objects`: by (namespace, name), as of the last call of `update`. Not thread-safe.

    path: of the list, over one namespace or all. title: what messages call it. label_selector: which of its objects.
    """

    def __init__(self, client: Client, path: str, title: str, label_selector: str) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self._client = client
        self._path = path
        self._title = title
        self._selector = label_selector
        self._version: str | None = None
        self._stream: _Stream | None = None

    def update(self, seconds: float) -> None:
        """Read the list the first time, then return with the next changes, or after some seconds without one.

        Nothing is lost between calls: each goes on where the one before ended. Raises Failure.
        """
        if self._version is None:
            self._read()
            return
        stream = self._stream = self._stream or _Stream(self._watch(self._version))
        try:
            for event in stream.at_hand(seconds):
                self._apply(event["type"], event["object"])
        except Failure as error:
            self._version = None
            if error.status != _GONE:
                raise
        finally:
            if stream.ended or self._version is None:
                self._stream = None

    def _read(self) -> None:
        page = self._client.get(self._path, f"list {self._title}", labelSelector=self._selector)
        self.objects = {_key(item): item for item in page["items"]}
        self._version = page["metadata"]["resourceVersion"]

    def _watch(self, version: str) -> Iterator[Object]:
        query = {"labelSelector": self._selector, "resourceVersion": version, "allowWatchBookmarks": "true"}
        return self._client.watch(self._path, f"watch {self._title}", _STREAM_SECONDS, **query)

    def _apply(self, kind: str, item: Object) -> None:
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

    def __init__(self, events: Iterable[Object]) -> None:
        self.ended = False
        self._queue: Queue[Object | Exception | None] = Queue()
        threading.Thread(target=self._read, args=(events,), daemon=True).start()

    def at_hand(self, seconds: float) -> Iterator[Object]:
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

    def _read(self, events: Iterable[Object]) -> None:
        try:
            for event in events:
                self._queue.put(event)
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            self._queue.put(error)
        else:
            self._queue.put(None)


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]
