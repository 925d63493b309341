# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark on what was stopped for a node, so that it can be started when the node returns.

A label to find it by, and an annotation with an entry for each node: a replica set may lack VMIs of several.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Object = Mapping[str, Any]

LABEL = "virtops.kubevirt/stopped"
ANNOTATION = "virtops.kubevirt/stopped-for"


@dataclass(frozen=True, slots=True)
class StoppedMark:
    """`run_strategy`: of a VM when it ran, empty for a replica set. `since`: RFC 3339."""

    owner: str
    run_strategy: str
    since: str


def find_marks(item: Object) -> dict[str, StoppedMark]:
    """By node; none as well for an annotation that was tampered with."""
    text = (item["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        return {str(node): StoppedMark(**mark) for node, mark in json.loads(text or "").items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def marked(marks: Mapping[str, StoppedMark]) -> dict[str, Any]:
    """The metadata to merge into an object so that it carries these marks, or none."""
    text = json.dumps({node: asdict(mark) for node, mark in marks.items()}, sort_keys=True)
    return {
        "labels": {LABEL: "true" if marks else None},
        "annotations": {ANNOTATION: text if marks else None},
    }
