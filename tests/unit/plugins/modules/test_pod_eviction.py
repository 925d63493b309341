# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods are evicted, what replaces them is waited for, and trouble on the way is survived or told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.modules.pod_eviction import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import BUDGET, TWO_BUDGETS, UNADMITTED, pod_path
from unit.plugins.support.evicting_api import READY, EvictingApi
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal, serving
from unit.plugins.support.listener import listener
from unit.plugins.support.modules import ModuleRunner

WEB_1 = {"namespace": "shop", "name": "web-1"}


@pytest.fixture
def api(authority: Authority) -> Iterator[EvictingApi]:
    fake = EvictingApi()
    for name in ("web-1", "web-2"):
        fake.add_pod(name, status=READY)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def evict(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, main, **connection, pods=[WEB_1], wait_timeout=10)


def test_a_pod_is_evicted_once_and_replaced(evict: Any, api: EvictingApi) -> None:
    first = evict(diff=True)
    assert (first["changed"], first["gone"]) == (True, [])
    assert [(entry["name"], entry["outcome"]) for entry in first["evicted"]] == [("web-1", "evicted")]
    assert first["replacements"] == [
        {"controller": "shop/o", "kind": "ReplicaSet", "pods": [{"name": "web-1-new", "node": "n2"}]}
    ]
    assert first["diff"] == {"before": "pod shop/web-1\n", "after": ""}
    second = evict()
    assert (second["changed"], second["gone"], second["evicted"]) == (False, ["shop/web-1"], [])
    assert api.attempts == ["web-1"]


def test_check_mode_asks_and_evicts_nothing(evict: Any, api: EvictingApi) -> None:
    result = evict(check=True)
    assert (result["changed"], result["evicted"][0]["outcome"]) == (True, "would_evict")
    assert pod_path("web-1") in api.objects


def test_check_mode_tells_what_would_be_refused_for_now(evict: Any, api: EvictingApi) -> None:
    api.evictions = [BUDGET]
    (entry,) = evict(check=True)["evicted"]
    assert (entry["outcome"], "disruption budget" in entry["refusal"]) == ("would_evict", True)


@pytest.mark.parametrize("answer", [SILENCE, refusal(500, "InternalError", "etcdserver: request timed out")])
def test_check_mode_asks_again_when_an_answer_is_lost(
    evict: Any, api: EvictingApi, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    for name in ("READING", "BRIEF"):
        monkeypatch.setattr(persistence, name, 20.0)
    monkeypatch.setattr(persistence, "_FIRST", 0.01)
    api.evictions = [answer]
    result = evict(check=True)
    assert not result.get("failed"), result["msg"]
    assert result["evicted"][0]["outcome"] == "would_evict"
    assert api.attempts == ["web-1"] * 2


def test_in_check_mode_a_pod_that_is_ending_would_not_be_evicted(evict: Any, api: EvictingApi) -> None:
    """It goes without the task."""
    api.objects[pod_path("web-1")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = evict(check=True, diff=True)
    assert (result["changed"], result["evicted"][0]["outcome"], api.attempts) == (False, "evicting", [])
    assert result["diff"] == {"before": "", "after": ""}


def test_what_was_evicted_is_not_evicted_again_though_the_answer_was_lost(evict: Any, api: EvictingApi) -> None:
    api.lose_answer(f"{pod_path('web-1')}/eviction")
    result = evict()
    assert (result["changed"], result["evicted"][0]["outcome"], api.attempts) == (True, "evicted", ["web-1"])
    assert result["replacements"][0]["pods"] == [{"name": "web-1-new", "node": "n2"}]


def end_by_itself(api: EvictingApi, answer: Answer | None = None) -> None:
    """The pod is gone right when its eviction is asked for, which has this answer, or that of a server that knows."""

    def end(_request: Request) -> Answer | None:
        if api.objects.pop(pod_path("web-1"), None):
            api.add_pod("web-1-new", "n2", status=READY)
        return answer

    api.faults[f"{pod_path('web-1')}/eviction"] = end


@pytest.mark.parametrize("check", [False, True])
def test_a_pod_that_ends_by_itself_meanwhile_was_not_evicted(evict: Any, api: EvictingApi, check: bool) -> None:
    end_by_itself(api)
    with listener() as heard:
        result = evict(check=check, diff=True, _progress=heard.path)
    assert (result["changed"], result["evicted"][0]["outcome"]) == (False, "gone")
    assert result["diff"] == {"before": "", "after": ""}
    assert (result["evicted"][0]["seconds"] is None, heard.told) == (
        check,
        [] if check else ["pod shop/web-1: gone already"],
    )


def test_a_pod_that_is_gone_after_a_lost_answer_was_evicted(evict: Any, api: EvictingApi) -> None:
    """Nobody knows better: it is told as what it was asked for."""
    end_by_itself(api, SILENCE)
    result = evict()
    assert (result["changed"], result["evicted"][0]["outcome"]) == (True, "evicted")


def test_a_pod_that_takes_too_long_to_end_is_waited_for_the_next_time(evict: Any, api: EvictingApi) -> None:
    api.objects[pod_path("web-1")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = evict(wait_timeout=1)
    assert (result["changed"], result["evicted"][0]["outcome"]) == (False, "evicting")
    assert "after 1 s pod shop/web-1: ending" in result["msg"]
    del api.objects[pod_path("web-1")]
    assert (evict()["gone"], api.attempts) == (["shop/web-1"], [])


def test_a_budget_is_waited_for(evict: Any, api: EvictingApi) -> None:
    api.evictions = [BUDGET, BUDGET]
    assert evict()["evicted"][0]["outcome"] == "evicted"
    assert api.attempts == ["web-1"] * 3


@pytest.mark.parametrize("answer", [refusal(404, "NotFound", "gone"), refusal(409, "Conflict", "was modified")])
def test_a_pod_that_is_still_there_has_not_left(evict: Any, api: EvictingApi, answer: Answer) -> None:
    """A conflict is also the answer where somebody writes the pod at the same time."""
    api.evictions = [answer, answer]
    assert evict()["evicted"][0]["outcome"] == "evicted"
    assert api.attempts == ["web-1"] * 3
    assert pod_path("web-1") not in api.objects


def test_a_budget_that_never_yields_is_named(evict: Any, api: EvictingApi) -> None:
    api.evictions = [BUDGET] * 1000
    result = evict(wait_timeout=1)
    assert result["failed"]
    assert result["error"]["reason"] == "DeadlineExceeded"
    assert "after 1 s pod shop/web-1: held back, Cannot evict pod as it would violate" in result["msg"]
    assert "The disruption budget api needs 1" in result["msg"]
    assert result["evicted"][0]["outcome"] == "waiting"


@pytest.mark.parametrize(
    ("answer", "words"),
    [(TWO_BUDGETS, "This pod has more than one PodDisruptionBudget"), (UNADMITTED, "Internal error occurred: failed")],
)
def test_an_error_of_the_server_before_anything_is_done_changes_nothing(
    evict: Any, api: EvictingApi, answer: Answer, words: str
) -> None:
    api.evictions = [answer] * 1000
    result = evict(wait_timeout=1)
    assert (result["failed"], result["changed"], result["evicted"][0]["outcome"]) == (True, False, "waiting")
    assert f"pod shop/web-1: held back, {words}" in result["msg"]


def test_a_server_that_is_busy_is_told_from_a_budget(evict: Any, api: EvictingApi) -> None:
    api.evictions = [Answer(503, b"<h1>No server</h1>", headers=(("Retry-After", "1"),))] * 1000
    result = evict(wait_timeout=1)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "pod shop/web-1: held back, the API server answered 503, No server" in result["msg"]


def test_a_pod_that_is_not_replaced_is_told(evict: Any, api: EvictingApi) -> None:
    api.forgotten = True
    result = evict(wait_timeout=1)
    assert result["changed"]
    assert "after 1 s ReplicaSet shop/o has not as many pods ready again as before." in result["msg"]


def test_a_pod_of_nobody_is_not_waited_for(evict: Any, api: EvictingApi) -> None:
    api.add_pod("lone", owner="", status=READY)
    result = evict(pods=[{"namespace": "shop", "name": "lone"}])
    assert (result["changed"], result["replacements"]) == (True, [])


def test_a_refusal_for_good_ends_it(evict: Any, api: EvictingApi) -> None:
    api.evictions = [refusal(400, "BadRequest", "no such thing")]
    result = evict()
    assert result["failed"]
    assert (result["changed"], result["error"]["reason"]) == (False, "EvictionFailed")
    assert "Cannot evict 1 pod (https://" in result["msg"]
    assert "pod shop/web-1: the API server answered 400, no such thing" in result["msg"]


def test_a_budget_is_told_of_and_the_end(evict: Any, api: EvictingApi) -> None:
    api.evictions = [BUDGET]
    with listener() as heard:
        result = evict(_progress=heard.path)
    assert [line.partition(", ")[0] for line in heard.told] == [
        "pod shop/web-1: held back",
        "pod shop/web-1: evicted in 0 s",
    ]
    assert result["replacements"][0]["pods"][0]["name"] == "web-1-new"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pods": []}, "pods is empty"),
        ({"pods": [{"namespace": "shop/pods/db?", "name": "a"}]}, "namespace is 'shop/pods/db?', but no object can be"),
        ({"pods": [{"namespace": "shop", "name": ".."}]}, "name is '..', but no object can be named so"),
        ({"pods": [WEB_1, WEB_1]}, "pod shop/web-1 is named more than once"),
        ({"pods": [{"namespace": "", "name": "a"}]}, "a pod needs a namespace and a name, got '' and 'a'"),
        ({"wait_timeout": 0}, "wait_timeout is 0, but at least 1 second is needed"),
        ({"terminate_grace_period": -1}, "terminate_grace_period is -1, but 0 is the least"),
    ],
)
def test_a_task_that_cannot_be_meant_so(evict: Any, api: EvictingApi, arguments: dict[str, Any], words: str) -> None:
    result = evict(**arguments)
    assert words in result["msg"]
    assert api.attempts == []


def test_virtual_machines_are_refused(evict: Any, api: EvictingApi) -> None:
    api.add_pod("launcher", metadata={"labels": {"kubevirt.io": "virt-launcher"}})
    result = evict(pods=[{"namespace": "shop", "name": "launcher"}, WEB_1])
    assert result["error"]["problems"] == ["pod shop/launcher belongs to a virtual machine"]
    assert "vmi_migration" in result["msg"]
    assert api.attempts == []
