# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a run: what each start of it has told of what it did, kept beside what the run remembers.

It is lines for people, as whoever reads it later has nothing else of the run. A run that fails again and again, as each
night, tells each time: kept are the first start, with which it began, and the newest ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import BROKEN, RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import Invocation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import printable

REPORT_DOCUMENT = "report"
# Starts of which the report is kept.
MOST = 20
_SCHEMA = "virtops.kubevirt/run-report/1"
_TEXTS = ("invocation", "user", "host", "told")


@dataclass(frozen=True, slots=True)
class RunReport:
    """parts: of the first start and the newest ones, the oldest first. left_out: how many came between these.

    warnings: sentences on what is not among them.
    """

    parts: tuple[JsonObject, ...] = ()
    left_out: int = 0
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Of all parts, each under one that says whose it is. Others than this collection may have written them."""
        found: list[str] = []
        for number, part in enumerate(self.parts):
            if number == 1 and self.left_out:
                found.append(f"Starts of the run whose reports are left out here: {self.left_out}.")
            found += [f"Told by {part['user']} on {part['host']}, {part['told']}.", *part["lines"]]
        return [printable(line) for line in found]


def find(store: RunStore) -> RunReport:
    """What is kept. Raises Failure, but not for a document that is no report, of which a warning tells."""
    try:
        found = store.get(REPORT_DOCUMENT)
    except Failure as error:
        if error.reason != BROKEN:
            raise
        return RunReport(warnings=(str(error),))
    if found is None:
        return RunReport()
    report = _decoded(found.content)
    if report is None:
        return RunReport(warnings=(f"Of run {store.run} its report cannot be read: this release writes another one.",))
    return report


def keep(store: RunStore, invocation: Invocation, lines: Sequence[str]) -> RunReport:
    """With the lines of one start, in place of what that has told before. Raises Failure."""
    before = find(store)
    part: JsonObject = {
        "invocation": invocation.id,
        "user": invocation.user,
        "host": invocation.host,
        "told": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lines": list(lines),
    }
    known = [*(other for other in before.parts if other["invocation"] != invocation.id), part]
    first, newest = known[:1], known[1:][1 - MOST :]
    left_out = before.left_out + len(known) - len(first) - len(newest)
    document = {"schema": _SCHEMA, "parts": [*first, *newest], "left_out": left_out}
    store.put(REPORT_DOCUMENT, json.dumps(document, separators=(",", ":"), sort_keys=True).encode())
    return RunReport((*first, *newest), left_out, before.warnings)


def _decoded(content: bytes) -> RunReport | None:
    """None if it is no report."""
    given = embedded(content.decode(errors="replace"))
    if not isinstance(given, dict) or given.get("schema") != _SCHEMA or not isinstance(given.get("parts"), list):
        return None
    if not isinstance(given.get("left_out"), int) or not all(map(_is_part, given["parts"])):
        return None
    return RunReport(tuple(given["parts"]), given["left_out"])


def _is_part(given: Any) -> bool:
    if not isinstance(given, dict) or given.keys() != {*_TEXTS, "lines"} or not isinstance(given["lines"], list):
        return False
    return all(isinstance(text, str) for text in (*(given[name] for name in _TEXTS), *given["lines"]))
