# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a migration takes, and what happens at its timeout."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_course import (
    Ending,
    Link,
    course,
    data_size,
    rate,
)

from unit.plugins.module_utils._kubevirt.machines import vmi

LINK = Link(bytes_per_second=2e6, setup=5)
GB = 10**9


def of_size(guest: str | None = None, requested: str | None = None, **status: Any) -> Any:
    domain: dict[str, Any] = {}
    if guest:
        domain["memory"] = {"guest": guest}
    if requested:
        domain["resources"] = {"requests": {"memory": requested}}
    return vmi(domain=domain, status=status)


def moved(capacity: str) -> Any:
    return {"volumeName": "disk", "sourcePVCInfo": {"capacity": {"storage": capacity}}}


@pytest.mark.parametrize(
    ("item", "size"),
    [
        (of_size("1Gi", "2Gi"), 2**30),
        (of_size(None, "2Gi"), 2**31),
        (of_size(), 0),
        (of_size("1G", migratedVolumes=[moved("10G"), moved("1G"), {"volumeName": "local"}]), 12 * GB),
    ],
)
def test_what_is_copied(item: Any, size: int) -> None:
    assert data_size(item) == size


@pytest.mark.parametrize(
    ("migrations", "bytes_per_second"),
    [
        (Migrations(), 1e6),
        (Migrations(parallel_outbound_per_node=1), 2e6),
        (Migrations(bandwidth=1000), 1000),
        (Migrations(bandwidth=10**9), 1e6),
        (Migrations(parallel_outbound_per_node=0), 2e6),
    ],
)
def test_what_leaves_a_node_together_shares_its_link(migrations: Migrations, bytes_per_second: float) -> None:
    assert rate(migrations, LINK) == bytes_per_second


@pytest.mark.parametrize(
    ("guest", "migrations", "seconds", "timeout", "ending"),
    [
        ("1G", Migrations(completion_timeout_per_gib=1000), 1005, 1000, Ending.IN_TIME),
        ("1G", Migrations(completion_timeout_per_gib=0), 1005, None, Ending.IN_TIME),
        ("1G", Migrations(completion_timeout_per_gib=999), 1004, 999, Ending.ABORTED),
        ("1100M", Migrations(completion_timeout_per_gib=600), 1105, 1200, Ending.IN_TIME),
        ("1G", Migrations(completion_timeout_per_gib=600, allow_workload_disruption=True), 1005, 600, Ending.PAUSED),
        ("1G", Migrations(completion_timeout_per_gib=400, allow_workload_disruption=True), 405, 400, Ending.ABORTED),
        (
            "1G",
            Migrations(completion_timeout_per_gib=400, allow_workload_disruption=True, post_copy=True),
            1005,
            400,
            Ending.POST_COPY,
        ),
        ("1G", Migrations(completion_timeout_per_gib=400, post_copy=True), 405, 400, Ending.ABORTED),
    ],
)
def test_courses(guest: str, migrations: Migrations, seconds: float, timeout: float | None, ending: Ending) -> None:
    found = course(of_size(guest), migrations, LINK)
    assert (found.seconds, found.timeout, found.ending) == (seconds, timeout, ending)
