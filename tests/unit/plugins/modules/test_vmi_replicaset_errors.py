# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each mistake in a vmi_replicaset task and each refusal of the cluster gives one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import arrays
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_replicaset import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, Object, Request, refusal, serving
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.replicas_api import NO_NODE, SETS, VMIS, ReplicasApi, shop

TEMPLATE: Object = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}},
}
CREATE: Object = {"replicas": 1, "template": TEMPLATE}


class Run(Protocol):
    def __call__(self, *, check: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[ReplicasApi]:
    fake = shop()
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def task(run_module: ModuleRunner, connection: dict[str, Any]) -> Run:
    return partial(run_module, main, namespace="shop", name="db", **connection)


@pytest.fixture
def refuse(task: Run, api: ReplicasApi) -> Run:
    """Run the task, which fails with one sentence and writes nothing."""

    def run(*, check: bool = False, **arguments: Any) -> Result:
        result = task(check=check, **arguments)
        assert result["failed"]
        assert "\n" not in result["msg"]
        assert not [path for path in api.objects if path.startswith(SETS)]
        return result

    return run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Cannot write replica set shop/db: there is no such replica set yet, so template is needed."),
        ({**CREATE, "replicas": -1}, "replicas is -1; give 0 or more. Correct the task; nothing was written."),
        (
            {**CREATE, "placement": {"keep_apart": [{"per": "zoen"}]}},
            "placement.keep_apart[0] per is zoen (is it zone?)",
        ),
        (
            {**CREATE, "placement": {"keep_apart": [{"per": "zone", "weight": 0}], "spread": [{"per": "-"}]}},
            "Cannot write replica set shop/db, 2 mistakes: ",
        ),
        (
            {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "affinity": {"podAffinity": {}}}}, "placement": {}},
            "template.spec.affinity and placement both say where VMIs run; give one of them",
        ),
        ({**CREATE, "wait_timeout": 0}, "wait_timeout is 0. Give a number of at least 1."),
        ({**CREATE, "unplaceable": "refuse"}, "value of unplaceable must be one of: warn, fail, ignore, got: refuse"),
        (
            {**CREATE, "placement": {"node_labels": [{"key": "disk", "operator": "Like"}]}},
            "value of operator must be one of: In, NotIn, Exists, DoesNotExist, Gt, Lt, got: Like",
        ),
        (
            {**CREATE, "placement": {"keep_together": [{"per": "host"}]}},
            "it names nobody to be together with; give labels, expressions or vms",
        ),
    ],
)
def test_a_mistake_of_the_task(refuse: Run, arguments: Object, words: str) -> None:
    assert words in refuse(**arguments)["msg"]
    assert words in refuse(**arguments, check=True)["msg"]


@pytest.mark.parametrize("name", ["", " ", ".", "..", "x/../db", "db/status", "x%2Fdb"])
@pytest.mark.parametrize("option", ["name", "namespace"])
@pytest.mark.parametrize("state", ["absent", "present"])
def test_a_name_that_would_mean_something_else(task: Run, api: ReplicasApi, option: str, name: str, state: str) -> None:
    """An empty one would delete all replica sets of the namespace. Nothing at all is asked of the server."""
    for check in (True, False):
        result = task(state=state, **{option: name}, check=check)
        assert f"Cannot read the options of the task: {option} is " in result["msg"]
        assert result["msg"].endswith("Correct the task; nothing was written.")
    assert api.requests == []


def test_a_name_is_one_part_of_the_address(task: Run, api: ReplicasApi) -> None:
    task(**CREATE)
    assert not task(name="db?propagationPolicy=Orphan", state="absent", wait=False)["changed"]
    assert api.replica_set()


def test_an_unknown_namespace(refuse: Run) -> None:
    result = refuse(**CREATE, namespace="bank")
    assert "Cannot write replica set bank/db" in result["msg"]
    assert 'the API server answered 404, namespaces "bank" not found. Create the namespace first' in result["msg"]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (b"<h1>Not here</h1>", "This is no answer of a Kubernetes API server: check what stands between"),
        (b"404 page not found\n", "answered 404, 404 page not found. Check the name, and that host, kubeconfig"),
    ],
    ids=["a proxy's", "of a server without KubeVirt"],
)
def test_a_page_that_is_not_found_says_nothing_of_the_namespace(
    refuse: Run, api: ReplicasApi, page: bytes, words: str
) -> None:
    api.faults[SETS] = lambda request: Answer(404, page) if request.method == "POST" else None
    result = refuse(**CREATE, wait_timeout=1)
    assert (words in result["msg"], "Create the namespace" in result["msg"]) == (True, False), result["msg"]


def test_what_the_server_finds_wrong_is_the_task_s_to_correct(refuse: Run, api: ReplicasApi) -> None:
    words = 'strict decoding error: unknown field "spec.template.spec.domian"'
    api.faults[SETS] = lambda request: refusal(400, "BadRequest", words)
    result = refuse(**CREATE)
    assert result["msg"].startswith("Cannot write replica set shop/db (https://127.0.0.1:")
    assert result["msg"].endswith(f"the API server answered 400, {words}. Correct the task; nothing was written.")


def test_no_permission_to_write(refuse: Run, api: ReplicasApi) -> None:
    api.faults[SETS] = lambda request: refusal(403, "Forbidden", 'User "jane" cannot create resource')
    assert 'User "jane" cannot create resource. Grant the permission' in refuse(**CREATE)["msg"]


def test_no_permission_to_try_out_a_vmi(task: Run, api: ReplicasApi) -> None:
    """Without it the set can be written all the same, unless the task wants to be sure."""
    api.faults[VMIS] = _unless_reading(refusal(403, "Forbidden", "exceeded quota: vms"))
    assert "Cannot try out a VMI of replica set shop/db" in task(**CREATE, unplaceable="fail")["msg"]
    result = task(**CREATE)
    assert result["changed"]
    assert result["outdated"] is None
    assert "exceeded quota: vms" in str(result["warnings"])


def test_no_permission_to_look_at_the_cluster(task: Run, api: ReplicasApi) -> None:
    api.forbidden = {"pods", "nodes"}
    sure = task(**CREATE, unplaceable="fail")
    assert "the permission to list nodes, pods in all namespaces is missing" in sure["msg"]
    assert sure["error"]["missing_rules"] == [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
    result = task(**CREATE)
    assert result["changed"]
    assert "list nodes, pods in all namespaces is missing" in str(result["warnings"])


def test_a_cluster_that_cannot_be_computed_with(task: Run, api: ReplicasApi) -> None:
    api.add_worker("n3", memory="much")
    assert "'much' is not a quantity" in task(**CREATE, unplaceable="fail")["msg"]
    assert "'much' is not a quantity" in str(task(**CREATE)["warnings"])


def test_no_numpy(task: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "np", None)
    assert "library (numpy) on" in task(**CREATE, unplaceable="fail")["msg"]
    result = task(**CREATE)
    assert result["changed"]
    assert "library (numpy) on" in str(result["warnings"])


def test_replicas_that_do_not_get_ready(task: Run, api: ReplicasApi) -> None:
    api.homeless = True
    result = task(**CREATE, wait_timeout=1)
    assert result["failed"]
    assert result["changed"]
    assert result["error"]["reason"] == "DeadlineExceeded"
    assert f"after 1 s 0 of 1 are ready; db1: {NO_NODE.rstrip('.')}. Remove the cause" in result["msg"]
    assert [one["message"] for one in result["replicas"]] == [NO_NODE]


def test_a_busy_server_hides_nothing_of_what_was_done(task: Run, api: ReplicasApi) -> None:
    """It is only asked once more, when the time is over, why replicas are not created."""
    api.homeless = True
    busy = refusal(429, "TooManyRequests", "later")
    path = f"{SETS}/db"
    api.faults[path] = lambda request: busy if request.method == "GET" and path in api.objects else None
    result = task(**CREATE, wait_timeout=1)
    assert (result["changed"], result["error"]["reason"]) == (True, "DeadlineExceeded")
    assert f"after 1 s 0 of 1 are ready; db1: {NO_NODE.rstrip('.')}. Remove the cause" in result["msg"]


def test_replicas_that_cannot_be_created(task: Run, api: ReplicasApi) -> None:
    task(**CREATE)
    words = "Error creating VMI: exceeded quota: vms."
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": words}
    api.replica_set()["status"] = {"conditions": [condition]}
    api.exhausted = True
    result = task(replicas=2, wait_timeout=1)
    assert f"after 1 s 1 of 2 are ready; {words} Remove the cause" in result["msg"]


def test_vmis_that_do_not_go(task: Run, api: ReplicasApi) -> None:
    task(**CREATE)
    api.stubborn = True
    result = task(state="absent", wait_timeout=1)
    assert result["failed"]
    assert result["changed"]
    assert "Cannot wait for the end of the VMIs of replica set shop/db" in result["msg"]
    assert "after 1 s 1 are still there; db1." in result["msg"]


def test_a_server_that_is_away_while_waiting_is_asked_again(task: Run, api: ReplicasApi) -> None:
    answers = iter([refusal(503, "ServiceUnavailable", "starting")] * 4)
    api.faults[VMIS] = lambda request: next(answers, None) if "watch" in request.query else None
    assert task(**CREATE)["changed"]
    assert next(answers, None) is None


def test_somebody_who_writes_all_the_time(task: Run, api: ReplicasApi) -> None:
    task(**CREATE)
    api.conflicts = 100
    assert "Somebody else writes the object at the same time" in task(replicas=2)["msg"]


def _unless_reading(answer: Answer) -> Any:
    def fault(request: Request) -> Answer | None:
        return answer if request.method == "POST" else None

    return fault
