# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks as users write them, with a real ansible-playbook: progress, kubeconfig files, check mode."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.migrating_api import MigratingApi, shop
from unit.plugins.support.playbooks import Task, run_task, write_kubeconfig

pytestmark = pytest.mark.playbook

Play = Callable[..., tuple[dict[str, Any], list[str]]]
TASK = {"namespace": "shop", "name": "db", "target_node": "n2"}
VAULT_PASSWORD = "open-sesame"


@pytest.fixture
def api(authority: Authority) -> Iterator[MigratingApi]:
    fake = shop()
    fake.courses = [("Pending", "Succeeded")]
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def kubeconfig(tmp_path: Path, api: MigratingApi, authority: Authority) -> Path:
    return tmp_path / "files" / write_kubeconfig(tmp_path, api, authority)


@pytest.fixture
def play(tmp_path: Path, kubeconfig: Path) -> Play:
    """Run a task of one module, by default of vmi_migration; its result, and the lines on stderr."""

    def run(*options: str, task: Task | None = None, **arguments: Any) -> tuple[dict[str, Any], list[str]]:
        migration = {"virtops.kubevirt.vmi_migration": {**TASK, "kubeconfig": kubeconfig.name, **arguments}}
        return run_task(tmp_path, task or migration, *options)

    return run


@pytest.mark.parametrize(("options", "steps"), [((), []), (("-v",), ["Pending"])])
def test_progress_is_shown_beside_the_result(
    play: Play, api: MigratingApi, options: tuple[str, ...], steps: list[str]
) -> None:
    result, lines = play(*options)
    assert [line for line in lines if line.startswith("shop/db: n1 -> n2: ")] == [
        f"shop/db: n1 -> n2: {step}" for step in (*steps, "migrated to n2 in 1 s")
    ]
    assert result["changed"]
    assert result["migrations"][0]["outcome"] == "migrated"
    assert "_progress" not in json.dumps(result)
    assert len(api.created()) == 1


def test_check_mode_reaches_the_module(play: Play, api: MigratingApi) -> None:
    result, _lines = play("--check")
    assert result["migrations"][0]["outcome"] == "would_migrate"
    assert api.migrations() == []


def test_a_vaulted_kubeconfig_is_decrypted(play: Play, kubeconfig: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(VAULT_PASSWORD)
    option = f"--vault-password-file={password}"
    vault = Path(sys.executable).with_name("ansible-vault")
    subprocess.run([vault, "encrypt", option, kubeconfig], check=True, capture_output=True)
    result, _lines = play(option)
    assert result["migrations"][0]["outcome"] == "migrated"


def test_a_kubeconfig_that_is_not_there_is_named(play: Play) -> None:
    result, _lines = play(kubeconfig="other.kubeconfig")
    assert "Cannot read the kubeconfig other.kubeconfig: it is not there" in result["msg"]


def test_a_kubeconfig_is_found_in_the_folder_in_which_ansible_playbook_runs(
    tmp_path: Path, kubeconfig: Path, api: MigratingApi
) -> None:
    """The playbooks of the collection stand elsewhere than the files of whoever starts them."""
    begun_in = tmp_path / "begun in"
    begun_in.mkdir()
    kubeconfig.rename(begun_in / "mine.kubeconfig")
    task = {"virtops.kubevirt.vmi_migration": {**TASK, "kubeconfig": "mine.kubeconfig"}}
    result, _lines = run_task(tmp_path, task, begun_in=begun_in)
    assert result["migrations"][0]["outcome"] == "migrated"
    assert len(api.created()) == 1


def test_a_module_without_progress_finds_the_kubeconfig_too(play: Play, kubeconfig: Path) -> None:
    result, _lines = play(
        task={"virtops.kubevirt.node_maintenance": {"name": "n9", "owner": "us", "kubeconfig": kubeconfig.name}}
    )
    assert "n9" in result["msg"]


def test_defaults_of_our_modules_do_not_reach_those_of_kubernetes_core(play: Play, kubeconfig: Path) -> None:
    defaults = {"virtops.kubevirt.cluster_snapshot": {"page_size": 7}}
    task = {"kubernetes.core.k8s_info": {"kind": "Pod", "kubeconfig": kubeconfig.name}, "module_defaults": defaults}
    result, _lines = play(task=task)
    assert "Unsupported parameters" not in json.dumps(result)
