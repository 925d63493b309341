# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is waited for until it is fit, as long as that can help, and what keeps it is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import waiting
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import progress
from ansible_collections.virtops.kubevirt.plugins.modules.node_readiness import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import VMIS, DrainingApi, empty_nodes
from unit.plugins.support.fake_api import Answer, Object, Request, refusal, serving
from unit.plugins.support.held_node import Maintain
from unit.plugins.support.listener import listener
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NODES

NODE = f"{NODES}/n1"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
NOT_READY = "it is not Ready: see to its kubelet"
AWAY = refusal(503, "ServiceUnavailable", "shutting down")
WAITING: dict[str, Any] = {"wait": True, "wait_timeout": 60, "wait_sleep": 5}


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def set_ready(api: DrainingApi, status: str = "True", booted: str = "b1") -> None:
    """As kubelet and virt-handler tell it now."""
    node: Object = api.node("n1")
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": now()}
    node["status"] |= {"conditions": [condition], "nodeInfo": {"bootID": booted}}
    node["metadata"]["annotations"] = {"kubevirt.io/heartbeat": now()}


@pytest.fixture
def api(authority: Authority) -> Iterator[DrainingApi]:
    fake = empty_nodes()
    set_ready(fake)
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


class Time:
    """Goes on only when the module sleeps. then: what happens meanwhile, one after the other."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.then: list[Callable[[], object]] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.then:
            self.then.pop(0)()


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(clock, "now", lambda: time.now)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(sleep=time.sleep))
    return time


@pytest.fixture
def look(run_module: ModuleRunner, connection: dict[str, Any]) -> Maintain:
    return partial(run_module, main, **{**connection, "name": "n1"})


def looks(api: DrainingApi) -> int:
    return [request.path for request in api.requests].count(NODE)


def evacuate(api: DrainingApi, node: str | None = "n1") -> None:
    """As somebody's eviction of VMI db does; or nobody's any more."""
    status = api.objects[vmi_path("db")]["status"]
    status.pop("evacuationNodeName", None)
    if node:
        status["evacuationNodeName"] = node


def test_a_fit_node_is_told_by_what_a_reboot_changes(look: Maintain, api: DrainingApi) -> None:
    result = look()
    assert (result["changed"], result["obstacles"], result["leaving"]) == (False, [], [])
    assert result["boot_id"] == "b1"
    assert result["heartbeat"] == api.node("n1")["metadata"]["annotations"]["kubevirt.io/heartbeat"]
    assert api.writes() == []


def test_by_default_it_looks_once(look: Maintain, api: DrainingApi) -> None:
    set_ready(api, "False")
    result = look()
    assert (result["error"]["reason"], result["obstacles"], looks(api)) == ("NotFit", [NOT_READY], 1)
    assert f"Cannot find node n1 fit for virtual machines ({api.url}): {NOT_READY}. Remove the cause" in result["msg"]
    assert "leaving" not in result, "who leaves counts only once it is fit"


def test_it_waits_until_the_node_is_fit(look: Maintain, api: DrainingApi, time: Time) -> None:
    set_ready(api, "False")
    time.then = [lambda: None, lambda: set_ready(api)]
    assert look(**WAITING)["obstacles"] == []
    assert looks(api) == 3


def test_it_waits_no_longer_than_it_may(look: Maintain, api: DrainingApi) -> None:
    set_ready(api, "False")
    result = look(**WAITING)
    assert (result["error"]["reason"], result["obstacles"], looks(api)) == ("DeadlineExceeded", [NOT_READY], 13)
    assert f": after 60 s {NOT_READY}. " in result["msg"]


def test_check_mode_looks_once(look: Maintain, api: DrainingApi) -> None:
    set_ready(api, "False")
    assert look(check=True, **WAITING)["error"]["reason"] == "NotFit"
    assert looks(api) == 1


def test_what_is_waited_for_is_shown(
    look: Maintain, api: DrainingApi, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TOTALS_EVERY", 0.0)
    set_ready(api, "False")
    time.then = [lambda: None, lambda: set_ready(api)]
    with listener() as heard:
        look(_progress=heard.path, **WAITING)
    (line,) = heard.told
    assert line.endswith(" node n1: not fit yet: it is not Ready")


def test_a_reboot_is_waited_for_and_a_sign_of_life_after_it(look: Maintain, api: DrainingApi, time: Time) -> None:
    before = look()
    asked: dict[str, Any] = {"boot_id": before["boot_id"], "heartbeat": before["heartbeat"], "rebooted": True}
    still = look(**asked)
    assert still["obstacles"] == ["its boot ID is still b1: reboot it, or set rebooted to false"]
    assert look(check=True, **asked)["obstacles"] == []

    node: Object = api.node("n1")
    node["status"]["nodeInfo"]["bootID"] = "b2"
    (old,) = look(**asked)["obstacles"]
    assert "which may be before the reboot" in old

    def come_back() -> None:
        later = "2999-01-01T00:00:00Z"
        node["status"]["conditions"][0]["lastHeartbeatTime"] = later
        node["metadata"]["annotations"]["kubevirt.io/heartbeat"] = later

    time.then = [come_back]
    assert (look(**asked, **WAITING)["obstacles"], time.then) == ([], [])


def test_whoever_is_to_leave_is_waited_for(look: Maintain, api: DrainingApi, time: Time) -> None:
    api.add_vmi("db")
    evacuate(api)
    late = look(**WAITING)
    assert (late["obstacles"], late["leaving"]) == ([], [{"namespace": "shop", "name": "db"}])
    assert "KubeVirt still wants these virtual machines to leave it: shop/db. Let their migrations end" in late["msg"]
    time.then = [lambda: evacuate(api, None)]
    assert look(**WAITING)["leaving"] == []


@pytest.mark.parametrize("node", ["n2", None])
def test_who_is_to_leave_another_node_is_not(look: Maintain, api: DrainingApi, node: str | None) -> None:
    """As one that was evacuated from there and has come here."""
    api.add_vmi("db")
    evacuate(api, node)
    assert look()["leaving"] == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_who_has_ended_does_not_leave_any_more(look: Maintain, api: DrainingApi, phase: str) -> None:
    """KubeVirt migrates it no more, nor takes the mark off; one that nobody starts again may stay so for ever."""
    api.add_vmi("db")
    evacuate(api)
    api.objects[vmi_path("db")]["status"]["phase"] = phase
    assert look()["leaving"] == []


def test_whoever_is_to_leave_may_be_ignored(look: Maintain, api: DrainingApi) -> None:
    api.add_vmi("db")
    evacuate(api)
    result = look(evacuations="ignore", **WAITING)
    assert (result["leaving"], looks(api)) == ([{"namespace": "shop", "name": "db"}], 1)


def test_nothing_of_a_virtual_machine_but_its_name_is_told(look: Maintain, api: DrainingApi) -> None:
    vmi = api.add_vmi("db", volumes=[{"cloudInitNoCloud": {"userData": "password: open-sesame"}}])
    vmi["metadata"]["annotations"] = {"kubevirt.io/ignitiondata": "open-sesame"}
    evacuate(api)
    assert "sesame" not in str({**look(evacuations="ignore"), "invocation": ""})


def test_a_node_that_is_not_there_is_not_waited_for(look: Maintain, api: DrainingApi) -> None:
    result = look(name="n9", **WAITING)
    assert result["obstacles"] == ["there is no such node: correct its name"]
    assert (result["error"]["reason"], result["error"]["status"]) == ("NotFound", 404)
    assert "Cannot read node n9" in result["msg"]


@pytest.mark.parametrize("path", [NODE, VMIS])
def test_who_may_not_look_does_not_wait(look: Maintain, api: DrainingApi, path: str, time: Time) -> None:
    api.faults[path] = lambda _request: refusal(403, "Forbidden", "no rights")
    result = look(**WAITING)
    words = "the API server answers Forbidden: let the controller's user get nodes and list VirtualMachineInstances"
    assert (result["obstacles"], result["error"]["status"], time.now) == ([words], 403, 1000.0)
    assert "no rights" in result["msg"]


@pytest.mark.parametrize("path", [NODE, VMIS, KUBE_SYSTEM])
def test_an_api_server_that_is_away_is_waited_for(look: Maintain, api: DrainingApi, path: str, time: Time) -> None:
    """Also one that is away when the task begins, before it is known which cluster answers."""
    api.objects[KUBE_SYSTEM] = {"metadata": {"name": "kube-system", "uid": "uid"}}
    api.faults[path] = lambda _request: AWAY
    time.then = [lambda: None, api.faults.clear]
    assert look(cluster_uid="uid", **WAITING)["obstacles"] == []
    assert time.now == 1010.0


def test_one_that_does_not_come_back_ends_the_wait(look: Maintain, api: DrainingApi) -> None:
    api.faults[NODE] = lambda _request: AWAY
    result = look(**WAITING)
    assert (result["error"]["reason"], result["error"]["status"]) == ("DeadlineExceeded", 503)
    (clause,) = result["obstacles"]
    assert clause.startswith("the API server answered 503, shutting down")
    assert clause.endswith(": see to it")
    assert f"after 60 s {clause}" in result["msg"]


def test_nobody_listens(look: Maintain, time: Time) -> None:
    away: dict[str, Any] = {"host": "https://127.0.0.1:9"}
    once = look(**away)
    assert once["obstacles"] == ["the API server does not answer (connection refused): see to it"]
    assert once["error"]["reason"] == "ConnectionRefused"
    late = look(**away, **WAITING)
    assert (late["error"]["reason"], time.now) == ("DeadlineExceeded", 1060.0)
    assert "fit for virtual machines (https://127.0.0.1:9): after 60 s the API server does not answer" in late["msg"]


def test_one_that_is_away_from_the_first_is_told_of_once(
    look: Maintain, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a connection is given up meanwhile, and tried anew."""
    monkeypatch.setattr(persistence, "READING", 60.0)
    # Ansible shows two warnings alike as one.
    told = SimpleNamespace(sleep=time.sleep, strftime=lambda _format: f"at second {time.now - 1000.0:.0f}")
    monkeypatch.setattr(persistence, "time", told)
    late = look(host="https://127.0.0.1:9", wait=True, wait_timeout=180)
    assert (late["error"]["reason"], time.now) == ("DeadlineExceeded", 1180.0)
    assert str(late["warnings"]).count("trying again since at second 0") == 1
    assert str(late["warnings"]).count("trying again") == 1
    # All tries of the first connection, and one with each further look.
    assert re.search(r"connection refused, tried \d\d times since at second 0\)", late["msg"]), late["msg"]
    assert late["msg"].count("tried") == late["msg"].count("since") == 1


def test_another_cluster_is_not_looked_at(look: Maintain, api: DrainingApi) -> None:
    api.objects[KUBE_SYSTEM] = {"metadata": {"name": "kube-system", "uid": "other"}}
    result = look(cluster_uid="uid", **WAITING)
    assert (result["error"]["reason"], looks(api), "obstacles" in result) == ("OtherCluster", 0, False)


def test_what_it_is_not_about_is_told_by_itself(look: Maintain, api: DrainingApi) -> None:
    api.faults[NODE] = lambda _request: refusal(400, "BadRequest", "unable to parse")
    result = look(**WAITING)
    assert ("answered 400, unable to parse" in result["msg"], "obstacles" in result) == (True, False)


def test_a_cluster_whose_kubevirt_is_gone_has_nobody_to_wait_for(look: Maintain, api: DrainingApi) -> None:
    def unknown(_request: Request) -> Answer:
        return refusal(404, "NotFound", "the server could not find the requested resource")

    api.faults[VMIS] = unknown
    assert look()["leaving"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "a/b"}, "name is 'a/b', but no object can be named so"),
        ({"rebooted": True}, "rebooted is true, but boot_id is not given"),
        ({"rebooted": True, "boot_id": ""}, "rebooted is true, but boot_id is not given"),
        ({"wait_sleep": 0}, "wait_sleep is 0, but at least 1 second is needed"),
        ({"heartbeat_age": 0}, "heartbeat_age is 0, but at least 1 second is needed"),
    ],
)
def test_mistakes(look: Maintain, api: DrainingApi, arguments: dict[str, Any], words: str) -> None:
    assert words in look(**arguments)["msg"]
    assert api.requests == []
