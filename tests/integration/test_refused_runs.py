# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run whose maintenance cannot be what was meant ends before its cluster hears of it, seen by a proxy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from faults.proxy import Proxy, proxied
from integration.draining import Yard
from integration.playbooks import run

NODES = ("refused-0", "refused-1")
SOURCE = NODES[0]
TASKS: list[dict[str, Any]] = [{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}]
# What is given, and what is said of it.
MISTAKES = {
    "a misspelt role": (
        {"rolling_maintenance_role": "virtops.kubevirt.rebalanec"},
        "ole 'virtops.kubevirt.rebalanec' was not found in",
    ),
    "a misspelt variable of the role": (
        {"rolling_maintenance_rol": "virtops.kubevirt.rebalance"},
        "rolling_maintenance_rol (do you mean rolling_maintenance_role?)",
    ),
    "a file of plays": (
        {"rolling_maintenance_tasks": "{folder}/plays.yml"},
        "but that has plays: give a file of the tasks alone.",
    ),
    "a misspelt file": ({"rolling_maintenance_tasks": "{folder}/task.yml"}, "but there is no file"),
}


@dataclass
class Maintain:
    """The playbook rolling_maintenance for a node that is empty. proxy: between it and the cluster."""

    folder: Path
    kubeconfig: Path
    proxy: Proxy

    def __call__(self, given: dict[str, str], *words: str) -> tuple[CompletedProcess[str], str]:
        """With all that it printed, as one line."""
        playbook = self.folder / "site.yml"
        playbook.write_text("- import_playbook: virtops.kubevirt.rolling_maintenance\n")
        meant = {name: value.format(folder=self.folder) for name, value in given.items()}
        settings = {
            "rolling_maintenance_kubeconfig": str(self.kubeconfig),
            "rolling_maintenance_rebalance": False,
            "plan_maintenance_run": "refused",
            "plan_maintenance_nodes": [SOURCE],
            "plan_maintenance_path": str(self.plan),
        }
        done = run(playbook, "-e", json.dumps({**settings, **meant}), *words)
        return done, " ".join((done.stdout + done.stderr).split())

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"


@pytest.fixture
def maintain(yard: Yard, tmp_path: Path) -> Iterator[Maintain]:
    plays = [{"hosts": "all", "gather_facts": False, "tasks": TASKS}]
    for name, content in {"tasks.yml": TASKS, "plays.yml": plays}.items():
        (tmp_path / name).write_text(yaml.safe_dump(content, sort_keys=False))
    with proxied(yard.testbed.kubeconfig, tmp_path, 0) as (kubeconfig, proxy):
        yield Maintain(tmp_path, kubeconfig, proxy)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_never_holds_cordons_or_writes_for_a_maintenance_that_is_none(
    maintain: Maintain, yard: Yard, mistake: str
) -> None:
    given, words = MISTAKES[mistake]
    refused, told = maintain(given)
    assert refused.returncode != 0, told
    assert words in told, told
    assert (maintain.proxy.requests, maintain.proxy.carried_out) == (0, [])
    assert (maintain.plan.exists(), yard.cordoned(SOURCE)) == (False, False)


def test_the_same_command_without_a_mistake_goes_to_the_cluster(maintain: Maintain) -> None:
    """Which the proxy would have seen of the others, too."""
    done, told = maintain({"rolling_maintenance_tasks": "{folder}/tasks.yml"}, "--check")
    assert done.returncode == 0, told
    assert maintain.proxy.requests > 0


@pytest.mark.parametrize("words", [("--check",), ()], ids=["foretold", "begun"])
def test_a_plan_that_cannot_be_written_is_told_of_before_the_run_is_held(
    maintain: Maintain, yard: Yard, words: tuple[str, ...]
) -> None:
    """By day as well as in the night for which the run is scheduled."""
    given = {"rolling_maintenance_tasks": "{folder}/tasks.yml", "plan_maintenance_path": "{folder}/missing/plan.json"}
    refused, told = maintain(given, *words)
    assert refused.returncode != 0, told
    assert "Hold the run until this playbook ends" not in told, told
    assert f"{maintain.folder}/missing" in told, told
    assert not yard.cordoned(SOURCE)
