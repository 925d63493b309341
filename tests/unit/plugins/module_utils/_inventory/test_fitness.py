# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is fit for virtual machines when role uncordon would give it back."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.fitness import (
    HEARTBEAT,
    FitnessStatus,
    fitness,
)

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=timezone.utc)
FRESH, OLD = "2026-01-01T00:07:00Z", "2026-01-01T00:06:59Z"
LABEL = "kubevirt.io/schedulable"


def judged(heartbeat: str | None, label: str | None, ready: str) -> Any:
    metadata: dict[str, Any] = {"name": "n1", "labels": {}, "annotations": {}}
    if heartbeat is not None:
        metadata["annotations"][HEARTBEAT] = heartbeat
    if label is not None:
        metadata["labels"][LABEL] = label
    return fitness({"metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": ready}]}}, NOW, 180)


@pytest.mark.parametrize(
    ("heartbeat", "label", "ready", "obstacles"),
    [
        (FRESH, "true", "True", ()),
        ("2026-01-01T00:20:00Z", "true", "True", ()),  # another machine's clock
        (FRESH, "true", "Unknown", ("it is not Ready",)),
        (OLD, "true", "True", (f"virt-handler was last heard of at {OLD}",)),
        (None, "true", "True", ("virt-handler has given no sign of life",)),
        ("{{ now() }}", "true", "True", ("virt-handler has given no sign of life",)),
        (FRESH, "false", "True", (f"its label {LABEL} is not true",)),
        (FRESH, None, "True", (f"its label {LABEL} is not true",)),
    ],
)
def test_what_keeps_virtual_machines_away(
    heartbeat: str | None, label: str | None, ready: str, obstacles: tuple[str, ...]
) -> None:
    found = judged(heartbeat, label, ready)
    assert found.obstacles == obstacles
    assert found.status is (FitnessStatus.UNFIT if obstacles else FitnessStatus.FIT)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_node_without_virt_handler_is_not_called_unfit(ready: str) -> None:
    found = judged(None, None, ready)
    assert (found.status, found.obstacles) == (FitnessStatus.ABSENT, ())
