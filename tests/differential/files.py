# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases in files: such as are given to the command, and such as are kept as unit tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from differential import upstream
from differential.shrink import tidy

Json = dict[str, Any]

# What the unit tests replay. Their files hold one case each, with a reason (`#`) and the `expected` answers.
KEPT = Path(__file__).resolve().parents[1] / "unit/plugins/module_utils/_scheduler/cases"
SINGLE = ("pod", "scores", "profile", "stored", "#", "expected")


def read(path: Path) -> Iterator[Json]:
    """The cases of a file: one JSON document, or one on each line. Raises ValueError.

    Those that do not say so (`stored`) are given API defaults before they are judged.
    """
    text = path.read_text()
    try:
        yield normal(json.loads(text))
    except json.JSONDecodeError:
        for line in filter(None, text.splitlines()):
            yield normal(json.loads(line))


def normal(case: Json) -> Json:
    """A case that names its lists and its only pod side by side, `{"nodes": [...], ..., "pod": {...}}`, in our form."""
    if "pod" not in case:
        return case
    lists = {name: value for name, value in case.items() if name not in SINGLE}
    rest = {name: case[name] for name in SINGLE if name in case and name != "pod"}
    return {**rest, "lists": lists, "asked": [case["pod"]]}


def kept() -> list[Path]:
    return sorted(KEPT.glob("*.json"))


def keep(case: Json, reason: str) -> Path:
    """Write a stored case with what kube-scheduler answers; the name is made from the content."""
    body = {"#": reason, **case}
    name = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:10]
    path = KEPT / f"found-{name}.json"
    write(path, {**body, "expected": next(upstream.judge([case]))})
    return path


def expect(path: Path) -> None:
    """Write a file of one case anew: as an API server stores it, and with what kube-scheduler answers."""
    (case,) = read(path)
    stored = tidy(case)
    write(path, {**stored, "expected": next(upstream.judge([stored]))})


def write(path: Path, case: Json) -> None:
    path.write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n")
