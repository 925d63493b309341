# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks run for real, without a cluster or with one of support/fake_api.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ansible_collections


def play(
    folder: Path,
    content: str,
    *options: str,
    kubeconfig: Path | None = None,
    begun_in: Path | None = None,
    interpreter: str | None = sys.executable,
) -> tuple[str, int]:
    """What a playbook tells, and its status. Without a kubeconfig it reaches no cluster.

    interpreter: that of all modules, None for what Ansible finds.
    """
    playbook = folder / "playbook.yml"
    playbook.write_text(content)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    own = {
        "ANSIBLE_HOME": str(folder / "home"),
        # What is secret is so where options are told, too; newer versions of ansible-core do so when asked to.
        "ANSIBLE_INJECT_INVOCATION": "true",
        "ANSIBLE_COLLECTIONS_PATH": str(Path(next(iter(ansible_collections.__path__))).parent),
        "K8S_AUTH_KUBECONFIG": str(kubeconfig or folder / "missing"),
    }
    program = Path(sys.executable).with_name("ansible-playbook")
    given = ["-e", f"ansible_python_interpreter={interpreter}"] if interpreter else []
    command = [str(program), *given, *options, str(playbook)]
    done = subprocess.run(
        command, env={**environment, **own}, capture_output=True, text=True, check=False, cwd=begun_in
    )
    return done.stdout + done.stderr, done.returncode
