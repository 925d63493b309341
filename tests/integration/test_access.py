# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role access, and what its accounts can do: all of their maintenance, and none of it if one right is missing."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client, connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.permissions import missing_rights
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import LEASE_NAMESPACE, Right
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES, reasons

from integration.accounts import GROUP, account, regrant
from integration.clusters import loaded, vmi_on
from integration.playbooks import run
from integration.test_rolling_maintenance import (
    CUSTOMAPP,
    HIGH,
    NAMESPACE,
    REGULAR,
    SETTINGS,
    maintained,
    told,
    written,
)
from testbed.api import Api, resource_path
from testbed.handle import RunningTestbed
from testbed.waiting import wait_for

RUN = reasons(ROLES["rolling_maintenance"])
RELEASE = Right("coordination.k8s.io", "leases", "delete", of_leases=True)
# KubeVirt itself lets every user see its KubeVirt object, and the instance types and preferences of the cluster.
GRANTED_BY_KUBEVIRT = {
    Right("kubevirt.io", "kubevirts", "list"),
    Right("instancetype.kubevirt.io", "virtualmachineclusterinstancetypes", "list"),
    Right("instancetype.kubevirt.io", "virtualmachineclusterpreferences", "list"),
}
HOOK = [{"ansible.builtin.debug": {"msg": "maintained"}}]
WHERE = {"access_namespace": "access-test", "access_kubevirt_role": False}


@pytest.fixture(scope="module")
def customapp(testbed: RunningTestbed) -> Iterator[Api]:
    with loaded(testbed.api, CUSTOMAPP):
        yield testbed.api


def play(folder: Path, name: str, *words: str, **settings: Any) -> CompletedProcess[str]:
    """Run a playbook of the collection."""
    playbook = folder / f"{name}.yml"
    playbook.write_text(yaml.safe_dump([{"import_playbook": f"virtops.kubevirt.{name}"}]))
    return run(playbook, "--extra-vars", json.dumps(settings), *words)


def maintain(folder: Path, kubeconfig: str, *words: str, **settings: Any) -> CompletedProcess[str]:
    hook = folder / "hook.yml"
    hook.write_text(yaml.safe_dump(HOOK))
    given = {"rolling_maintenance_tasks": str(hook), "rolling_maintenance_kubeconfig": kubeconfig}
    return play(folder, "rolling_maintenance", *words, **{**SETTINGS, **given, **settings})


def act(folder: Path, kubeconfig: str, role: str, *words: str, **settings: Any) -> CompletedProcess[str]:
    """Run a role by itself."""
    where = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    defaults = {"group/virtops.kubevirt.all": {"kubeconfig": kubeconfig}}
    task = {"ansible.builtin.include_role": {"name": f"virtops.kubevirt.{role}"}}
    playbook = folder / f"{role}.yml"
    playbook.write_text(yaml.safe_dump([{**where, "module_defaults": defaults, "vars": settings, "tasks": [task]}]))
    return run(playbook, *words)


def made(api: Api) -> list[str]:
    """What role access has made for the test's accounts."""
    found = [
        f"{plural} {item['metadata']['name']}"
        for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
        for item in api.items(resource_path(f"{GROUP}/v1", plural))
        if "virtops.kubevirt:" in item["metadata"]["name"]
    ]
    accounts = api.items(resource_path("v1", "serviceaccounts", "access-test"))
    return found + [f"account {item['metadata']['name']}" for item in accounts]


def test_an_account_is_made_and_removed(testbed: RunningTestbed, tmp_path: Path) -> None:
    """Again nothing is changed, with fewer roles it may do less, and what somebody else is bound to stays."""
    file = tmp_path / "maintenance.kubeconfig"
    settings = {**WHERE, "access_kubeconfig": str(testbed.kubeconfig), "access_path": str(file)}
    foretold = play(tmp_path, "access", "--check", **settings)
    assert (foretold.returncode, file.exists(), made(testbed.api)) == (0, False, []), told(foretold)
    done = play(tmp_path, "access", "-vvv", "--diff", **settings)
    assert done.returncode == 0, told(done)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["users"][0]["user"]["token"] not in done.stdout + done.stderr
    assert missing_rights(client(str(file)), RUN, LEASE_NAMESPACE) == []
    assert "changed=0" in play(tmp_path, "access", **settings).stdout

    less = play(tmp_path, "access", **{**settings, "access_roles": "planning", "access_kubevirt_role": True})
    assert less.returncode == 0, told(less)
    wait_for("the account to have fewer rights", lambda: RELEASE in missing_rights(client(str(file)), RUN, "any"))
    other = {**settings, "access_roles": ["planning", "drain"], "access_account": "other", "access_path": ""}
    assert play(tmp_path, "access", **other).returncode == 0
    assert play(tmp_path, "access", **{**settings, "access_state": "absent"}).returncode == 0
    assert not file.exists()
    assert {entry for entry in made(testbed.api) if ":access-test:" not in entry} == {
        "clusterroles virtops.kubevirt:drain",
        "clusterroles virtops.kubevirt:planning",
        "roles virtops.kubevirt:drain",
        "roles virtops.kubevirt:planning",
        "account other",
        "account default",
    }
    assert play(tmp_path, "access", **{**other, "access_state": "absent"}).returncode == 0
    assert made(testbed.api) == ["account default"]
    assert "changed=0" in play(tmp_path, "access", **{**other, "access_state": "absent"}).stdout


def client(kubeconfig: str) -> Client:
    return connect_by({"kubeconfig": kubeconfig}, 10)


def test_a_whole_run_by_an_account_of_its_own(
    testbed: RunningTestbed, customapp: Api, namespace: str, tmp_path: Path
) -> None:
    """VMs move, are stopped and started again, pods are evicted, and all is brought back; then it is given up."""
    nodes = [REGULAR, HIGH, "kni-worker5"]
    with account(testbed, namespace, ROLES["rolling_maintenance"]) as kubeconfig:
        foretold = maintain(tmp_path, kubeconfig, "--check", plan_maintenance_nodes=nodes)
        assert foretold.returncode == 0, told(foretold)
        done = maintain(tmp_path, kubeconfig, plan_maintenance_nodes=nodes)
        assert done.returncode == 0, told(done)
        assert maintained(customapp) == sorted(nodes)
        given_up = play(tmp_path, "abort", abort_run="test", abort_kubeconfig=kubeconfig)
        assert given_up.returncode == 0, told(given_up)


def test_planning_by_an_account_that_only_reads(
    testbed: RunningTestbed, customapp: Api, namespace: str, tmp_path: Path
) -> None:
    """Who wants more than to plan is told what is missing."""
    nodes = {
        "plan_maintenance_run": "read",
        "plan_maintenance_nodes": [REGULAR],
        "plan_maintenance_infeasible": "report",
    }
    before = written(customapp)
    with account(testbed, namespace, ROLES["planning"]) as kubeconfig:
        done = act(tmp_path, kubeconfig, "plan_maintenance", "--check", **nodes, plan_maintenance_rights="planning")
        assert done.returncode == 0, told(done)
        refused = act(tmp_path, kubeconfig, "plan_maintenance", **nodes)
    assert refused.returncode != 0
    assert "to patch nodes (to cordon it in its owner's name)" in refused.stdout + refused.stderr, told(refused)
    assert written(customapp) == {**before, "namespaces": written(customapp)["namespaces"]}


def test_each_role_by_an_account_of_its_own(
    testbed: RunningTestbed, customapp: Api, namespace: str, tmp_path: Path
) -> None:
    vmi = vmi_on(customapp, NAMESPACE, "kni-worker3", "blackbox")["metadata"]["name"]
    node, owner = REGULAR, "single"
    settings: dict[str, dict[str, Any]] = {
        "drain": {"drain_node": node, "drain_owner": owner, "drain_delete_emptydir_data": True},
        "uncordon": {"uncordon_node": node, "uncordon_owner": owner, "uncordon_wait_sleep": 1},
        "rebalance": {},
        "live_migrate": {"live_migrate_vmis": [{"namespace": NAMESPACE, "name": vmi, "target_node": "kni-worker3"}]},
        "plan_maintenance": {
            "plan_maintenance_run": "planned",
            "plan_maintenance_nodes": [node],
            "plan_maintenance_delete_emptydir_data": True,
            "plan_maintenance_rights": "plan_maintenance",
        },
    }
    for role, variables in settings.items():
        with account(testbed, namespace, ROLES[role]) as kubeconfig:
            done = act(tmp_path, kubeconfig, role, **variables)
            assert done.returncode == 0, told(done)


def test_a_run_without_the_right_to_release_is_refused_before_it_begins(
    testbed: RunningTestbed, customapp: Api, namespace: str, tmp_path: Path
) -> None:
    settings = {"plan_maintenance_run": "refused"}
    with account(testbed, namespace, ROLES["rolling_maintenance"]) as kubeconfig:
        regrant(customapp, namespace, RUN.keys() - {RELEASE})
        limited = client(kubeconfig)
        wait_for("the right to be missed", lambda: missing_rights(limited, RUN, LEASE_NAMESPACE) == [RELEASE], 10)
        before = written(customapp)
        for words in ([], ["--check"]):
            refused = maintain(tmp_path, kubeconfig, *words, **settings)
            assert refused.returncode != 0
            said = refused.stdout + refused.stderr
            assert "to delete leases.coordination.k8s.io in namespace medik8s-leases (to release the node" in said
            assert "virtops.kubevirt.access -e access_roles=rolling_maintenance" in said
        assert written(customapp) == before


@pytest.fixture(scope="module")
def runner(testbed: RunningTestbed) -> Iterator[tuple[str, Client]]:
    """The name of an account with the rights of a whole run, and its connection."""
    name = testbed.namespace("rights")
    with account(testbed, name, ROLES["rolling_maintenance"]) as kubeconfig:
        yield name, client(kubeconfig)
    testbed.drop_namespace(name)


@pytest.mark.parametrize("right", RUN, ids=lambda right: f"{right.verb} {right.title}")
def test_each_right_is_missed(testbed: RunningTestbed, runner: tuple[str, Client], right: Right) -> None:
    name, limited = runner
    regrant(testbed.api, name, RUN.keys() - {right})
    expected = [] if right in GRANTED_BY_KUBEVIRT else [right]
    wait_for(
        "the right to be missed", lambda: missing_rights(limited, RUN, LEASE_NAMESPACE) == expected, 10, interval=0.05
    )
