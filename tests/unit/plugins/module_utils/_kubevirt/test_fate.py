# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a VM, by its eviction strategy, its owner and whether it can be migrated.

tests/integration/test_fate.py shows the same combinations to a real control plane.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fate import Event, Fate, fate

from unit.plugins.module_utils._kubevirt.machines import kubevirt, launcher, metadata, node, owned, vmi

Object = dict[str, Any]

VM, REPLICA_SET = "VirtualMachine", "VirtualMachineInstanceReplicaSet"
FIXED: Object = {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable"}]}
UNTOLD: Object = {"conditions": None}


def machine(strategy: str | None = None, status: Object | None = None) -> Object:
    return vmi(status=status, **({"evictionStrategy": strategy} if strategy else {}))


def vm(**spec: Any) -> Object:
    return {"metadata": metadata("db"), "spec": spec}


def told(event: Event, item: Object, pod: Object | None = None, **lists: Any) -> Fate:
    pods = [launcher(item) if pod is None else pod]
    return fate(item, event, surroundings({"nodes": [node()], "pods": pods, "vmis": [item], **lists}))


@pytest.mark.parametrize(
    ("item", "outcome", "says"),
    [
        (machine("LiveMigrate"), "migrate", "KubeVirt migrates the VM to another node, as its evictionStrategy is"),
        (machine("LiveMigrateIfPossible"), "migrate", "evictionStrategy is LiveMigrateIfPossible."),
        (machine("LiveMigrate", {"evacuationNodeName": "n1"}), "migrate", "is LiveMigrate."),
        (machine("LiveMigrate", FIXED), "block", "is LiveMigrate, and KubeVirt does not call it live-migratable."),
        (machine("LiveMigrate", UNTOLD), "block", "KubeVirt does not call it live-migratable."),
        (machine("LiveMigrate", {"selinuxContext": None}), "block", "which it cannot: KubeVirt can make no target pod"),
        (machine("LiveMigrateIfPossible", FIXED), "stay_down", "shuts the guest down, as its evictionStrategy is"),
        (machine("External"), "block", "until some other controller has moved the VM, as its evictionStrategy is"),
        (machine("None"), "stay_down", "is None, and nothing that owns it starts it again."),
        (machine(), "stay_down", "is None, and nothing"),
        (machine("LiveMigrate", {"phase": "Succeeded"}), "stay_down", "The VM has ended already, and nothing"),
    ],
)
@pytest.mark.parametrize("event", [Event.DRAIN, Event.EVICTION])
def test_evictions_by_strategy(event: Event, item: Object, outcome: str, says: str) -> None:
    found = told(event, item)
    assert found.outcome.value == outcome
    assert says in found.sentence
    assert (found.awaits.value == "external") is ("External" in found.sentence or "some other" in found.sentence)


def test_the_cluster_decides_for_vms_that_do_not() -> None:
    default = kubevirt(evictionStrategy="LiveMigrate")
    assert told(Event.DRAIN, machine(), kubevirts=[default]).outcome.value == "migrate"
    assert told(Event.DRAIN, machine("None"), kubevirts=[default]).outcome.value == "stay_down"


@pytest.mark.parametrize(
    ("spec", "evicted", "lost"),
    [
        ({"runStrategy": "Always"}, "restart", "restart"),
        ({"running": True}, "restart", "restart"),
        ({"runStrategy": "RerunOnFailure"}, "stay_down", "restart"),
        ({"runStrategy": "Once"}, "stay_down", "stay_down"),
        ({"runStrategy": "Manual"}, "stay_down", "stay_down"),
        ({"runStrategy": "Halted"}, "stay_down", "stay_down"),
        ({"running": False}, "stay_down", "stay_down"),
    ],
)
def test_run_strategies(spec: Object, evicted: str, lost: str) -> None:
    item = owned(machine(), VM, "db")
    drained, failed = (told(event, item, vms=[vm(**spec)]) for event in (Event.DRAIN, Event.NODE_FAILURE))
    assert (drained.outcome.value, failed.outcome.value) == (evicted, lost)
    assert (drained.awaits.value, failed.awaits.value) == ("", "fencing")
    assert drained.where.value == ("elsewhere" if evicted == "restart" else "")
    assert failed.where.value == ("anywhere" if lost == "restart" else "")
    assert "VirtualMachine db" in drained.sentence


@pytest.mark.parametrize(
    ("spec", "seconds", "outcome", "where", "awaits"),
    [
        ({}, 5, "restart", "elsewhere", ""),
        ({}, None, "restart", "anywhere", "fencing"),
        ({"paused": True}, 5, "stay_down", "", "fencing"),
    ],
)
def test_replica_sets_on_a_lost_node(spec: Object, seconds: int | None, outcome: str, where: str, awaits: str) -> None:
    item = owned(machine("LiveMigrate"), REPLICA_SET, "db")
    toleration: Object = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    other = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 1}
    pod = launcher(item, tolerations=[other, toleration])
    found = told(Event.NODE_FAILURE, item, pod, vmireplicasets=[{"metadata": metadata("db"), "spec": spec}])
    assert (found.outcome.value, found.where.value, found.awaits.value) == (outcome, where, awaits)
    assert found.sentence.startswith("5 s after" if not awaits else "The guest is gone")
    assert found.remedy.startswith("Fence")


def test_a_replica_set_replaces_what_is_evicted() -> None:
    item = owned(machine(), REPLICA_SET, "db")
    replica_set = {"metadata": metadata("db"), "spec": {}}
    found = told(Event.EVICTION, item, vmireplicasets=[replica_set])
    assert (found.outcome.value, found.where.value) == ("restart", "anywhere")
    assert found.sentence.endswith("starts another one in its place, on whichever node the scheduler takes.")
    replica_set["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert told(Event.EVICTION, item, vmireplicasets=[replica_set]).outcome.value == "stay_down"


def test_an_owner_that_is_not_known_decides() -> None:
    found = told(Event.EVICTION, owned(machine(), VM, "db"))
    assert found.outcome.value == "unknown"
    assert "VirtualMachine db, which decides whether it starts again, is not known" in found.sentence


def test_a_budget_counts_only_where_kubevirt_lets_the_pod_go() -> None:
    selector = {"matchLabels": {"app": "db"}}
    budget = {"metadata": metadata("b"), "spec": {"selector": selector}, "status": {"disruptionsAllowed": 0}}
    stopped = told(Event.EVICTION, machine(), pdbs=[budget])
    assert stopped.outcome.value == "block"
    assert "PodDisruptionBudget b allows no disruption" in stopped.sentence
    assert told(Event.EVICTION, machine("LiveMigrate"), pdbs=[budget]).outcome.value == "migrate"


def test_what_holds_a_migration_for_a_while_only_delays_it() -> None:
    backup = {"changedBlockTracking": {"backupStatus": {"backupName": "nightly"}}}
    assert told(Event.DRAIN, machine("LiveMigrate", backup)).outcome.value == "migrate"


def test_data_for_a_result_is_plain() -> None:
    assert told(Event.DRAIN, machine("External")).to_json() == {
        "event": "drain",
        "outcome": "block",
        "where": "",
        "awaits": "external",
        "message": "The eviction is refused until some other controller has moved the VM, as its evictionStrategy is "
        "External.",
        "remedy": "Migrate it yourself, or see that the controller which the VM relies on runs.",
    }
