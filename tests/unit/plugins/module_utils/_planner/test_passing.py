# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs that cannot be migrated for now: what passes is waited for, what lasts is left to their policies."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Outcome
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

from unit.plugins.module_utils._planner.scene import Scene, node

FIXED = {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable"}]}
BACKUP = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}
ATTACHING = {"volumeStatus": [{"name": "disk", "hotplugVolume": {}, "phase": "AttachedToNode"}]}
PASSING: list[tuple[dict[str, Any], str]] = [
    (BACKUP, "backup-in-progress"),
    (ATTACHING, "hotplug-volume-not-attached"),
    ({"evacuationNodeName": "a"}, "evacuation-in-progress"),
    ({"nodeName": "b"}, "arriving"),
    ({"phase": "Scheduled"}, "not-running"),
    ({"phase": "Failed", **FIXED}, "not-running"),
]


@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
@pytest.mark.parametrize(("status", "blocker"), PASSING)
def test_what_passes_is_waited_for_whatever_the_policy(status: dict[str, Any], blocker: str, policy: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=status)
    plan = plan_drain(scene.lists, ["a"], policies=compile_rules([{"policy": policy}]))
    (machine,) = plan.stuck
    (found,) = machine.blockers
    assert (machine.outcome, machine.wave, machine.target_node) == (Outcome.WAITS, None, None)
    assert (plan.feasible, plan.passing) == (False, True)
    assert (found.id, machine.why) == (blocker, f"It cannot be migrated yet: {found.clause}.")
    assert plan.message == f"a cannot be drained yet: VM shop/vm cannot leave yet ({found.clause})."


@pytest.mark.parametrize("policy", ["fail", "stop", "restart"])
def test_a_vm_that_ends_already_is_not_ended_again(policy: str) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status=FIXED)
    scene.lists["vmis"][0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (machine,) = plan_drain(scene.lists, ["a"], policies=compile_rules([{"policy": policy}])).stuck
    assert (machine.outcome, [blocker.id for blocker in machine.blockers]) == (Outcome.WAITS, ["being-deleted"])


@pytest.mark.parametrize(
    ("policy", "outcome"), [("fail", Outcome.STAYS), ("stop", Outcome.STOPS), ("restart", Outcome.RESTARTS)]
)
def test_nobody_waits_for_what_passes_if_something_else_lasts(policy: str, outcome: Outcome) -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a", status={**FIXED, **BACKUP})
    (machine,) = plan_drain(scene.lists, ["a"], policies=compile_rules([{"policy": policy}])).stuck
    assert (machine.outcome, len(machine.blockers)) == (outcome, 2)


def test_a_drain_that_fails_in_any_case_is_not_only_waiting() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("busy", "a", status=BACKUP)
    scene.vm("fixed", "a", status=FIXED)
    plan = plan_drain(scene.lists, ["a"])
    assert (plan.feasible, plan.passing) == (False, False)
    assert plan.message.startswith("a cannot be drained: VM shop/fixed cannot leave (")
    assert "; VM shop/busy cannot leave yet (backup nightly of the VMI is in progress" in plan.message


def test_a_plan_that_is_carried_out_waits_for_nothing() -> None:
    scene = Scene(node("a"), node("b"))
    scene.vm("vm", "a")
    plan = plan_drain(scene.lists, ["a"])
    assert (plan.feasible, plan.passing) == (True, False)
