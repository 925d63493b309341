# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM that was stopped for a node, and whose mark somebody takes away, is found by the node's own note.

`kubectl replace` does so, and Argo CD where it replaces: what the VM is then is what was written, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_run import main as maintenance_run
from ansible_collections.virtops.kubevirt.plugins.modules.node_drain import main as node_drain

from testbed.pki import Authority
from unit.plugins.modules.test_maintenance_run import invocation
from unit.plugins.support.draining_api import fill, vm_path
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NODES
from unit.plugins.support.run_api import RunApi, running

STOP = [{"policy": "stop"}]
STRATEGIES = ["Always", "Manual", "RerunOnFailure"]
BY_REQUEST = ["Manual", "RerunOnFailure"]


@pytest.fixture
def api(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunApi]:
    monkeypatch.setattr(renewer, "start", lambda *_: None)
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fill(fake, "n1", "n2")
        yield fake


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    return partial(run_module, node_drain, **connection, name="n1", owner="kernel", wait_timeout=20)


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    given: dict[str, Any] = {"run": "kernel", "_invocation": invocation("a1")}
    return partial(run_module, maintenance_run, **connection, **given, wait_timeout=20)


def stop(drain: Any, api: RunApi, strategy: str) -> None:
    """For its node, which the drain empties."""
    api.add_vm("pets", strategy)
    assert drain(cordon=True, policies=STOP)["left"] == []
    assert not runs(api)


def replace(api: RunApi, strategy: str, **metadata: Any) -> None:
    """As `kubectl replace` does with a file of old."""
    new = {**api.objects[vm_path("pets")], "metadata": {"name": "pets", "namespace": "shop", **metadata}}
    spec = {**new["spec"], "runStrategy": strategy}
    assert api.answer(Request("PUT", vm_path("pets"), {}, {**new, "spec": spec})).status == 200


def runs(api: RunApi) -> bool:
    return vmi_path("pets") in api.objects


def notes(api: RunApi) -> list[str]:
    """What stands on the node of VMs that are stopped for it."""
    annotations = api.node("n1")["metadata"].get("annotations") or {}
    return [name for name in annotations if name.startswith("stopped.virtops.kubevirt/")]


@pytest.mark.parametrize("strategy", BY_REQUEST)
def test_a_vm_that_nothing_starts_any_more_is_named_until_it_runs(drain: Any, api: RunApi, strategy: str) -> None:
    stop(drain, api, strategy)
    replace(api, strategy)
    for _attempt in range(2):
        result = drain(state="restored")
        assert "shop/pets: failed, it was stopped for the node, and nothing starts it" in result["msg"]
        assert "virtctl start" in result["msg"]
    assert api.acts == ["stop pets"], "nobody knows whether it is to run"
    api.start("pets")
    (entry,) = drain(state="restored")["started"]
    assert (entry["name"], entry["outcome"], notes(api)) == ("pets", "started", [])
    assert drain(state="restored")["started"] == []


@pytest.mark.parametrize("strategy", BY_REQUEST)
def test_what_check_mode_says_of_one_that_nothing_starts_is_what_happens(
    drain: Any, api: RunApi, strategy: str
) -> None:
    stop(drain, api, strategy)
    replace(api, strategy)
    results = [drain(state="restored", check=check) for check in (True, False)]
    told = [(result["msg"], result["changed"], result["started"][0]["outcome"]) for result in results]
    assert told[0] == told[1]
    assert "shop/pets: failed, it was stopped for the node, and nothing starts it" in told[0][0]


def test_a_vm_that_runs_by_itself_is_waited_for(drain: Any, api: RunApi) -> None:
    stop(drain, api, "Always")
    api.faults[vmi_path("pets")] = lambda _request: refusal(404, "NotFound", "no VMI yet")
    replace(api, "Always")
    assert "shop/pets: starting" in drain(state="restored", wait_timeout=1)["msg"]
    del api.faults[vmi_path("pets")]
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (runs(api), notes(api), api.acts) == (True, [], ["stop pets"])


@pytest.mark.parametrize("has_ended", [True, False])
@pytest.mark.parametrize("strategy", BY_REQUEST)
def test_a_vm_whose_stop_is_not_over_is_not_taken_for_stopped_by_others(
    drain: Any, api: RunApi, strategy: str, has_ended: bool
) -> None:
    """As long as its guest shuts down, and until KubeVirt has seen to that, nobody can tell whose request it was."""
    api.slow = True
    api.add_vm("pets", strategy)
    drain(cordon=True, policies=STOP, wait_timeout=1)
    if has_ended:
        del api.objects[vmi_path("pets")]
    replace(api, strategy)
    assert "its guest has yet to shut down" in drain(state="restored", wait_timeout=1)["msg"]
    if not has_ended:
        api.shut_down("pets")
    api.objects[vm_path("pets")]["status"] = {}
    for _attempt in range(2):
        assert "shop/pets: failed, it was stopped for the node, and nothing starts it" in drain(state="restored")["msg"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_vm_that_has_run_and_ended_since_is_named(drain: Any, api: RunApi, phase: str) -> None:
    stop(drain, api, "Manual")
    replace(api, "Manual")
    api.start("pets")
    api.objects[vmi_path("pets")]["status"]["phase"] = phase
    for _attempt in range(2):
        assert "shop/pets: failed, it was stopped for the node, and nothing starts it" in drain(state="restored")["msg"]
    assert api.acts == ["stop pets"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_vm_that_is_off_by_what_was_written_is_told_once(drain: Any, api: RunApi, strategy: str) -> None:
    """Who has written so wants it off, or has it from when it was stopped."""
    stop(drain, api, strategy)
    replace(api, "Halted")
    result = drain(state="restored")
    assert "shop/pets: failed, it was stopped for the node, and is halted by what somebody has written" in result["msg"]
    assert (runs(api), notes(api)) == (False, [])
    assert drain(state="restored")["started"] == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_vm_that_has_lost_its_label_alone_is_started(drain: Any, api: RunApi, strategy: str) -> None:
    """What it ran with stands on it still."""
    stop(drain, api, strategy)
    vm = api.objects[vm_path("pets")]
    replace(api, vm["spec"]["runStrategy"], annotations=vm["metadata"]["annotations"])
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert (runs(api), notes(api)) == (True, [])
    assert api.objects[vm_path("pets")]["spec"]["runStrategy"] == strategy


@pytest.mark.parametrize("again", [True, False])
def test_a_vm_that_somebody_has_deleted_is_forgotten(drain: Any, api: RunApi, again: bool) -> None:
    """Also where there is another one of its name."""
    stop(drain, api, "Manual")
    del api.objects[vm_path("pets")]
    if again:
        api.add_vm("pets", "Manual")["metadata"]["uid"] = "uid-of-another"
        del api.objects[vmi_path("pets")]
    assert drain(state="restored")["started"] == []
    assert notes(api) == []


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("strategy", ["Always", "Manual"])
@pytest.mark.parametrize("reads", range(1, 5))
def test_a_vm_that_somebody_deletes_while_it_starts_is_told_and_forgotten(
    drain: Any, api: RunApi, reads: int, strategy: str, again: bool
) -> None:
    """Whenever that is, and though it has its mark."""
    stop(drain, api, strategy)
    left = list(range(reads))

    def delete(request: Request) -> Answer | None:
        if request.method == "GET" and left:
            left.pop()
            if not left:
                for path in (vm_path("pets"), vmi_path("pets")):
                    api.objects.pop(path, None)
                if again:
                    api.add_vm("pets", "Manual")["metadata"]["uid"] = "uid-of-another"
        return None

    api.faults[vm_path("pets")] = delete
    (entry,) = drain(state="restored")["started"]
    assert entry["outcome"] == "deleted"
    assert not left
    assert notes(api) == []
    assert drain(state="restored")["started"] == []


@pytest.mark.parametrize("check", [True, False])
def test_a_vm_that_is_deleted_before_anything_is_asked_for_is_no_change(drain: Any, api: RunApi, check: bool) -> None:
    stop(drain, api, "Manual")
    gone = refusal(404, "NotFound", "no such VM")
    api.faults[vm_path("pets")] = lambda request: gone if request.method == "GET" else None
    result = drain(state="restored", check=check)
    told = [(entry["outcome"], entry["message"]) for entry in result["started"]]
    assert (told, result["changed"]) == ([("deleted", "by somebody else since it was stopped")], False)
    assert (notes(api) == []) is not check


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_vm_with_its_mark_leaves_no_note(drain: Any, api: RunApi, strategy: str) -> None:
    stop(drain, api, strategy)
    assert notes(api) == ["stopped.virtops.kubevirt/vm-pets"]
    assert drain(state="restored")["started"][0]["outcome"] == "started"
    assert notes(api) == []


def test_a_vm_that_somebody_else_has_stopped_gets_no_note(drain: Any, api: RunApi) -> None:
    """Between the look and the mark."""
    api.add_vm("pets", "Always")

    def halt(request: Request) -> Answer | None:
        if request.method == "PATCH":
            api.objects[vm_path("pets")]["spec"]["runStrategy"] = "Halted"
            api.objects[vm_path("pets")]["metadata"]["resourceVersion"] = "99"
            api.objects.pop(vmi_path("pets"), None)
        return None

    api.faults[vm_path("pets")] = halt
    drain(cordon=True, policies=STOP)
    assert (api.acts, notes(api)) == ([], [])


def test_nothing_is_stopped_that_cannot_be_noted(drain: Any, api: RunApi) -> None:
    api.add_vm("pets", "Manual")
    denied = refusal(403, "Forbidden", "no rights")
    api.faults[f"{NODES}/n1"] = lambda request: denied if "stopped.virtops" in str(request.body) else None
    assert drain(cordon=True, policies=STOP)["failed"]
    assert (api.acts, runs(api)) == ([], True)


def test_a_dry_run_forgets_nothing(drain: Any, api: RunApi) -> None:
    stop(drain, api, "Manual")
    replace(api, "Halted")
    drain(state="restored", check=True)
    assert notes(api) != []
    del api.objects[vm_path("pets")]
    for run in ({}, {"run": "kernel", "invocation": "a1"}):  # which a dry run does not hold
        assert not drain(state="restored", check=True, **run).get("failed")
        assert notes(api) != []


def test_the_end_of_the_run_names_it(drain: Any, maintain: Any, api: RunApi) -> None:
    stop(drain, api, "Manual")
    replace(api, "Manual")
    assert maintain(state="held")["stopped_for"] == ["n1"]
    told = "VirtualMachine shop/pets, stopped for node n1"
    for check in (True, False):
        assert told in maintain(state="released", check=check)["left"]
    result = maintain(state="aborted")
    assert "VirtualMachine shop/pets does not run again: failed, it was stopped for the node" in result["msg"]
    api.start("pets")
    assert maintain(state="aborted")["started"][0]["outcome"] == "started"
    assert maintain(state="released")["left"] == []


def test_a_mark_and_its_note_are_told_once(drain: Any, maintain: Any, api: RunApi) -> None:
    stop(drain, api, "Manual")
    assert [entry["name"] for entry in maintain(state="released")["still_stopped"]] == ["pets"]


def test_a_note_is_void_of_a_vm_that_is_marked_for_another_node(drain: Any, maintain: Any, api: RunApi) -> None:
    """It has come there, and was stopped again: by that node it is started, and named."""
    stop(drain, api, "Manual")
    api.start("pets", "n2")
    api.objects[vmi_path("pets")]["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
    drain(name="n2", cordon=True, policies=STOP)
    assert [entry["node"] for entry in maintain(state="released")["still_stopped"]] == ["n2"]
    assert drain(state="restored")["started"] == []
    assert notes(api) == []
    assert drain(name="n2", state="restored")["started"][0]["outcome"] == "started"


def test_what_is_noted_for_others_is_theirs(drain: Any, maintain: Any, api: RunApi) -> None:
    stop(drain, api, "Manual")
    replace(api, "Manual")
    assert drain(state="restored", owner="other")["started"] == []
    assert maintain(state="released", run="other")["left"] == []
    assert notes(api) != []


def test_a_note_beside_the_mark_of_another_owner_is_void(drain: Any, api: RunApi) -> None:
    """As that one was killed before it wrote its own."""
    stop(drain, api, "Manual")
    mark = api.objects[vm_path("pets")]["metadata"]["annotations"]
    mark["virtops.kubevirt/stopped-for"] = mark["virtops.kubevirt/stopped-for"].replace("kernel", "other")
    assert drain(state="restored")["started"] == []
    assert (api.acts, notes(api)) == (["stop pets"], [])


NAMELESS = ['{"owner": "kernel", "namespace": "a/b", "name": "c"}', '{"owner": "kernel", "namespace": "a", "name": ""}']


@pytest.mark.parametrize("text", ["", "{", "5", "[]", "null", '{"owner": "kernel"}', *NAMELESS])
def test_a_note_that_was_tampered_with_is_none(drain: Any, maintain: Any, api: RunApi, text: str) -> None:
    api.node("n1")["metadata"]["annotations"] = {"stopped.virtops.kubevirt/vm-pets": text}
    assert drain(state="restored")["started"] == []
    assert maintain(state="released")["left"] == []
