# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A list that is kept up to date by watching it."""

from __future__ import annotations

import itertools
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure

Object = dict[str, Any]
_GONE = 410


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

    def update(self, seconds: float) -> None:
        """Read the list the first time, then return with the next change, or after some seconds without one.

        Nothing is lost between calls: each goes on where the one before ended. Raises Failure.
        """
        if self._version is None:
            self._read()
            return
        query = {"labelSelector": self._selector, "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        events = self._client.watch(self._path, f"watch {self._title}", max(1, round(seconds)), **query)
        try:
            for event in itertools.islice(events, 1):
                self._apply(event["type"], event["object"])
        except Failure as error:
            self._version = None
            if error.status != _GONE:
                raise

    def _read(self) -> None:
        page = self._client.get(self._path, f"list {self._title}", labelSelector=self._selector)
        self.objects = {_key(item): item for item in page["items"]}
        self._version = page["metadata"]["resourceVersion"]

    def _apply(self, kind: str, item: Object) -> None:
        if kind == "ERROR":  # the server has forgotten what happened since the last call
            self._version = None
            return
        self._version = item["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self.objects.pop(_key(item), None)
        elif kind != "BOOKMARK":
            self.objects[_key(item)] = item


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]
