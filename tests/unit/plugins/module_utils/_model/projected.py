# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a snapshot keeps of each kind and what it drops, from the tables projections*.yaml."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

# `list`: the kind, `kept` and `dropped`: of one and the same object.
Case = dict[str, Any]

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parent.glob("projections*.yaml"))
    for case in yaml.safe_load(path.read_text())
]


def merged(kept: Any, dropped: Any) -> Any:
    """The raw object: maps merged, lists item by item."""
    if isinstance(kept, dict) and isinstance(dropped, dict):
        return {key: merged(kept.get(key), dropped.get(key)) for key in kept | dropped}
    if isinstance(kept, list) and isinstance(dropped, list):
        return [merged(*pair) for pair in zip_longest(kept, dropped)]
    return dropped if kept is None else kept
