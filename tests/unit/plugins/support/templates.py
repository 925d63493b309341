# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate templates as a playbook does: with the collection's plugins found by name, in a process of Ansible's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ansible_collections

QUIET = {"ANSIBLE_LOCALHOST_WARNING": "false", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"}


def evaluate(expressions: Iterable[str], variables: Mapping[str, Any], folder: Path) -> list[Any]:
    """The values of expressions, without the braces around them; one run for all, as a start takes a second."""
    answers, playbook = folder / "answers.json", folder / "playbook.yml"
    content = "{{ [" + ", ".join(f"({expression})" for expression in expressions) + "] | ansible.builtin.to_json }}"
    task = {"ansible.builtin.copy": {"dest": str(answers), "mode": "0600", "content": content}}
    play = {"hosts": "localhost", "gather_facts": False, "vars": dict(variables), "tasks": [task]}
    playbook.write_text(json.dumps([play]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    path = Path(next(iter(ansible_collections.__path__))).parent
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "-e",
            f"ansible_python_interpreter={sys.executable}",
            playbook,
        ],
        env={**environment, **QUIET, "ANSIBLE_HOME": str(folder / "home"), "ANSIBLE_COLLECTIONS_PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "WARN" not in told, told
    assert "DEPRECATION" not in told, told
    found: list[Any] = json.loads(answers.read_text())
    return found
