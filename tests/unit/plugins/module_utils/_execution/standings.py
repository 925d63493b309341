# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Standings of drains, with what a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing

# Of the third of 20 batches, three nodes in each, 17 VMs on each node: nothing has moved yet.
BEGUN = Standing(
    run="kernel",
    node="worker-07",
    batch=3,
    batches=20,
    nodes=60,
    done=6,
    leaving=17,
    gone=0,
    flying=0,
    migrations=17,
    settled=0,
    migrated=0,
    planned=51,
    span=300,
    later=17 * 300,
)


def standing(node: str = "worker-07", **changes: Any) -> Standing:
    return replace(BEGUN, node=node, **changes)


def moved(node: str, count: int, **changes: Any) -> Standing:
    """After so many of its VMs have migrated."""
    return standing(node, **{"gone": count, "settled": count, "migrated": count, **changes})
