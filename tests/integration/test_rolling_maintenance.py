# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook rolling_maintenance on the demonstration application: foretold, stopped by an error, and continued."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from demo.history import History
from integration.clusters import loaded
from integration.playbooks import begin, run
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.scenarios import files
from testbed.waiting import wait_for

CUSTOMAPP = files.read(files.FOLDER / "customapp.yaml")
NAMESPACE, LABEL = "customapp", "virtops.kubevirt/maintained"
# A node with a cache and a black box that move away, and one with a database that cannot.
REGULAR, HIGH = "kni-worker", "kni-worker4"
SETTINGS: dict[str, Any] = {
    "plan_maintenance_run": "test",
    "plan_maintenance_nodes": [REGULAR, HIGH],
    "plan_maintenance_policies": [{"selector": {"app": "mssql2016"}, "policy": "stop"}],
    "plan_maintenance_delete_emptydir_data": True,
    "uncordon_wait_sleep": 1,
}
# Annotations and labels that change by themselves, and the namespace of the nodes' own Leases.
RESTLESS = ("kubevirt.io/heartbeat", "kubevirt.io/schedulable")
NODE_LEASES = "kube-node-lease"
# The same as SETTINGS, with defaults for all the rest, as a survey of AWX gives it.
SURVEY = {
    "plan_maintenance_nodes": f"{REGULAR}, {HIGH}",
    "plan_maintenance_policies": '[{"selector": {"app": "mssql2016"}, "policy": "stop"}]',
    "plan_maintenance_delete_emptydir_data": "yes",
    "plan_maintenance_batch": "25%",
    "plan_maintenance_max_failed_nodes": "0",
    **{f"plan_maintenance_{name}": "" for name in ("node_names", "force", "foreign_cordon", "infeasible", "drift")},
    **{f"plan_maintenance_{name}": "" for name in ("rights", "group", "snapshot", "path", "file", "sha256")},
    "drain_wait_timeout": "600",
    "drain_max_failed_vms": "",
    "uncordon_rebooted": "false",
    "uncordon_wait_sleep": "1",
    "rebalance_max_moves": "20",
    "rolling_maintenance_role": "",
    "rolling_maintenance_rebalance": "true",
    "rolling_maintenance_context": "",
}
ONE: dict[str, Any] = {"plan_maintenance_nodes": [REGULAR], "rolling_maintenance_rebalance": False}


@pytest.fixture
def customapp(testbed: RunningTestbed) -> Iterator[Api]:
    with loaded(testbed.api, CUSTOMAPP):
        yield testbed.api


def maintain(
    testbed: RunningTestbed, folder: Path, hook: list[dict[str, Any]], *words: str, **settings: Any
) -> CompletedProcess[str]:
    playbook, options = prepared(testbed, folder, hook, **settings)
    return run(playbook, *options, *words)


def prepared(
    testbed: RunningTestbed, folder: Path, hook: list[dict[str, Any]], **settings: Any
) -> tuple[Path, list[str]]:
    """The playbook and its options."""
    (folder / "hook.yml").write_text(yaml.safe_dump(hook))
    playbook = folder / "maintain.yml"
    playbook.write_text(yaml.safe_dump([{"import_playbook": "virtops.kubevirt.rolling_maintenance"}]))
    variables = {
        **SETTINGS,
        **settings,
        "rolling_maintenance_tasks": str(folder / "hook.yml"),
        "rolling_maintenance_kubeconfig": str(testbed.kubeconfig),
    }
    return playbook, ["--diff", "--extra-vars", json.dumps(variables)]


def told(done: CompletedProcess[str]) -> str:
    return done.stdout[-6000:] + done.stderr[-2000:]


def nodes(api: Api) -> dict[str, Object]:
    return {node["metadata"]["name"]: node for node in api.items("/api/v1/nodes")}


def maintained(api: Api) -> list[str]:
    return sorted(name for name, node in nodes(api).items() if node["metadata"]["labels"].get(LABEL) == "test")


def cordoned(api: Api) -> list[str]:
    return sorted(name for name, node in nodes(api).items() if node["spec"].get("unschedulable"))


def placement(api: Api) -> dict[str, tuple[str, str]]:
    """Node and uid of each pod of the application that has not ended."""
    pods = api.items(resource_path("v1", "pods", NAMESPACE))
    living = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    return {pod["metadata"]["name"]: (pod["spec"].get("nodeName", ""), pod["metadata"]["uid"]) for pod in living}


def place_of(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def lasting(item: Object) -> bool:
    """Another test's namespace may still be ending."""
    return "deletionTimestamp" not in item["metadata"]


def written(api: Api) -> dict[str, Any]:
    """All that a run may write, without what the cluster itself keeps changing."""

    def marks(path: str) -> dict[str, Object]:
        found = {}
        for item in api.items(path):
            metadata = item["metadata"]
            found[metadata["name"]] = {
                field: {key: value for key, value in metadata.get(field, {}).items() if key not in RESTLESS}
                for field in ("labels", "annotations")
            }
        return found

    kubevirt = {
        plural: resource_path("kubevirt.io/v1", plural, NAMESPACE)
        for plural in (
            "virtualmachineinstances",
            "virtualmachineinstancemigrations",
            "virtualmachineinstancereplicasets",
            "virtualmachines",
        )
    }
    leases = api.items(resource_path("coordination.k8s.io/v1", "leases"))
    return {
        "nodes": marks("/api/v1/nodes"),
        "cordoned": cordoned(api),
        "namespaces": [item["metadata"]["name"] for item in api.items("/api/v1/namespaces") if lasting(item)],
        "leases": sorted(place for place in map(place_of, leases) if place[0] != NODE_LEASES),
        "placement": placement(api),
        **{plural: marks(path) for plural, path in kubevirt.items()},
    }


@pytest.mark.parametrize(
    "settings", [pytest.param(SETTINGS, marks=pytest.mark.gate, id="values"), pytest.param(SURVEY, id="texts")]
)
def test_check_mode_tells_all_and_changes_nothing(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path, settings: dict[str, Any]
) -> None:
    before = written(customapp)
    done = maintain(testbed, tmp_path, [{"ansible.builtin.debug": {"msg": "maintained"}}], "--check", **settings)
    assert done.returncode == 0, told(done)
    assert "-> kni-worker2" in done.stdout
    assert "is off until the node is back" in done.stdout
    assert written(customapp) == before


def test_a_run_that_an_error_stopped_goes_on(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    """The first node's maintenance fails, then succeeds; a third run has nothing to do."""
    broken = [{"ansible.builtin.fail": {"msg": "The disk of {{ inventory_hostname }} is full."}}]
    sound = [{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]
    with History(testbed.kubeconfig, NAMESPACE) as history:
        stopped = maintain(testbed, tmp_path, broken)
        assert stopped.returncode != 0
        assert f"The disk of {REGULAR} is full." in stopped.stdout + stopped.stderr
        assert f"{HIGH}: not begun, because {REGULAR} of an earlier batch is not done." in stopped.stdout
        assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [])

        done = maintain(testbed, tmp_path, sound)
        assert done.returncode == 0, told(done)
        assert (cordoned(customapp), maintained(customapp)) == ([], sorted([REGULAR, HIGH]))

        again = maintain(testbed, tmp_path, sound)
        assert again.returncode == 0, told(again)
        assert "changed=0" in again.stdout
        assert "maintained kni" not in again.stdout
    assert history.crowded == set()
    assert (history.newcomers("blackbox"), history.interruptions("blackbox")) == ([], [])
    assert len(history.newcomers("mssql2016")) == 1


def test_nodes_of_a_batch_are_out_together_and_do_not_wait_for_each_other(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path
) -> None:
    """One of the first batch fails: its mate is done, the next batch is not begun, and the same command goes on."""
    mate = "kni-worker3"
    two: dict[str, Any] = {"plan_maintenance_nodes": [REGULAR, mate, HIGH], "plan_maintenance_batch": 2}
    out = {"ansible.builtin.debug": {"msg": "out together: {{ ansible_play_batch | join(' and ') }}"}}
    broken = {"ansible.builtin.fail": {"msg": "The disk is full."}, "when": f"inventory_hostname == '{REGULAR}'"}
    with History(testbed.kubeconfig, NAMESPACE) as history:
        stopped = maintain(testbed, tmp_path, [out, broken], **two)
        assert stopped.returncode != 0
        assert f"out together: {REGULAR} and {mate}" in stopped.stdout
        assert f"{HIGH}: not begun, because {REGULAR} of an earlier batch is not done." in stopped.stdout
        assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [mate]), told(stopped)

        done = maintain(testbed, tmp_path, [out], **two)
        assert done.returncode == 0, told(done)
        assert (cordoned(customapp), maintained(customapp)) == ([], sorted([REGULAR, mate, HIGH]))
    assert history.crowded == set()
    assert (history.newcomers("blackbox"), history.interruptions("blackbox")) == ([], [])


@pytest.mark.parametrize("all_named", [True, False], ids=["the same nodes", "those that are left"])
def test_a_run_that_was_killed_goes_on_by_its_plan_from_another_controller(
    testbed: RunningTestbed, customapp: Api, tmp_path: Path, *, all_named: bool
) -> None:
    """It is killed when the first batch is done, with all that its controller has on disk."""
    mate = "kni-worker3"
    two: dict[str, Any] = {"plan_maintenance_nodes": [REGULAR, mate], "rolling_maintenance_rebalance": False}
    hook = [{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]
    first = tmp_path / "first.json"
    playbook, options = prepared(testbed, tmp_path, hook, plan_maintenance_path=str(first), **two)
    going = begin(playbook, *options)
    try:
        wait_for("the end of the first batch", lambda: maintained(customapp) == [REGULAR], 240)
    finally:
        os.killpg(going.pid, signal.SIGKILL)
        going.wait()
    planned = json.loads(first.read_text())
    shutil.rmtree(tmp_path / "home")
    first.unlink()

    asked = two if all_named else {**two, "plan_maintenance_nodes": [mate]}
    done = maintain(testbed, tmp_path, hook, plan_maintenance_path=str(first), **asked)
    assert done.returncode == 0, told(done)
    assert f"Run test goes on by the plan of {planned['snapshot']['taken']}." in done.stdout
    assert f'"maintained {REGULAR}"' not in done.stdout
    assert maintained(customapp) == sorted([REGULAR, mate])
    again = json.loads(first.read_text())
    assert (again["snapshot"], again["batches"]) == (planned["snapshot"], planned["batches"])
    assert targets(again, mate).items() <= targets(planned, mate).items()
    config_maps = resource_path("v1", "configmaps", "medik8s-leases")
    maps = customapp.items(config_maps, labelSelector="virtops.kubevirt/run=test")
    assert maps == [], "what a run remembers goes with it"


def targets(plan: dict[str, Any], node: str) -> dict[str, str | None]:
    """Where the application's VMs go from a node. Pods of KubeVirt may have come to it, by the scheduler's lot."""
    leaving = [entry for entry in plan["actions"] if (entry["node"], entry["kind"]) == (node, "migrate")]
    return {entry["object"]["name"]: entry["to"] for entry in leaving}


def test_a_run_goes_past_nodes_that_have_failed(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    """And fails in the end; when the cause is removed, it goes on with what has failed."""
    mate = "kni-worker3"
    asked: dict[str, Any] = {
        "plan_maintenance_nodes": [REGULAR, mate],
        "plan_maintenance_max_failed_nodes": 1,
        "rolling_maintenance_rebalance": False,
    }
    broken = {"ansible.builtin.fail": {"msg": "The disk is full."}, "when": f"inventory_hostname == '{REGULAR}'"}
    failed = maintain(testbed, tmp_path, [broken], **asked)
    assert failed.returncode != 0
    assert f"Not done: {REGULAR}." in failed.stdout, told(failed)
    assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [mate]), told(failed)

    done = maintain(testbed, tmp_path, [{"ansible.builtin.debug": {"msg": "maintained"}}], **asked)
    assert done.returncode == 0, told(done)
    assert (cordoned(customapp), maintained(customapp)) == ([], sorted([REGULAR, mate]))


def test_a_run_beside_somebody_elses_cordon(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    """It is refused unless it is wanted; then the node is done, and that cordon stays."""
    customapp.patch(f"/api/v1/nodes/{REGULAR}", {"spec": {"unschedulable": True}})
    hook = [{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]
    refused = maintain(testbed, tmp_path, hook, **ONE)
    assert refused.returncode != 0
    assert "maintained kni" not in refused.stdout

    done = maintain(testbed, tmp_path, hook, plan_maintenance_foreign_cordon="keep", **ONE)
    assert done.returncode == 0, told(done)
    assert f"{REGULAR}: done" in done.stdout
    assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [REGULAR])


def test_handlers_run_before_the_node_is_given_back(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    """Those of a maintenance that failed do not run; when one fails itself, the node is not given back."""
    look = {"kind": "Node", "name": "{{ inventory_hostname }}"}
    cordoned_still = "not node.resources[0].spec.unschedulable | default(false)"
    role = {
        "tasks": [
            {"ansible.builtin.debug": {"msg": "installed"}, "changed_when": True, "notify": "Reboot"},
            {"ansible.builtin.fail": {"msg": "The disk is full."}, "when": "full | default(false)"},
        ],
        "handlers": [
            {
                "name": "Reboot",
                "kubernetes.core.k8s_info": look,
                "delegate_to": "localhost",
                "register": "node",
                "failed_when": f"broken | default(false) or {cordoned_still}",
            }
        ],
    }
    for part, tasks in role.items():
        (tmp_path / "kernel" / part).mkdir(parents=True)
        (tmp_path / "kernel" / part / "main.yml").write_text(yaml.safe_dump(tasks, sort_keys=False))
    hook = [{"ansible.builtin.include_role": {"name": str(tmp_path / "kernel")}}]

    failed = maintain(testbed, tmp_path, hook, full=True, **ONE)
    assert failed.returncode != 0
    assert "RUNNING HANDLER" not in failed.stdout, told(failed)
    assert f"{REGULAR}: failed" in failed.stdout

    broken = maintain(testbed, tmp_path, hook, broken=True, **ONE)
    assert broken.returncode != 0
    assert f"{REGULAR}: failed" in broken.stdout, told(broken)
    assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [])

    done = maintain(testbed, tmp_path, hook, **ONE)
    assert done.returncode == 0, told(done)
    assert "RUNNING HANDLER" in done.stdout
    assert (cordoned(customapp), maintained(customapp)) == ([], [REGULAR])


def test_a_lost_host_fails_at_once_and_is_reported(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    """Alone in its batch it stops the run, unless its maintenance rescues it; in a batch of two its mate is done."""
    mate = "kni-worker3"
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    away = {"ansible_connection": "ssh", "ansible_ssh_executable": str(ssh)}
    hook: list[dict[str, Any]] = [
        {"ansible.builtin.command": "reboot", "vars": away, "when": f"inventory_hostname == '{REGULAR}'"},
        {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} goes on"}},
    ]
    alone = maintain(testbed, tmp_path, hook)
    assert alone.returncode != 0
    assert f"{REGULAR} goes on" not in alone.stdout
    assert f"{HIGH}: not begun, because {REGULAR} of an earlier batch is not done." in alone.stdout, told(alone)
    assert f"{REGULAR}: failed" in alone.stdout
    assert f"Not done: {REGULAR}, {HIGH}. {REGULAR} could not be reached during its maintenance, or" in alone.stdout
    assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [])

    two: dict[str, Any] = {"plan_maintenance_nodes": [REGULAR, mate], "plan_maintenance_batch": 2}
    beside = maintain(testbed, tmp_path, hook, **two)
    assert beside.returncode != 0
    assert f"{REGULAR} goes on" not in beside.stdout
    assert f"{REGULAR}: failed" in beside.stdout, told(beside)
    assert f"{mate}: done" in beside.stdout
    assert (cordoned(customapp), maintained(customapp)) == ([REGULAR], [mate])

    rescue = [{"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} is rescued"}}]
    rescued = maintain(testbed, tmp_path, [{"block": hook, "rescue": rescue}], **ONE)
    assert rescued.returncode == 0, told(rescued)
    assert f"{REGULAR} is rescued" in rescued.stdout
    assert f"{REGULAR}: done" in rescued.stdout


def test_an_error_that_no_log_hides_stays_hidden(testbed: RunningTestbed, customapp: Api, tmp_path: Path) -> None:
    login = {
        "name": "Log in",
        "ansible.builtin.fail": {"msg": "No user {{ item }} has the password {{ password }}."},
        "loop": ["root"],
        "no_log": "{{ item == 'root' }}",
    }
    failed = maintain(testbed, tmp_path, [login], password="hunter2", **ONE)
    assert failed.returncode != 0
    # What ansible-core itself says of a failed task with no_log stands before the last play.
    report = failed.stdout.partition("PLAY [Put the cluster back in shape and report]")[2]
    assert "Log in: its error is hidden by no_log." in report, told(failed)
    assert "hunter2" not in report
    assert cordoned(customapp) == [REGULAR]
