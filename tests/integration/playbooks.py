# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-playbook as a user does, with nothing of the caller's Ansible settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

Task = dict[str, Any]
# The error of a block's failed task, or any other value, as a file's content.
AS_JSON = "{{ %s | ansible.builtin.to_json }}"


def run(playbook: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The ended run, with what it printed."""
    command, environment = _command(playbook, options)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def begin(playbook: Path, *options: str) -> subprocess.Popen[bytes]:
    """A run that has begun, with a process group of its own."""
    command, environment = _command(playbook, options)
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def _command(playbook: Path, options: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """With its environment."""
    settings = {
        "ANSIBLE_HOME": str(playbook.parent / "home"),
        "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"],
        # Newer versions of ansible-core tell options, which hold no secret either, only when asked to.
        "ANSIBLE_INJECT_INVOCATION": "true",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [str(program), "-e", f"ansible_python_interpreter={sys.executable}", *options, str(playbook)]
    return command, {**environment, **settings}


def run_tasks(playbook: Path, kubeconfig: Path, tasks: list[Task], variables: dict[str, Any] | None = None) -> None:
    """Run tasks on the controller with the kubeconfig as everything's default. They end well."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": variables or {},
        "module_defaults": {"group/virtops.kubevirt.all": {"kubeconfig": str(kubeconfig)}},
        "tasks": tasks,
    }
    playbook.write_text(yaml.safe_dump([play], sort_keys=False))
    done = run(playbook)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stdout + done.stderr


def keep(value: str, path: Path) -> Task:
    """A task that writes the value of an expression as JSON."""
    return {"ansible.builtin.copy": {"dest": str(path), "mode": "0600", "content": AS_JSON % value}}
