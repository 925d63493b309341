# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is given back once it is fit, and what keeps it is told in words of the role; and how long that waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import StoppedNote, noted

from testbed.pki import Authority
from unit.playbooks.playing import play
from unit.plugins.support.fake_api import Object, Request, refusal, serving
from unit.plugins.support.held_node import MARK
from unit.plugins.support.migrating_api import vmi_path
from unit.plugins.support.object_api import NODES, managed
from unit.plugins.support.playbooks import Task, run_task, write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, RunApi, busy_run

pytestmark = pytest.mark.playbook

ROLE = Path(__file__).parents[3] / "roles/uncordon"
TIMED = "Begin to count the time"
NODE = f"{NODES}/n1"
NO_RUN = {"uncordon_run": "", "uncordon_invocation": "", "uncordon_cluster_uid": ""}
REFUSED = "Cannot give back node n1"
STAYS = "Then run this again; the node stays cordoned until then."


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunApi]:
    """Invocation a1 of run `kernel` has node n1, which is fit, and on which VMI db is."""
    authority, fake = Authority(tmp_path), busy_run()
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    node: Object = fake.node("n1")
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": now}]
    node["status"] |= {"conditions": conditions, "nodeInfo": {"bootID": "b1"}}
    node["spec"] = {"unschedulable": True}
    annotations = {MARK: Mark("kernel", now).to_text(), "kubevirt.io/heartbeat": now}
    node["metadata"] |= {"annotations": annotations, "managedFields": [managed(FIELD_MANAGER, "unschedulable")]}
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, fake, authority)
        yield fake


def uncordon(folder: Path, *options: str, **given: Any) -> tuple[str, int]:
    """What the role tells, as one line, and its status; given: variables in place of those of the run."""
    ours = {"node": "n1", "run": "kernel", "owner": "kernel", "invocation": "a1", "cluster_uid": CLUSTER}
    own = {f"uncordon_{name}": value for name, value in {**ours, "wait_timeout": 1, "wait_sleep": 1}.items()}
    role = {"role": "virtops.kubevirt.uncordon", "vars": {**own, **given}}
    content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "roles": [role]}])
    told, status = play(folder, content, *options, kubeconfig=folder / "files/cluster.kubeconfig")
    return " ".join(told.split()), status


def is_cordoned(api: RunApi) -> bool:
    return bool(api.node("n1")["spec"].get("unschedulable"))


def unready(api: RunApi) -> None:
    api.node("n1")["status"]["conditions"][0]["status"] = "False"


def evacuate(api: RunApi) -> None:
    api.objects[vmi_path("db")]["status"]["evacuationNodeName"] = "n1"


def forbid(api: RunApi) -> None:
    api.faults[NODE] = lambda _request: refusal(403, "Forbidden", "no rights")


def replace_cluster(api: RunApi) -> None:
    api.objects["/api/v1/namespaces/kube-system"]["metadata"]["uid"] = "other"


def nothing(_api: RunApi) -> None:
    """It is fit."""


def test_a_node_that_is_fit_is_given_back(tmp_path: Path, api: RunApi) -> None:
    told, status = uncordon(tmp_path)
    assert (status, is_cordoned(api)) == (0, False), told


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("given", "trouble", "words"),
    [
        ({}, unready, f"{REFUSED} after 1 s: it is not Ready: see to its kubelet. {STAYS}"),
        (
            {"uncordon_rebooted": True, "drain_boot_id": "b1"},
            nothing,
            f"{REFUSED} after 1 s: its boot ID is still b1: reboot it, or set uncordon_rebooted to false. {STAYS}",
        ),
        (
            {},
            evacuate,
            f"{REFUSED}: KubeVirt still wants these virtual machines to leave it: shop/db. Let their migrations end, "
            "or set uncordon_evacuations to withdraw to let them stay, then run this again.",
        ),
        ({"uncordon_node": "n9"}, nothing, "Cannot give back node n9: there is no such node: correct its name."),
        (
            {},
            forbid,
            f"{REFUSED}: the API server answers Forbidden: let the controller's user get nodes and list "
            f"VirtualMachineInstances. {STAYS}",
        ),
        ({}, replace_cluster, f"its uid is other, not {CLUSTER}"),
    ],
)
def test_a_node_that_is_not_fit_stays_cordoned(
    tmp_path: Path, api: RunApi, given: dict[str, Any], trouble: Any, words: str
) -> None:
    trouble(api)
    told, status = uncordon(tmp_path, **given)
    assert (status, words in told, is_cordoned(api)) == (2, True, True), told


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (unready, "it is not Ready: see to its kubelet."),
        (evacuate, "KubeVirt wants these virtual machines to leave it: shop/db."),
    ],
)
def test_check_mode_says_what_stands_against_it_and_goes_on(
    tmp_path: Path, api: RunApi, trouble: Callable[[RunApi], None], why: str
) -> None:
    """The maintenance may be what makes the node fit, and its drain waits for who is to leave it."""
    trouble(api)
    told, status = uncordon(tmp_path, "--check")
    words = f"As it is now, node n1 could not be given back: {why}"
    assert (status, words in told, "Let virtual machines come to the node again" in told) == (0, True, True), told
    assert is_cordoned(api)


@pytest.mark.parametrize("given", [{}, {"uncordon_run": "", "uncordon_invocation": ""}])
def test_an_api_server_that_does_not_come_back_ends_the_wait(
    tmp_path: Path, api: RunApi, given: dict[str, Any]
) -> None:
    """Also outside of a run, where the role asks first what it may do."""
    kubeconfig = tmp_path / "files/cluster.kubeconfig"
    kubeconfig.write_text(kubeconfig.read_text().replace(api.url, "https://127.0.0.1:9"))
    begun = time.monotonic()
    told, status = uncordon(tmp_path, **given)
    words = f"{REFUSED} after 1 s: the API server does not answer (connection refused"
    assert (status, words in told) == (2, True), told
    assert time.monotonic() - begun < 110.0, "a task without a time of its own waits for two minutes"


def test_a_node_of_no_run_is_given_back_in_the_cluster_that_was_looked_at_first(tmp_path: Path, api: RunApi) -> None:
    """Another one answers by the same name and address once the role has begun."""

    def come_between(_request: Request) -> None:
        replace_cluster(api)

    api.faults[NODE] = come_between
    told, status = uncordon(tmp_path, **NO_RUN)
    assert (status, f"its uid is other, not {CLUSTER}" in told, is_cordoned(api)) == (2, True, True), told


def test_a_node_of_no_run_is_given_back_in_the_cluster_in_which_it_was_drained(tmp_path: Path, api: RunApi) -> None:
    told, status = uncordon(tmp_path, **NO_RUN, drain_cluster="uid-of-before")
    assert (status, f"its uid is {CLUSTER}, not uid-of-before" in told, is_cordoned(api)) == (2, True, True), told


@pytest.mark.slow
def test_whoever_is_to_leave_stays_by_choice(tmp_path: Path, api: RunApi) -> None:
    evacuate(api)
    told, status = uncordon(tmp_path, uncordon_evacuations="withdraw", uncordon_wait_timeout=60)
    assert (status, is_cordoned(api)) == (0, False), told
    assert "evacuationNodeName" not in api.objects[vmi_path("db")]["status"]


def test_a_vm_that_was_replaced_while_it_was_off_is_named(tmp_path: Path, api: RunApi) -> None:
    """Of its mark nothing is left; the node is given back, and the role does not end well."""
    api.add_vm("pets", "Manual")
    del api.objects[vmi_path("pets")]
    api.node("n1")["metadata"]["annotations"] |= noted(StoppedNote("kernel", "shop", "pets", "vm-pets"))["annotations"]
    told, status = uncordon(tmp_path, uncordon_wait_timeout=60)
    assert (status, is_cordoned(api)) == (2, False), told
    assert "shop/pets: failed, it was stopped for the node, and nothing starts it" in told


def test_without_a_boot_id_of_before_no_reboot_is_missed(tmp_path: Path, api: RunApi) -> None:
    """As where the node was drained in another playbook."""
    told, status = uncordon(tmp_path, uncordon_rebooted=True)
    assert (status, is_cordoned(api)) == (0, False), told


def last_wait_timeout(folder: Path, task: Task) -> int:
    """What the last task was given, in seconds. It says so where there is no cluster to start anything in."""
    # Newer versions of ansible-core tell it only when asked to.
    environment = {"K8S_AUTH_KUBECONFIG": str(folder / "missing"), "ANSIBLE_INJECT_INVOCATION": "true"}
    result, _lines = run_task(folder, task, "-vvv", environment=environment)
    return int(result["invocation"]["module_args"]["wait_timeout"])


def test_what_is_repeated_alone_has_all_its_time(tmp_path: Path) -> None:
    """Also on a host whose deadline of the role that has failed before is over."""
    given = {"uncordon_node": "n1", "uncordon_owner": "me", "uncordon_wait_timeout": 6000}
    restore = {"name": "virtops.kubevirt.uncordon", "tasks_from": "restore"}
    failed_before = {"ansible.builtin.set_fact": {"_uncordon_deadline": 1.0}}
    task: Task = {"block": [failed_before, {"ansible.builtin.include_role": restore, "vars": given}]}
    assert 5000 < last_wait_timeout(tmp_path, task) <= 6000


@pytest.mark.parametrize(("rest", "most"), [(6000, 6000), (-5, 120)])
def test_a_clock_that_is_set_disturbs_no_countdown(tmp_path: Path, rest: int, most: int) -> None:
    """The time goes by the controller's uptime, which nobody sets. A busy server ends no start that has just begun."""
    given = {"node": "n1", "owner": "me", "run": "", "invocation": "", "cluster_uid": ""}
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    begun = {"_uncordon_variables": {"given": given}, "_uncordon_deadline": uptime + rest}
    start = {"name": "virtops.kubevirt.uncordon", "tasks_from": "start"}
    task: Task = {"ansible.builtin.include_role": start, "vars": begun}
    assert most - 100 < last_wait_timeout(tmp_path, task) <= most


@pytest.mark.parametrize(("rest", "most"), [(6000, 6000), (-5, 120)])
def test_a_server_that_is_away_while_a_node_is_given_back_is_waited_for(tmp_path: Path, rest: int, most: int) -> None:
    """As long as the role has time: a node whose run is not told that it is done would be maintained once more."""
    name = "Let virtual machines come to the node again"
    (give_back,) = (task for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text()) if task.get("name") == name)
    given = {"node": "n1", "owner": "me", "run": "", "invocation": "", "cluster_uid": "", "foreign_cordon": "fail"}
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    begun = {"_uncordon_variables": {"given": given}, "_uncordon_deadline": uptime + rest, "_uncordon_cluster_uid": ""}
    own = {"ansible.builtin.include_vars": str(ROLE / "vars/main.yml")}
    seconds = last_wait_timeout(tmp_path, {"block": [own, give_back], "vars": begun})
    assert most - 100 < seconds <= most


def test_the_time_of_what_is_read_first_counts() -> None:
    names = [task["name"] for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text())]
    assert names.index(TIMED) < names.index("See that all that is to be done is allowed")
