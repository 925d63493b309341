# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a run as people and surveys give them: misspelt ones are refused, texts are understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

NEXT = "Check that the maintenance is given"


@pytest.mark.parametrize(
    ("playbook", "variables", "words"),
    [
        (
            "rolling_maintenance",
            {"plan_maintenance_batch_size": 2, "rolling_maintenance_taks": "a", "uncordon_ownr": "me"},
            [
                "3 mistakes",
                "plan_maintenance_batch_size (do you mean plan_maintenance_batch?), which host localhost has",
                "rolling_maintenance_taks (do you mean rolling_maintenance_tasks?)",
                "uncordon_ownr (do you mean uncordon_owner?)",
            ],
        ),
        ("rolling_maintenance", {"rolling_maintenance_rebalance": "maybe"}, ["has to be true or false"]),
        (
            "rolling_maintenance",
            {"rolling_maintenance_role": "virtops.kubevirt.pathc"},
            ["ole 'virtops.kubevirt.pathc' was not found in", "give its full name in a collection, or its path."],
        ),
        ("rolling_maintenance", {"rolling_maintenance_role": "steps"}, ["playbooks/steps is no role with tasks."]),
        ("abort", {"abort_forced": True}, ["abort_forced (do you mean abort_force?)", "abort_run is not given"]),
        ("abort", {"abort_run": ""}, ["missing required arguments: abort_run"]),
        ("access", {"access_acount": "me"}, ["access_acount (do you mean access_account?)"]),
    ],
)
def test_a_playbook_begins_with_its_variables(
    tmp_path: Path, playbook: str, variables: dict[str, Any], words: list[str]
) -> None:
    told, status = play(tmp_path, f"- import_playbook: virtops.kubevirt.{playbook}\n", "-e", json.dumps(variables))
    assert (status, NEXT in told) == (2, False), told
    assert [word for word in words if word not in told] == [], told


@pytest.mark.parametrize("role", ["virtops.kubevirt.rebalance", "own/patch", "shared"])
def test_a_role_is_found_where_it_will_be_sought(tmp_path: Path, role: str) -> None:
    """In a collection, from the folder in which it runs, and in roles_path."""
    for folder in (tmp_path / "own/patch", tmp_path / "home/roles/shared"):
        (folder / "tasks").mkdir(parents=True)
        (folder / "tasks/main.yml").write_text("[]\n")
    given = {"rolling_maintenance_role": role}
    content = "- import_playbook: virtops.kubevirt.rolling_maintenance\n"
    told, _status = play(tmp_path, content, "-e", json.dumps(given), begun_in=tmp_path)
    assert NEXT in told, told


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- debug:\n   msg: [\n", "YAML parsing failed"),
        ("debug:\n", "but that is no list of tasks."),
        ("- hosts: all\n  tasks: []\n", "but that has plays: give a file of the tasks alone."),
        ("- ansible.builtin.import_playbook: site.yml\n", "but that has plays: give a file of the tasks alone."),
        ("- debug:\n    msg: !unsafe '{{'\n", NEXT),
        ("", NEXT),
    ],
)
def test_a_file_that_is_none_of_tasks_is_refused_before_anything_else(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "hook.yml").write_text(content)
    given = ("-e", "rolling_maintenance_tasks=hook.yml")
    playbook = "- import_playbook: virtops.kubevirt.rolling_maintenance\n"
    told, _status = play(tmp_path, playbook, *given, begun_in=tmp_path)
    assert words in " ".join(told.split()), told
    assert (NEXT in told) is (words == NEXT), told


def test_the_maintenance_of_a_host_is_looked_at_before_anything_else(tmp_path: Path) -> None:
    """Else the node would be maintained as all others are, or one would hear of it when that is empty."""
    (tmp_path / "gpu.yml").write_text("- ansible.builtin.import_playbook: site.yml\n")
    (tmp_path / "all.yml").write_text("- debug:\n")
    hosts: dict[str, dict[str, Any]] = {
        "n1": {"rolling_maintenance_taks": "gpu.yml"},
        "n2": {"rolling_maintenance_tasks": "missing.yml"},
        "n3": {"rolling_maintenance_tasks": "gpu.yml"},
        "n4": {"rolling_maintenance_tasks": "", "rolling_maintenance_role": "virtops.kubevirt.pathc"},
        "n5": {"rolling_maintenance_tasks": "{{ later }}.yml"},
        "n6": {"rolling_maintenance_tasks": "all.yml"},
    }
    given = {"plan_maintenance_run": "patch", "plan_maintenance_nodes": "workers,n6"}
    own: dict[str, dict[str, Any]] = {
        "localhost": {**given, "rolling_maintenance_tasks": "all.yml", "ansible_connection": "local"}
    }
    playbook = "- import_playbook: virtops.kubevirt.rolling_maintenance\n"

    def told(hosts: dict[str, dict[str, Any]]) -> str:
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"workers": {"hosts": hosts}, "own": {"hosts": own}}))
        return " ".join(play(tmp_path, playbook, "-i", str(tmp_path / "hosts.yml"), begun_in=tmp_path)[0].split())

    assert "rolling_maintenance_taks (do you mean rolling_maintenance_tasks?), which host n1 has" in told(hosts)
    own["localhost"] = {**own["localhost"], "plan_maintenance_file": "plan.json", "plan_maintenance_nodes": None}
    assert "rolling_maintenance_taks (do you mean rolling_maintenance_tasks?), which host n1 has" in told(hosts)
    own["localhost"]["plan_maintenance_nodes"] = "workers,n6"
    del hosts["n1"]
    assert "pathc' was not found in" in (words := told(hosts)), words
    assert "; host n4 has it. Correct them" in words, words
    del hosts["n4"]
    words = told(hosts)
    assert f"is {tmp_path}/missing.yml, but there is no such file; host n2 has it" in words
    assert f"is {tmp_path}/gpu.yml, but that has plays: give a file of the tasks alone; host n3 has it" in words
    assert NEXT not in words
    del hosts["n2"], hosts["n3"]
    assert NEXT in (words := told(hosts)), words


def test_hosts_of_a_run_are_looked_at_before_anything_else(tmp_path: Path) -> None:
    hosts = {"n1": {"drain_polices": "{{ never_asked_for }}"}, "n2": {"_drain_own": 1}, "n3": {"drain_zzz": 1}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"workers": {"hosts": hosts}}))
    role = {"hosts": "localhost", "gather_facts": False, "roles": ["virtops.kubevirt.plan_maintenance"]}
    given = {"plan_maintenance_run": "patch", "plan_maintenance_nodes": "workers ,n4", "plan_maintenance_batch": ""}
    options = ("-i", str(tmp_path / "hosts.yml"), "-e", json.dumps(given))
    told, status = play(tmp_path, yaml.safe_dump([role]), *options)
    assert status == 2, told
    assert "drain_polices (do you mean drain_policies?), which host n1 has" in told
    assert "drain_zzz, which host n3 has" in told
    assert "See that all that is to be done is allowed" not in told


def test_values_for_later_roles_are_looked_at_before_anything_else(tmp_path: Path) -> None:
    """Else one would hear of them when the first node is rebooted. What tasks have yet to tell is left out."""
    hosts = {
        "n1": {"uncordon_wait_timeout": "15m", "uncordon_rebooted": "{{ kernel.changed | default('unknown') }}"},
        "n2": {"uncordon_wait_timeout": "15m", "drain_reason": "{{ never_asked_for }}", "drain_force": ""},
        "n4": {},
        "n3": {"uncordon_evacuations": "withstand", "uncordon_owner": "{{ plan_maintenance_run }}"},
    }
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"workers": {"hosts": hosts}}))
    (tmp_path / "host_vars").mkdir()
    secret = "$ANSIBLE_VAULT;1.1;AES256\n  3131\n"  # of which nobody has the password here
    (tmp_path / "host_vars/n4").write_text(f"drain_reason: !vault |\n  {secret}")
    role = {"hosts": "localhost", "gather_facts": False, "roles": ["virtops.kubevirt.plan_maintenance"]}
    given = {"plan_maintenance_run": "patch", "plan_maintenance_nodes": "workers", "rebalance_max_moves": "many"}
    options = ("-i", str(tmp_path / "hosts.yml"), "-e", json.dumps(given))
    told, status = play(tmp_path, yaml.safe_dump([role]), *options)
    told = " ".join(told.split())
    assert status == 2, told
    assert "3 mistakes" in told, told
    assert 'uncordon_wait_timeout is "15m", but has to be a whole number such as 3; each of n1, n2 has it' in told
    assert "value of uncordon_evacuations must be one of: wait, withdraw, got: withstand; host n3 has it." in told
    assert "See that all that is to be done is allowed" not in told


def test_blank_answers_and_texts_mean_what_the_role_says(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "patch_nodes": {"type": "list", "elements": "str"},
        "patch_batch": {"type": "int", "default": 1},
        "patch_note": {"type": "str"},
        "patch_gone": {"type": "int"},
    }
    take = {"virtops.kubevirt.take_variables": {"prefix": "patch", "options": options}, "register": "taken"}
    tell = {"ansible.builtin.debug": {"msg": "{{ [taken.given, taken.without_defaults] | to_json(sort_keys=true) }}"}}
    given = {"patch_nodes": "w1, w2", "patch_batch": " ", "patch_note": "{{ word }}", "patch_gone": None}
    content = [{"hosts": "localhost", "gather_facts": False, "vars": {"word": 1}, "tasks": [take, tell]}]
    told, status = play(tmp_path, yaml.safe_dump(content), "-e", json.dumps(given))
    assert status == 0, told
    alone = {"nodes": ["w1", "w2"], "note": "1"}
    assert json.dumps(json.dumps([{"batch": 1, **alone}, alone])) in told, told


@pytest.mark.parametrize("blank", ["", None])
def test_defaults_follow_what_they_are_made_of(tmp_path: Path, blank: str | None) -> None:
    """A blank snapshot has the role's own, and so has the plan's path that is made of it."""
    name = "virtops.kubevirt.plan_maintenance"
    role = {"ansible.builtin.include_role": {"name": name, "tasks_from": "check", "public": True}}
    tell = {"ansible.builtin.debug": {"msg": "{{ _plan_maintenance_path }}"}}
    rights = {"_plan_maintenance_rights": {"cluster_uid": "3f2b91c4-77aa"}}
    given = {"plan_maintenance_run": "p", "plan_maintenance_nodes": "a\nb", "plan_maintenance_snapshot": blank}
    content = [{"hosts": "localhost", "gather_facts": False, "vars": rights, "tasks": [role, tell]}]
    told, status = play(tmp_path, yaml.safe_dump(content), "-e", json.dumps(given))
    assert status == 0, told
    assert f'"{tmp_path}/home/tmp/virtops.kubevirt-p-3f2b91c4-plan.json"' in told
