# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is started with --limit or tags is refused, whomever and whatever that leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

README = Path(__file__).parents[3] / "README.md"
IMPORTED = "- import_playbook: virtops.kubevirt.rolling_maintenance\n"


@pytest.mark.parametrize("limit", ["n1", "localhost,n1", "all"])
def test_a_limit_is_refused(tmp_path: Path, limit: str) -> None:
    told, status = play(tmp_path, IMPORTED, "-i", "localhost,n1,n2", "--limit", limit)
    assert status != 0, told
    assert f"The run was started with --limit {limit}, but what it does is right only as a whole" in told
    assert "leave --limit out. The nodes that are maintained are those of plan_maintenance_nodes." in " ".join(
        told.split()
    )
    assert told.count("leave --limit out") <= 2, "once by the task, and once in the summary of errors"


def own() -> str:
    """The README's playbook."""
    section = README.read_text().partition("### The same as your own playbook")[2]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert example
    return example[1]


@pytest.mark.parametrize("limit", ["n1", "localhost,n1"])
def test_a_playbook_of_ones_own_refuses_it_too(tmp_path: Path, limit: str) -> None:
    told, status = play(tmp_path, own(), "-i", "localhost,n1,n2", "--limit", limit)
    assert status != 0, told
    assert f"The run was started with --limit {limit}" in told


@pytest.mark.parametrize("whose", ["rolling_maintenance", "readme"])
@pytest.mark.parametrize(
    "option",
    [
        ("--tags", "kernel"),
        ("--tags", "always"),
        ("--tags", "untagged"),
        ("--skip-tags", "all"),
        ("--skip-tags", "always"),
        ("--skip-tags", "notest,slow"),
    ],
)
def test_tags_are_refused(tmp_path: Path, whose: str, option: tuple[str, str]) -> None:
    """They leave out steps, such as the drain before a reboot, or all of them: nothing was done, and all was well."""
    content = {"rolling_maintenance": IMPORTED, "readme": own()}[whose]
    told, status = play(tmp_path, content, *option)
    refused = f"The run was started with {' '.join(option)}, but its steps are right only as a whole" in told
    assert (status != 0, refused) == (True, True), told
    assert f"leave {option[0]} out, and choose between tasks of your own by a variable." in " ".join(told.split())
    assert told.count(f"leave {option[0]} out") <= 2, "once by the task, and once in the summary of errors"


@pytest.mark.parametrize("playbook", ["abort", "access"])
@pytest.mark.parametrize("option", [("--limit", "n1"), ("--tags", "nodes"), ("--skip-tags", "all")])
def test_what_would_do_nothing_at_all_is_refused(tmp_path: Path, playbook: str, option: tuple[str, str]) -> None:
    """Nothing was undone, no account was made, and all was well."""
    told, status = play(tmp_path, f"- import_playbook: virtops.kubevirt.{playbook}\n", *option)
    assert (status != 0, f"The run was started with {' '.join(option)}, but" in told) == (True, True), told
    assert [word for word in ("plan_maintenance_nodes", "tasks of your own") if word in told] == []


def test_it_is_refused_without_an_inventory(tmp_path: Path) -> None:
    """There a limit leaves no host at all to say so: nothing was done, and all was well."""
    told, status = play(tmp_path, IMPORTED, "--limit", "n1")
    assert (status != 0, "The run was started with --limit n1" in told) == (True, True), told


@pytest.mark.parametrize("batch", [["n1"], ["n1", "n2"]])
def test_hosts_that_are_no_batch_are_refused(tmp_path: Path, batch: list[str]) -> None:
    """As a role of a playbook that does not import what refuses a limit."""
    given = {"drain_owner": "us", "drain_batches": [["n1", "n2"], ["n3"]], "ansible_connection": "local"}
    role = {"ansible.builtin.include_role": {"name": "virtops.kubevirt.drain"}}
    content = {"hosts": ",".join(batch), "gather_facts": False, "vars": given, "tasks": [role]}
    told, status = play(tmp_path, yaml.safe_dump([content]), "-i", "n1,n2,n3")
    refused = f"{', '.join(batch)}: these hosts are no batch of the plan, so nothing was begun" in told
    assert (status != 0, refused) == (True, len(batch) == 1), told


@pytest.mark.parametrize("option", [(), ("--tags", "all,debug"), ("--skip-tags", "molecule-notest,notest")])
def test_what_leaves_nothing_out_is_planned(tmp_path: Path, option: tuple[str, ...]) -> None:
    """The last is what Molecule gives to whatever it runs."""
    told, status = play(tmp_path, IMPORTED, "-i", "localhost,n1,n2", *option)
    assert (status != 0, "give one of rolling_maintenance_tasks" in told) == (True, True), told
