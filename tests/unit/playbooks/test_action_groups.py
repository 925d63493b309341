# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of action groups reach the modules that know the options, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

FOREIGN: dict[str, Any] = {"kubernetes.core.k8s_info": {"kind": "Node"}}
OWN: dict[str, Any] = {"virtops.kubevirt.cluster_snapshot": {"path": "cluster.json"}}
ROLE: dict[str, Any] = {"ansible.builtin.include_role": {"name": "virtops.kubevirt.access"}}


def told(folder: Path, task: dict[str, Any], **groups: dict[str, Any]) -> str:
    """By a task that fails, with defaults of these groups."""
    defaults = {f"group/virtops.kubevirt.{name}": options for name, options in groups.items()}
    content = [{"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "tasks": [task]}]
    output, status = play(folder, yaml.safe_dump(content))
    assert status == 2, output
    return output


@pytest.mark.parametrize("task", [FOREIGN, OWN, ROLE], ids=["kubernetes.core", "own", "access"])
def test_a_connection_is_given_once_for_all(tmp_path: Path, task: dict[str, Any]) -> None:
    output = told(tmp_path, task, all={"kubeconfig": "/given/once"}, own={"request_timeout": 7})
    assert "/given/once" in output
    assert "Unsupported parameters" not in output


def test_own_options_reach_own_modules(tmp_path: Path) -> None:
    assert "request_timeout is 0" in told(tmp_path, OWN, own={"request_timeout": 0})
