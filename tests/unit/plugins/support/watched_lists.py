# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists as API servers select from them, and watches that tell what has changed since a list was read.

Tests change objects wherever they like; what a watch has to tell is found by comparing with what was last told.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from unit.plugins.support.fake_api import Answer, Object

# Seconds for which a watch goes on without a change, and between two comparisons.
_STREAM, _PAUSE = 0.2, 0.005
_TERM = re.compile(r"\s*([^,=()\s]+)\s*(?:=\s*([^,]*)| in \(([^)]*)\))?\s*(?:,|$)")


@dataclass
class WatchedLists:
    """What was told so far, as JSON by key, for each resourceVersion that was given out."""

    versions: Iterator[int]
    _told: dict[str, dict[str, str]] = field(default_factory=dict)

    def listed(self, items: list[Object]) -> Answer:
        version = self._next_version()
        self._told[version] = _texts(items)
        return Answer(200, {"metadata": {"resourceVersion": version}, "items": items})

    def watched(self, version: str, select: Callable[[], list[Object]]) -> Answer:
        """The next changes, one event each; none if nothing happens for a moment."""
        if version not in self._told:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            return Answer(200, json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
        end = time.monotonic() + _STREAM
        while not (events := list(self._events(version, select))) and time.monotonic() < end:
            time.sleep(_PAUSE)
        return Answer(200, b"".join(json.dumps(event).encode() + b"\n" for event in events))

    def _next_version(self) -> str:
        return str(next(self.versions))

    def _events(self, version: str, select: Callable[[], list[Object]]) -> Iterator[Object]:
        told, now = dict(self._told[version]), _texts(select())
        for key in [*(key for key in told if key not in now), *now]:
            if told.get(key) == now.get(key):
                continue
            kind = "DELETED" if key not in now else "MODIFIED" if key in told else "ADDED"
            item = json.loads(now.get(key) or told[key])
            item["metadata"]["resourceVersion"] = self._next_version()
            if key in now:
                told[key] = now[key]
            else:
                del told[key]
            self._told[item["metadata"]["resourceVersion"]] = dict(told)
            yield {"type": kind, "object": item}


def is_selected(selector: str, values: dict[str, str]) -> bool:
    """Whether labels or fields match a selector of the terms `key`, `key=value` and `key in (value,value)`."""
    for key, value, several in _TERM.findall(selector):
        if several:
            if values.get(key) not in several.split(","):
                return False
        elif f"{key}=" in selector.replace(" ", ""):
            if values.get(key, "") != value:
                return False
        elif key not in values:
            return False
    return True


def _texts(items: list[Object]) -> dict[str, str]:
    for _attempt in itertools.count():
        try:
            return {
                f"{item['metadata'].get('namespace')}/{item['metadata']['name']}": json.dumps(item) for item in items
            }
        except RuntimeError:  # a test changes it right now
            if _attempt == 100:
                raise
    raise AssertionError("the loop ends by itself")
