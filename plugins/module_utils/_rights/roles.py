# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which role and which module has which needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import (
    CANCEL,
    DISPENSABLE,
    EVICT,
    EXPLAIN,
    FIND_NODES,
    FOLLOW,
    FORGET,
    GIVE_BACK,
    HOLD_RUN,
    IDENTIFY,
    INTERRUPT,
    LOOK_AT_RUN,
    MIGRATE,
    READ,
    REMEMBER,
    SEE_FITNESS,
    START,
    TAKE,
    WITHDRAW,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Need, Right

_PLAN = (READ, IDENTIFY, HOLD_RUN, REMEMBER, FORGET, FIND_NODES, START)
# Who stops a VM starts it again: a drain that could not be undone leaves a node cordoned and a VM off.
_DRAIN = (READ, IDENTIFY, TAKE, REMEMBER, FOLLOW, MIGRATE, EXPLAIN, EVICT, INTERRUPT, START, WITHDRAW, CANCEL)
_UNCORDON = (IDENTIFY, SEE_FITNESS, GIVE_BACK, WITHDRAW, CANCEL, START)
_REBALANCE = (READ, IDENTIFY, MIGRATE, EXPLAIN, EVICT)
_ABORT = (IDENTIFY, HOLD_RUN, FORGET, FIND_NODES, CANCEL, GIVE_BACK, START)

# What accounts are made for: the roles, a whole run with what gives it up, and who only foretells one.
# Of what a right is for the first is told: rather what is done to a node than what is done for a run.
ROLES: Mapping[str, tuple[Need, ...]] = {
    "planning": (READ, IDENTIFY, LOOK_AT_RUN),
    "plan_maintenance": _PLAN,
    "drain": _DRAIN,
    "uncordon": _UNCORDON,
    "live_migrate": (READ, IDENTIFY, MIGRATE, EXPLAIN),
    "rebalance": _REBALANCE,
    "rolling_maintenance": tuple(dict.fromkeys((*_DRAIN, *_UNCORDON, *_PLAN, *_REBALANCE, *_ABORT))),
}

MODULES: Mapping[str, tuple[Need, ...]] = {
    "cluster_snapshot": (READ,),
    "maintenance_plan": (READ,),
    "maintenance_plan, resume": (READ, LOOK_AT_RUN),
    "maintenance_plan, invocation": (READ, HOLD_RUN, REMEMBER),
    "rebalance_plan": (READ,),
    "maintenance_run": (IDENTIFY, HOLD_RUN, REMEMBER, FORGET, FIND_NODES, START),
    "maintenance_run, aborted": _ABORT,
    "node_maintenance": (IDENTIFY, TAKE, GIVE_BACK),
    "node_drain": _DRAIN,
    "node_drain, restored": (IDENTIFY, START),
    "node_readiness": (IDENTIFY, SEE_FITNESS),
    "pod_eviction": (IDENTIFY, EVICT),
    "vmi_migration": (IDENTIFY, MIGRATE, EXPLAIN, CANCEL, WITHDRAW),
}


def reasons(needs: Iterable[Need]) -> dict[Right, list[str]]:
    """What each right is for, in the order of the needs."""
    found: dict[Right, list[str]] = {}
    for need in needs:
        for right, why in need.reasons.items():
            if why not in found.setdefault(right, []):
                found[right].append(why)
    return found


def demanded(needs: Iterable[Need]) -> dict[Right, list[str]]:
    """The same without those that the collection can do without."""
    return {right: why for right, why in reasons(needs).items() if right not in DISPENSABLE}
