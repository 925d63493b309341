# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster goes on while a drain decides: what ends, moves or is busy meanwhile is no reason to fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import SOURCE_LABEL
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import (
    BUDGET,
    PODS,
    SUBRESOURCES,
    VMIS,
    DrainingApi,
    busy_node,
    pod_path,
    take_anew,
    vm_path,
)
from unit.plugins.support.fake_api import SILENCE, Answer, Object, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import FAILURE, KUBEVIRT, MIGRATIONS, SUCCESS, vmi_path

RESTART = [{"policy": "restart"}]
NEAR = {"labelSelector": {"matchLabels": {"app": "api"}}, "topologyKey": "kubernetes.io/hostname"}
NEAR_PODS = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}}
DB = vmi_path("db")
EVACUATE_CANCEL = f"{SUBRESOURCES}{DB.removeprefix(KUBEVIRT)}/evacuate/cancel"


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = busy_node()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


def before_reading(api: DrainingApi, path: str, change: Callable[[], object], *, snapshot: bool = False) -> None:
    """Something happens just before a list is read for the first time, for the plan (`snapshot`) or after it."""
    left = [change]

    def act(request: Request) -> Answer | None:
        if left and request.method == "GET" and snapshot is ("limit" in request.query):
            left.pop()()
        return None

    api.faults[path] = act


def test_a_kubevirt_that_cannot_pin_is_told_before_anything_is_touched(drain: Any, api: DrainingApi) -> None:
    (kubevirt,) = [item for path, item in api.objects.items() if "/kubevirts/" in path]
    kubevirt["status"]["observedKubeVirtVersion"] = "v1.5.3"
    words = (
        "Cannot drain node n1: the cluster has KubeVirt v1.5.3, which cannot pin a migration to a node; KubeVirt 1.6"
    )
    assert drain()["msg"].startswith(words)
    assert api.writes() == []
    del api.objects[DB]
    assert drain()["left"] == []


def test_a_vm_that_ends_while_the_drain_decides_has_left(drain: Any, api: DrainingApi) -> None:
    before_reading(api, VMIS, lambda: api.objects.pop(DB))
    result = drain()
    assert (result["left"], result["evicted"][0]["outcome"]) == ([], "evicted")
    assert [move["outcome"] for move in result["moves"]] == ["ended"]
    assert api.migrations() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda vmi: vmi["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"), "the VMI is being deleted"),
        (
            lambda vmi: vmi["status"].update(phase="Scheduled"),
            "the VMI is Scheduled, and only a running one can be migrated",
        ),
    ],
)
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_vm_that_cannot_leave_yet_is_waited_for(
    drain: Any, api: DrainingApi, change: Callable[[Object], object], words: str, *, snapshot: bool
) -> None:
    before_reading(api, VMIS, lambda: change(api.objects[DB]), snapshot=snapshot)
    result = drain(wait_timeout=1)
    assert (result["error"]["reason"], result["moves"]) == ("DeadlineExceeded", [])
    assert f"after 1 s there is left vm shop/db: {words}" in result["msg"]
    assert result["evicted"][0]["outcome"] == "evicted"


def test_a_vm_that_kubevirt_evacuates_is_waited_for(drain: Any, api: DrainingApi) -> None:
    api.objects[DB]["status"]["evacuationNodeName"] = "n1"
    result = drain(wait_timeout=1)
    words = "KubeVirt is evacuating the VMI from node n1, as its pod was evicted, and migrates it itself"
    assert f"after 1 s there is left vm shop/db: {words}" in result["msg"]
    assert (result["error"]["reason"], api.migrations()) == ("DeadlineExceeded", [])


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_an_evacuation_is_taken_over_with_its_migration(drain: Any, api: DrainingApi, *, is_withdrawn: bool) -> None:
    """Also by who finds it withdrawn already, as the server went away right after that."""
    api.add_migration("kubevirt-evacuation-x", "db", phase="Scheduling", course=())
    if not is_withdrawn:
        api.objects[DB]["status"]["evacuationNodeName"] = "n1"
    result = drain(evacuations="take_over", wait_timeout=5)
    assert (result["left"], [move["outcome"] for move in result["moves"]]) == ([], ["migrated"])
    assert "evacuationNodeName" not in api.objects[DB]["status"]


def test_an_evacuation_that_cannot_be_withdrawn_yet_keeps_nothing_else_waiting(drain: Any, api: DrainingApi) -> None:
    api.objects[DB]["status"]["evacuationNodeName"] = "n1"
    api.evictions = [BUDGET]
    busy = refusal(429, "TooManyRequests", "too many requests")
    api.faults[EVACUATE_CANCEL] = lambda _request: busy if api.left() else None
    result = drain(evacuations="take_over", wait_timeout=5)
    assert (result["left"], [move["outcome"] for move in result["moves"]]) == ([], ["migrated"])


def test_a_pod_that_has_the_name_of_a_vm_is_told_beside_it(drain: Any, api: DrainingApi) -> None:
    api.courses = [("Pending", "Scheduling", "Running")]
    before_reading(api, VMIS, lambda: api.add_pod("db", owner="", metadata={"uid": "uid-of-a-pod"}))
    assert [(entry["kind"], entry["name"]) for entry in drain(wait_timeout=1)["left"]] == [("vm", "db"), ("pod", "db")]


def test_a_vm_that_waits_for_a_pod_that_may_not_go_is_not_waited_for(drain: Any, api: DrainingApi) -> None:
    api.objects[DB]["spec"]["affinity"] = NEAR_PODS
    api.objects[pod_path("api")]["metadata"]["labels"] = {"app": "api"}
    api.evictions = [refusal(422, "Invalid", "no such grace period")]
    result = drain()
    assert (result["error"]["reason"], api.migrations()) == ("DrainFailed", [])
    assert [(entry["name"], entry["why"].partition(",")[0]) for entry in result["left"]] == [
        ("db", "waiting"),
        ("api", "failed"),
    ]


def test_a_node_that_was_taken_in_vain_is_a_change(drain: Any, api: DrainingApi) -> None:
    def deny(request: Request) -> Answer | None:
        is_asked = f"{SOURCE_LABEL}=n1" in request.query.get("labelSelector", "")
        return refusal(403, "Forbidden", "a policy forbids it") if is_asked else None

    api.faults[f"{KUBEVIRT}/{MIGRATIONS}"] = deny
    result = drain()
    assert (result["failed"], result["changed"], result["moves"]) == (True, True, [])
    assert api.node("n1")["spec"]["unschedulable"]
    assert not drain().get("changed")


def test_what_is_waited_for_is_told_once(drain: Any, api: DrainingApi) -> None:
    before_reading(api, VMIS, lambda: api.objects[DB]["status"].update(phase="Scheduled"))
    with listener() as heard:
        drain(_progress=heard.path, wait_timeout=4)
    told = "node n1: shop/db: n1 -> n2: waiting, it is Scheduled, and only a running VM can leave"
    assert [line for line in heard.told if "waiting" in line] == [told]


def test_a_vm_that_has_moved_while_the_drain_decides_has_left(drain: Any, api: DrainingApi) -> None:
    api.add_node("n3", {"kubernetes.io/hostname": "n3"})
    before_reading(api, VMIS, lambda: api.objects[DB]["status"].update(nodeName="n3"))
    result = drain()
    assert (result["left"], [move["outcome"] for move in result["moves"]]) == ([], ["already_there"])
    assert api.migrations() == []
    assert api.objects[DB]["status"]["nodeName"] == "n3"


def test_a_vm_that_ends_before_the_plan_is_made_is_not_in_it(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    before_reading(api, VMIS, lambda: api.objects.pop(DB), snapshot=True)
    result = drain(policies=RESTART)
    assert (result["left"], result["moves"], result["interrupted"][0]["outcome"]) == ([], [], "restarted")


def test_a_vm_that_kubevirt_would_not_start_again_is_told_in_a_sentence(drain: Any, api: DrainingApi) -> None:
    api.add_vm("pets", "Manual")
    devices = {"hostDevices": [{"name": "gpu", "deviceName": "example.org/gpu"}]}
    api.objects[vm_path("pets")]["spec"]["template"] = {"spec": {"domain": {"devices": devices}}}
    permitted = {"pciHostDevices": [{"pciVendorSelector": "10DE:1EB8", "resourceName": "example.org/other"}]}
    api.configure(permittedHostDevices=permitted)
    vmi = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "pets", "uid": "uid-pets"}
    metadata = {"labels": {"kubevirt.io": "virt-launcher"}, "ownerReferences": [{**vmi, "controller": True}]}
    api.add_pod("virt-launcher-pets", metadata=metadata)
    result = drain(policies=RESTART)
    assert result["msg"].startswith("Cannot drain node n1")
    assert "nor can it restart: KubeVirt makes no pod for shop/pets: " in result["msg"]
    assert "example.org/gpu" in result["msg"]
    assert api.writes() == []


def test_a_task_that_plans_nothing_does_without_numpy() -> None:
    code = f"import sys, {main.__module__}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("most", "last"), [(None, "migrated"), (1, "migrated"), (0, "waiting")])
def test_after_too_many_failures_nothing_more_is_begun(
    drain: Any, api: DrainingApi, most: int | None, last: str
) -> None:
    """The second VM is on its way already when it is clear that the first will not leave, and arrives."""
    api.configure(migrations={"parallelOutboundMigrationsPerNode": 1})
    del api.objects[DB]
    for name in ("a", "b", "c"):
        api.add_vmi(name)
    api.courses = [FAILURE, SUCCESS]
    limit = {} if most is None else {"max_failed_vms": most}
    with listener() as heard:
        result = drain(retries=0, _progress=heard.path, **limit)
    outcomes = {move["name"]: move["outcome"] for move in result["moves"]}
    assert outcomes == {"a": "failed", "b": "migrated", "c": last}
    assert [entry["name"] for entry in result["left"]] == (["a", "c"] if most == 0 else ["a"])
    assert result["error"]["reason"] == "DrainFailed"
    words = "more VMs than max_failed_vms have failed for good (1), so nothing more was begun; there is left vm shop/a"
    assert (words in result["msg"]) is (most == 0)
    assert ("node n1: VMs that have failed for good: 1. Nothing more is begun" in heard.told) is (most == 0)


def test_a_limit_of_failures_below_none_is_refused(drain: Any, api: DrainingApi) -> None:
    assert "max_failed_vms is -1; give 0 at least" in drain(max_failed_vms=-1)["msg"]


def test_check_mode_asks_again_when_an_answer_is_lost(
    drain: Any, api: DrainingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("READING", "BRIEF"):
        monkeypatch.setattr(persistence, name, 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    api.evictions = [SILENCE]
    result = drain(check=True)
    assert not result.get("failed"), result["msg"]
    assert result["evicted"][0]["outcome"] == "would_evict"
    assert api.left() == ["api"]


@pytest.mark.parametrize("check", [False, True])
def test_what_a_reboot_changes_is_told(drain: Any, api: DrainingApi, check: bool) -> None:
    heartbeat = "2026-01-01T00:01:00Z"
    api.node("n1")["status"]["nodeInfo"] = {"bootID": "b1"}
    api.node("n1")["metadata"]["annotations"] = {"kubevirt.io/heartbeat": heartbeat}
    result = drain(check=check)
    assert (result["boot_id"], result["heartbeat"]) == ("b1", heartbeat)
    if not check:
        api.node("n1")["status"]["nodeInfo"] = {"bootID": "b2"}
        last = drain(state="verified")
        assert (last["boot_id"], last["heartbeat"], last["left"]) == ("b2", heartbeat, [])


def uncordon(api: DrainingApi, node: str) -> None:
    api.node(node)["spec"].pop("unschedulable", None)


@pytest.mark.parametrize("happens", [uncordon, take_anew])
def test_a_node_that_is_uncordoned_while_it_is_verified_is_not_called_empty(
    drain: Any, api: DrainingApi, happens: Callable[[DrainingApi, str], None]
) -> None:
    """Though it may be cordoned again by the same owner."""
    drain()
    api.faults[PODS] = lambda _request: happens(api, "n1")
    assert drain(state="verified")["error"]["reason"] == "NotCordoned"


def test_a_cordon_that_was_kept_and_is_the_owners_by_now_was_not_there_all_the_time(
    drain: Any, api: DrainingApi
) -> None:
    api.node("n1")["spec"]["unschedulable"] = True
    drain(foreign_cordon="keep")
    mark = Mark("me", "2026-01-01T00:00:00Z")
    metadata = api.node("n1")["metadata"]
    api.faults[PODS] = lambda _request: metadata.setdefault("annotations", {}).update({CORDON_NOTE: mark.to_text()})
    assert drain(state="verified", foreign_cordon="keep")["error"]["reason"] == "NotCordoned"
