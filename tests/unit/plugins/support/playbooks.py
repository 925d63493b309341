# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks run as users run them: by a real ansible-playbook, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

import ansible_collections

from testbed.pki import Authority
from unit.plugins.support.fake_api import FakeApi

Task = dict[str, Any]


def run_task(
    folder: Path,
    task: Task,
    *options: str,
    environment: Mapping[str, str] | None = None,
    begun_in: Path | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The result of a task on this host, and the lines on stderr. Files beside the playbook lie in `folder`."""
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]))
    settings = {
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.tree",
        "ANSIBLE_CALLBACK_TREE_DIR": str(folder / "results"),
        "ANSIBLE_COLLECTIONS_PATH": str(Path(next(iter(ansible_collections.__path__))).parent),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, *options, "-e", f"ansible_python_interpreter={sys.executable}", playbook],
        env={**inherited, **settings, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        cwd=begun_in,
    )
    result = folder / "results" / "localhost"
    assert result.exists(), done.stdout + done.stderr
    return json.loads(result.read_text()), done.stderr.splitlines()


def write_kubeconfig(folder: Path, api: FakeApi, authority: Authority) -> str:
    """Its name among the playbook's files, where kubernetes.core's modules find it by that."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": api.url, "certificate-authority": str(authority.cert)}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "files" / "cluster.kubeconfig"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(content))
    return path.name
