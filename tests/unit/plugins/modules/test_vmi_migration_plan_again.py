# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan of moves is given again by who was killed after an eviction: what follows still waits for another pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, plan_of
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, pod, vm
from unit.plugins.support.draining_api import fill, pod_path
from unit.plugins.support.evicting_api import PODS, READY, EvictingApi
from unit.plugins.support.fake_api import Request, serving
from unit.plugins.support.migrating_api import migrations_path
from unit.plugins.support.modules import ModuleRunner, Result

A, B = (action(ActionKind.EVICT, pod(name), "n1", "n2") for name in ("o-aaaaa", "o-bbbbb"))
PENDING = {"phase": "Pending"}
MADE = {"generateName": "o-"}
EARLIER, LATER = "2026-11-20T12:00:00Z", "2026-11-21T12:00:00Z"


@pytest.fixture
def api(authority: Authority) -> Iterator[EvictingApi]:
    """VMI db on n1, and of ReplicaSet o a pod that has never been ready, and one that is."""
    fake = EvictingApi(forgotten=True)
    fill(fake, "n1", "n2", "n3")
    fake.add_vmi("db")
    fake.add_pod("o-xxxxx", metadata=MADE, status=PENDING)
    fake.add_pod("o-yyyyy", metadata=MADE, status=READY)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def again(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    """Evict these pods, then migrate db."""

    def move(*evicted: Any) -> Result:
        plan = plan_of([*evicted, action(ActionKind.MIGRATE, vm("db"), "n1", "n2", *evicted)])
        return partial(run_module, main, **connection, wait_timeout=10)(plan=to_json(plan))

    return move


def later(api: EvictingApi, *names: str, status: Any = None, **metadata: Any) -> list[str]:
    """What a controller has made since, ready one after the other; returns what is not ready when db is migrated."""
    made, looks, missed = list[Any](), list[Request](), list[str]()
    for name in names:
        fields = {**MADE, "creationTimestamp": LATER, "uid": f"another-{name}", **metadata}
        made.append(api.add_pod(name, "n2", metadata=fields, status=status or PENDING))

    def look(request: Request) -> None:
        looks.append(request)
        if len(looks) > 2:
            go(api)
        if len(looks) > 3 and (late := next((pod for pod in made if pod["status"] is PENDING), None)):
            late["status"] = READY

    def migrate(request: Request) -> None:
        if request.method == "POST":
            missed.extend(pod["metadata"]["name"] for pod in made if pod["status"] is PENDING)

    api.faults |= {PODS: look, migrations_path("shop"): migrate}
    return missed


def go(api: EvictingApi) -> None:
    """What is on its way out."""
    for path, item in list(api.objects.items()):
        if item["metadata"].get("deletionTimestamp"):
            del api.objects[path]


def arrived(result: Result) -> list[tuple[str, str]]:
    return [(pod["name"], pod["node"]) for item in result["replacements"] for pod in item["pods"]]


def is_migrated(result: Result) -> bool:
    return [entry["outcome"] for entry in result["migrations"]] == ["migrated"]


@pytest.mark.parametrize("is_going", [False, True])
def test_who_follows_a_pod_waits_for_another_one(again: Any, api: EvictingApi, *, is_going: bool) -> None:
    """Not for one that was not ready before either."""
    if is_going:
        api.add_pod("o-aaaaa", metadata={**MADE, "deletionTimestamp": LATER}, status=READY)
    missed = later(api, "o-ddddd")
    result = again(A)
    assert (missed, is_migrated(result), arrived(result)) == ([], True, [("o-ddddd", "n2")])


def test_who_follows_several_pods_waits_for_as_many(again: Any, api: EvictingApi) -> None:
    missed = later(api, "o-ddddd", "o-eeeee")
    result = again(A, B)
    assert (missed, is_migrated(result)) == ([], True)
    assert arrived(result) == [("o-ddddd", "n2"), ("o-eeeee", "n2")]


def test_a_pod_that_keeps_its_name_is_waited_for(again: Any, api: EvictingApi) -> None:
    missed = later(api, "o-aaaaa", generateName="")
    result = again(A)
    assert (missed, is_migrated(result), result["gone"]) == ([], True, ["shop/o-aaaaa"])


def test_a_pod_of_a_stateful_set_that_is_still_going_is_waited_for(again: Any, api: EvictingApi) -> None:
    """Nothing takes its name before."""
    api.objects = {path: item for path, item in api.objects.items() if not path.startswith(PODS)}
    api.add_pod("o-aaaaa", owner="StatefulSet", metadata={"deletionTimestamp": LATER}, status=READY)
    looks, missed = list[Request](), list[list[str]]()

    def look(request: Request) -> None:
        looks.append(request)
        if len(looks) > 2:
            go(api)
            missed.append(later(api, "o-aaaaa", generateName=""))

    api.faults[PODS] = look
    result = again(A)
    assert (is_migrated(result), missed, arrived(result)) == (True, [[]], [("o-aaaaa", "n2")])


def test_a_pod_of_a_stateful_set_that_is_gone_and_not_back_is_waited_for(again: Any, api: EvictingApi) -> None:
    """The names of those that have stayed tell whose it was."""
    api.objects = {path: item for path, item in api.objects.items() if not path.startswith(PODS)}
    api.add_pod("o-1", owner="StatefulSet", metadata={"generateName": "o-"}, status=READY)
    looks, missed = list[Request](), list[str]()

    def look(request: Request) -> None:
        looks.append(request)
        if len(looks) == 3:
            api.add_pod("o-0", "n2", owner="StatefulSet", metadata={"uid": "another-o-0"}, status=READY)

    def migrate(request: Request) -> None:
        if request.method == "POST" and pod_path("o-0") not in api.objects:
            missed.append("o-0")

    api.faults |= {PODS: look, migrations_path("shop"): migrate}
    result = again(action(ActionKind.EVICT, pod("o-0"), "n1", "n2"))
    assert (missed, is_migrated(result), arrived(result)) == ([], True, [("o-0", "n2")])


def test_a_pod_that_is_to_follow_comes_in_place_of_none(again: Any, api: EvictingApi) -> None:
    """Its controller has yet to replace the one that has gone; no pod would serve without it."""
    for name in ("xxxxx", "yyyyy"):
        del api.objects[pod_path(f"o-{name}")]
    api.add_pod("o-bbbbb", metadata=MADE, status=READY)
    looks, missed = list[Request](), list[str]()

    def look(request: Request) -> None:
        looks.append(request)
        if len(looks) in (3, 8):
            api.add_pod(f"o-ddddd{len(looks)}", "n2", metadata={**MADE, "creationTimestamp": LATER}, status=READY)

    def evict(request: Request) -> None:
        if pod_path("o-ddddd3") not in api.objects:
            missed.append(request.path)

    api.faults |= {PODS: look, f"{pod_path('o-bbbbb')}/eviction": evict}
    result = again(A, replace(B, after=(A.id,)))
    assert (missed, api.attempts, is_migrated(result)) == ([], ["o-bbbbb"], True)


def test_a_pod_that_is_going_and_one_that_is_gone_are_both_waited_for(again: Any, api: EvictingApi) -> None:
    """What came instead of one does not stand for the other one."""
    api.add_pod("o-bbbbb", metadata={**MADE, "deletionTimestamp": LATER}, status=READY)
    missed = later(api, "o-ddddd", "o-eeeee")
    api.objects[pod_path("o-ddddd")]["status"] = READY
    result = again(A, B)
    assert (missed, is_migrated(result)) == ([], True)
    assert arrived(result) == [("o-ddddd", "n2"), ("o-eeeee", "n2")]


@pytest.mark.parametrize("status", [READY, {"phase": "Failed"}])
def test_who_has_been_replaced_is_not_waited_for(again: Any, api: EvictingApi, status: Any) -> None:
    """Nor is one that has ended: its controller makes yet another one."""
    later(api, "o-ddddd", status=status)
    result = again(A)
    assert (result["gone"], result["replacements"], is_migrated(result)) == (["shop/o-aaaaa"], [], True)


@pytest.mark.parametrize("since", [EARLIER, LATER])
def test_a_pod_of_a_job_that_had_done_its_work_before_came_instead_of_none(
    again: Any, api: EvictingApi, since: str
) -> None:
    """One that has done it since may have."""
    for name in ("xxxxx", "yyyyy"):
        del api.objects[pod_path(f"o-{name}")]
    api.forgotten = False
    for name, status, made in (("o-bbbbb", READY, EARLIER), ("o-ccccc", {"phase": "Succeeded"}, since)):
        api.add_pod(name, owner="Job", metadata={**MADE, "creationTimestamp": made}, status=status)
    looks, there = list[Request](), list[bool]()

    def look(request: Request) -> None:
        looks.append(request)
        if len(looks) == 5 and since == EARLIER:
            api.add_pod("o-ddddd", owner="Job", metadata={**MADE, "creationTimestamp": LATER}, status=READY)

    def migrate(request: Request) -> None:
        if request.method == "POST":
            there.append(pod_path("o-ddddd") in api.objects)

    api.faults |= {PODS: look, migrations_path("shop"): migrate}
    assert is_migrated(again(A, B))
    assert there == [since == EARLIER]


@pytest.mark.parametrize("owner", ["", "ReplicaSet"])
def test_who_cannot_be_told_to_be_replaced_is_not_waited_for(again: Any, api: EvictingApi, owner: str) -> None:
    """A bare pod, or one whose controller is gone."""
    for name in ("xxxxx", "yyyyy"):
        del api.objects[pod_path(f"o-{name}")]
    api.add_pod("p-ddddd", owner=owner, metadata={"generateName": "p-"}, status=PENDING)
    result = again(A)
    assert (result["gone"], result["replacements"], is_migrated(result)) == (["shop/o-aaaaa"], [], True)


@pytest.mark.parametrize("status", [PENDING, READY], ids=["comes up yet", "serves already"])
def test_who_came_in_place_of_one_hides_not_where_the_next_one_comes(again: Any, api: EvictingApi, status: Any) -> None:
    api.forgotten = False
    for name in ("o-bbbbb", "o-ccccc"):
        api.add_pod(name, metadata=MADE, status=READY)
    later(api, "o-ddddd", status=status)
    api.objects[pod_path("o-ddddd")]["spec"]["nodeName"] = "n3"
    first = replace(A, target="n3")
    second = action(ActionKind.EVICT, pod("o-bbbbb"), "n1", "n3", first)
    result = again(first, second, action(ActionKind.EVICT, pod("o-ccccc"), "n1", "n2", second))
    came = [("o-bbbbb-new", "n2"), ("o-ccccc-new", "n2")]
    assert arrived(result) == ([("o-ddddd", "n3"), *came] if status is PENDING else came)
    assert [(entry["name"], entry["done"]) for entry in result["deviations"]] == [("o-bbbbb", "came back on n2")]
