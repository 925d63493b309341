# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is fit for virtual machines when role uncordon would give it back."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fitness import (
    HEARTBEAT,
    BeforeMaintenance,
    FitnessStatus,
    boot_id,
    fitness,
    heartbeat,
    node_obstacles,
)

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=timezone.utc)
FRESH, OLD = "2026-01-01T00:07:00Z", "2026-01-01T00:06:59Z"
LABEL = "kubevirt.io/schedulable"
STILL = "its boot ID is still b1: reboot it, or set rebooted to false"
NO_SIGN = "virt-handler has given no sign of life: see to its pod on the node"


def node(said: str | None, label: str | None, ready: str, booted: str = "b1", reported: str = FRESH) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "n1", "labels": {}, "annotations": {}}
    if said is not None:
        metadata["annotations"][HEARTBEAT] = said
    if label is not None:
        metadata["labels"][LABEL] = label
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": reported}
    return {"metadata": metadata, "status": {"conditions": [condition], "nodeInfo": {"bootID": booted}}}


def doubted(heard: str, reported: str) -> str:
    before = f"virt-handler was last heard of at {heard}, which may be before the reboot, as the kubelet "
    return f"{before}{reported}: see to its pod on the node"


@pytest.mark.parametrize(
    ("said", "label", "ready", "obstacles"),
    [
        (FRESH, "true", "True", ()),
        ("2026-01-01T00:20:00Z", "true", "True", ()),  # another machine's clock
        (FRESH, "true", "Unknown", ("it is not Ready",)),
        (OLD, "true", "True", (f"virt-handler was last heard of at {OLD}",)),
        (None, "true", "True", ("virt-handler has given no sign of life",)),
        ("{{ now() }}", "true", "True", ("virt-handler has given no sign of life",)),
        (f"{OLD}\x1b[2J; all is well", "true", "True", (f"virt-handler was last heard of at {OLD}",)),
        ("0001-01-01T00:00:00Z", "true", "True", ("virt-handler was last heard of at 0001-01-01T00:00:00Z",)),
        (FRESH, "false", "True", (f"its label {LABEL} is not true",)),
        (FRESH, None, "True", (f"its label {LABEL} is not true",)),
    ],
)
def test_what_keeps_virtual_machines_away(
    said: str | None, label: str | None, ready: str, obstacles: tuple[str, ...]
) -> None:
    found = fitness(node(said, label, ready), NOW, 180)
    assert tuple(obstacle.why for obstacle in found.obstacles) == obstacles
    assert found.status is (FitnessStatus.UNFIT if obstacles else FitnessStatus.FIT)


def test_a_limit_that_nothing_reaches_ends_nothing() -> None:
    assert not node_obstacles(node("0001-01-01T00:00:00Z", "true", "True"), NOW, 10**15)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_node_without_virt_handler_is_not_called_unfit(ready: str) -> None:
    found = fitness(node(None, None, ready), NOW, 180)
    assert (found.status, found.obstacles) == (FitnessStatus.ABSENT, ())


def test_nor_is_it_given_back() -> None:
    label = f"its label {LABEL} is not true: see to virt-handler on it"
    assert [*map(str, node_obstacles(node(None, None, "True"), NOW, 180))] == [NO_SIGN, label]


@pytest.mark.parametrize(
    ("before", "booted", "obstacles"),
    [
        (BeforeMaintenance("b1", FRESH, rebooted=True), "b1", [STILL]),
        (BeforeMaintenance("b1", FRESH), "b1", []),
        (BeforeMaintenance("b1", OLD, rebooted=True), "b2", []),
        (BeforeMaintenance("b1", OLD), "b2", []),
        (BeforeMaintenance(), "b2", []),
        # It tells neither that it has rebooted nor that it has not.
        (
            BeforeMaintenance("b1", OLD, rebooted=True),
            "",
            ["it has no boot ID: reboot it, or set rebooted to false"],
        ),
        (BeforeMaintenance("b1", OLD), "", []),
    ],
)
def test_a_boot_id_tells_of_a_reboot(before: BeforeMaintenance, booted: str, obstacles: list[str]) -> None:
    found = node_obstacles(node(FRESH, "true", "True", booted), NOW, 180, before)
    assert [*map(str, found)] == obstacles


@pytest.mark.parametrize(
    ("said", "reported", "last", "obstacles"),
    [
        ("2026-01-01T00:08:30Z", "2026-01-01T00:08:00Z", FRESH, []),
        ("2026-01-01T00:08:00Z", "2026-01-01T00:08:00Z", FRESH, []),
        # Said before the reboot, of which the kubelet has told since.
        (FRESH, "2026-01-01T00:08:00Z", FRESH, [doubted(FRESH, "has reported at 2026-01-01T00:08:00Z")]),
        # The report may be of before the reboot itself.
        (FRESH, FRESH, FRESH, [doubted(FRESH, f"has reported at {FRESH}")]),
        (FRESH, FRESH, "", []),
        (FRESH, FRESH, "nonsense", []),
        (FRESH, "", OLD, [doubted(FRESH, "does not say when it has reported")]),
        (
            OLD,
            "2026-01-01T00:08:00Z",
            OLD,
            [
                f"virt-handler was last heard of at {OLD}: see to its pod on the node",
                doubted(OLD, "has reported at 2026-01-01T00:08:00Z"),
            ],
        ),
        ("", "2026-01-01T00:08:00Z", OLD, [NO_SIGN]),
    ],
)
def test_after_a_reboot_old_words_do_not_count(said: str, reported: str, last: str, obstacles: list[str]) -> None:
    found = node_obstacles(
        node(said, "true", "True", "b2", reported), NOW, 180, BeforeMaintenance("b1", last, rebooted=True)
    )
    assert [*map(str, found)] == obstacles


def test_what_a_node_says_is_only_text() -> None:
    hostile = "\x1b[2J\nTASK [ok]" * 1000
    (found,) = node_obstacles(
        node(FRESH, "true", "True", hostile), NOW, 180, BeforeMaintenance(hostile, FRESH, rebooted=True)
    )
    assert str(found).isprintable()
    assert len(str(found)) < 250


def test_what_is_not_there_is_empty() -> None:
    empty = {"metadata": {"name": "n1"}, "status": {}}
    assert (boot_id(empty), heartbeat(empty)) == ("", "")
    assert (boot_id(node(FRESH, None, "True")), heartbeat(node(FRESH, None, "True"))) == ("b1", FRESH)
