# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook does with nodes between drain and uncordon: who is maintained, and what is told of who fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
ALONE = [["n1"]]
TOGETHER = [["n1", "n2"]]


def first(folder: Path, batches: list[list[str]], **given: Any) -> dict[str, Any]:
    """A play that leaves what the first one of the playbook does. given: variables of localhost."""
    host = {"drain_batches": batches, "ansible_connection": "local"}
    group = given.get("plan_maintenance_group", "maintenance")
    facts = {
        "plan_maintenance_batches": batches,
        "plan_maintenance_plan": {"group": group},
        "rolling_maintenance_tasks": str(folder / "hook.yml"),
        **given,
    }
    taken = yaml.safe_load((PLAYBOOKS / "steps/check.yml").read_text())[0]
    hosts = [
        {"ansible.builtin.add_host": {"name": name, "groups": group, **host}} for batch in batches for name in batch
    ]
    return {
        "hosts": "localhost",
        "strategy": "linear",
        "gather_facts": False,
        "tasks": [*hosts, {"ansible.builtin.set_fact": facts}, taken],
    }


def middle() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The play that maintains, and the tasks of its block."""
    content = (PLAYBOOKS / "rolling_maintenance.yml").read_text().replace("steps/", f"{PLAYBOOKS}/steps/")
    found: dict[str, Any] = yaml.safe_load(content)[2]
    (block,) = found["tasks"]
    return found, block["block"]


def maintained(
    folder: Path,
    hook: list[dict[str, Any]],
    batches: list[list[str]],
    *options: str,
    begun_in: Path | None = None,
    **given: Any,
) -> tuple[str, int]:
    """What is told without the roles, which need a cluster; last of all each failure that is remembered."""
    (folder / "hook.yml").write_text(yaml.safe_dump(hook))
    found, tasks = middle()
    tasks[:] = [task for task in tasks if "ansible.builtin.include_role" not in task]
    names = [name for batch in batches for name in batch]
    failed = "map(attribute='rolling_maintenance_failure', default='-')"
    failures = f"{{{{ {names} | map('extract', hostvars) | {failed} }}}}"
    last = {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": failures}}]}
    return play(folder, yaml.safe_dump([first(folder, batches, **given), found, last]), *options, begun_in=begun_in)


def lost(folder: Path) -> dict[str, Any]:
    """A task that finds its host away."""
    ssh = folder / "ssh"
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    return {"ansible.builtin.raw": "true", "vars": {"ansible_connection": "ssh", "ansible_ssh_executable": str(ssh)}}


def test_what_is_given_to_localhost_alone_is_done_to_the_nodes(tmp_path: Path) -> None:
    """As by a play before this one, or by its host_vars: nodes were given back as maintained that nobody was at."""
    hook = [{"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} is maintained"}}]
    told, _status = maintained(tmp_path, hook, ALONE, plan_maintenance_group="tonight")
    assert "n1 is maintained" in told, told


def test_a_host_has_its_own_maintenance(tmp_path: Path) -> None:
    own = [{"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} has its own"}}]
    (tmp_path / "own.yml").write_text(yaml.safe_dump(own))
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars/n1").write_text(yaml.safe_dump({"rolling_maintenance_tasks": f"{tmp_path}/own.yml"}))
    told, _status = maintained(tmp_path, [{"ansible.builtin.debug": {"msg": "as all"}}], ALONE)
    assert ("n1 has its own" in told, "as all" in told) == (True, False), told


def test_who_only_shares_the_failure_of_another_host_was_not_lost(tmp_path: Path) -> None:
    hook = [{"ansible.builtin.fail": {"msg": "The mirror is away."}, "run_once": True}]
    told, _status = maintained(tmp_path, hook, TOGETHER)
    assert '"ansible.builtin.fail: The mirror is away."' in told, told
    assert '"n2 was stopped by an error of another host of its batch, or' in told, told


def test_tasks_that_cannot_be_loaded_are_no_lost_host(tmp_path: Path) -> None:
    told, _status = maintained(tmp_path, [{"ansible.builtin.include_tasks": "nowhere.yml"}], ALONE)
    words = "n1 could not be reached during its maintenance, or a file or role of that could not be loaded"
    assert words in told, told


@pytest.mark.parametrize(
    "missing", [{"ansible.builtin.include_tasks": "nowhere.yml"}, {"ansible.builtin.include_role": {"name": "nowhere"}}]
)
def test_a_batch_that_fails_as_a_whole_is_told_of(tmp_path: Path, missing: dict[str, Any]) -> None:
    """For Ansible a host stays failed that could not load something, also when rescued, and all of them end all."""
    told, _status = maintained(tmp_path, [missing], [*TOGETHER, ["n3"]])
    words = "was stopped by an error of another host of its batch, or a file or role could not be loaded: see above."
    assert [f'"{name} {words}"' in told for name in ("n1", "n2")] == [True, True], told


def test_a_lost_host_does_not_go_on_when_another_one_cannot_load_something(tmp_path: Path) -> None:
    hook: list[dict[str, Any]] = [
        {**lost(tmp_path), "when": "inventory_hostname == 'n1'"},
        {"ansible.builtin.include_tasks": "nowhere.yml", "when": "inventory_hostname != 'n1'"},
        {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} goes on"}},
    ]
    told, _status = maintained(tmp_path, hook, [["n1", "n2"]])
    assert ("UNREACHABLE" in told, "nowhere.yml" in told, "goes on" in told) == (True, True, False), told


def test_no_strategy_of_ones_own_lets_a_lost_host_go_on(tmp_path: Path) -> None:
    """With `free` Ansible takes no heed of any_errors_fatal, and makes no hosts of the plan."""
    (tmp_path / "ansible.cfg").write_text("[defaults]\nstrategy=free\n")
    hook: list[dict[str, Any]] = [
        lost(tmp_path),
        {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} goes on"}},
    ]
    told, _status = maintained(tmp_path, hook, ALONE, begun_in=tmp_path)
    assert ("UNREACHABLE" in told, "n1 goes on" in told) == (True, False), told
    assert '"n1 could not be reached during its maintenance' in told, told
    plays = yaml.safe_load((PLAYBOOKS / "rolling_maintenance.yml").read_text())[1:]
    assert {each.get("strategy") for each in plays} == {"ansible.builtin.linear"}


def test_a_host_is_maintained_by_a_file_or_a_role(tmp_path: Path) -> None:
    """Both may come from different groups; localhost has but one."""
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"n1": {"rolling_maintenance_role": "own"}}}}))
    hook = [{"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} is maintained"}}]
    found = {"rolling_maintenance_tasks": str(tmp_path / "hook.yml")}
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.yml").write_text(yaml.safe_dump(found))
    told, _status = maintained(tmp_path, hook, [["n2"], ["n1"]], "-i", str(tmp_path / "hosts.yml"))
    assert "n1 has both rolling_maintenance_tasks and rolling_maintenance_role, perhaps one of them" in told, told
    assert ("n1 is maintained" in told, "n2 is maintained" in told) == (False, True), told


def test_nodes_are_maintained_in_the_cluster_in_which_the_run_was_planned(tmp_path: Path) -> None:
    """Where its kubeconfig is a variable of localhost, such as a fact."""
    (tmp_path / "mine.kubeconfig").write_text("kind: Config\ncurrent-context: nowhere\n")
    read = {"virtops.kubevirt.maintenance_run": {"run": "kernel", "state": "released"}, "delegate_to": "localhost"}
    told, _status = maintained(
        tmp_path, [read], ALONE, rolling_maintenance_kubeconfig=str(tmp_path / "mine.kubeconfig")
    )
    assert "nowhere" in told, told  # that is, the file was read


def elsewhere(folder: Path) -> dict[str, Any]:
    """How an inventory leads to all of its hosts, and `localhost` is one of them: by ssh, and as another user."""
    become = {"ansible_become": True, "ansible_become_user": "nobody", "ansible_become_exe": f"{folder}/sudo"}
    return {**become, "ansible_connection": "ssh", "ansible_ssh_executable": f"{folder}/ssh"}


@pytest.mark.parametrize("shipped", ["localhost", "nodes"])
def test_nobody_becomes_another_user_on_the_controller(tmp_path: Path, shipped: str) -> None:
    """Nor is another Python taken than that of ansible-playbook, or it reached by ssh, whatever the inventory says."""
    own = {"ansible_python_interpreter": f"{tmp_path}/python"}
    inventory = {"all": {"hosts": {"localhost": own}, "vars": elsewhere(tmp_path)}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory))
    (tmp_path / "hook.yml").write_text("[]\n")
    given = {"plan_maintenance_run": "kernel", "plan_maintenance_nodes": "n1", "drain_run": "kernel"}
    found, tasks = middle()
    tasks[:] = [task for task in tasks if "ansible.builtin.include_role" in task][:1]
    content = {
        "localhost": [{"import_playbook": "virtops.kubevirt.rolling_maintenance"}],
        "nodes": [first(tmp_path, ALONE), found],
    }[shipped]
    options = ("-i", str(tmp_path / "hosts.yml"), "-e", json.dumps({**given, "rolling_maintenance_tasks": "hook.yml"}))
    told, _status = play(tmp_path, yaml.safe_dump(content), *options, begun_in=tmp_path, interpreter=None)
    assert "Kubernetes API" in told, told


@pytest.mark.parametrize(
    ("role", "host", "given"),
    [
        ("drain", "n1", {"drain_owner": "me"}),
        ("uncordon", "n1", {"uncordon_owner": "me", "uncordon_wait_timeout": 1}),
        ("plan_maintenance", "localhost", {"plan_maintenance_run": "kernel", "plan_maintenance_nodes": "n1"}),
        ("rebalance", "localhost", {}),
    ],
    ids=["drain", "uncordon", "plan_maintenance", "rebalance"],
)
def test_nor_does_a_role_in_a_playbook_of_ones_own(tmp_path: Path, role: str, host: str, given: dict[str, Any]) -> None:
    """With another user's kubeconfig it might be about another cluster, and nobody else could read the plan."""
    hosts = {"n1": None, "localhost": None}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": elsewhere(tmp_path)}}))
    content = [{"hosts": host, "gather_facts": False, "roles": [f"virtops.kubevirt.{role}"]}]
    options = ("-i", str(tmp_path / "hosts.yml"), "-e", json.dumps(given))
    told, _status = play(tmp_path, yaml.safe_dump(content), *options, begun_in=tmp_path)
    seen = [word in told for word in ("sudo", "UNREACHABLE")]
    assert (seen, "Kubernetes API" in told or "API server" in told) == ([False, False], True), told
