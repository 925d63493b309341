# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories read as users read them: by a real ansible-inventory or ansible-playbook, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PLUGIN = "virtops.kubevirt.nodes"
Options = dict[str, Any]

# Runs a program on which no time passes but that for which it has slept, and that at once.
HURRIED = """
import runpy, sys, time
slept, real = [], time.clock_gettime
time.sleep = slept.append
time.clock_gettime = lambda clock: real(clock) + sum(slept)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    error: str

    @property
    def variables(self) -> dict[str, Any]:
        """Of hosts, as `ansible-inventory --list` prints them."""
        found: dict[str, Any] = json.loads(self.out)["_meta"]["hostvars"]
        return found

    def members(self, group: str) -> set[str]:
        """Names of the hosts of a group, those of its children included."""
        found = json.loads(self.out).get(group, {})
        return {*found.get("hosts", ())}.union(*map(self.members, found.get("children", ())))


def write(folder: Path, options: Options, name: str = "cluster.virtops_nodes.yml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump({"plugin": PLUGIN, **options}))
    return path


def ansible(
    program: str,
    folder: Path,
    *words: str | Path,
    environment: Mapping[str, str] | None = None,
    hurried: bool = False,
) -> Ended:
    """Run a program of Ansible with nothing of the caller's settings but `environment`.

    hurried: let it sleep in no time, where it waits for a server.
    """
    settings = {
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"],
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "COLUMNS": "10000",
        "TMPDIR": str(folder),
    }
    left_out = ("ANSIBLE_", "K8S_", "KUBECONFIG")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    found = Path(sys.executable).with_name(program)
    begin = [sys.executable, "-c", HURRIED, found] if hurried else [found]
    done = subprocess.run(
        [*begin, *words],
        env={**inherited, **settings, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


def listed(
    folder: Path,
    options: Options,
    *words: str,
    environment: Mapping[str, str] | None = None,
    hurried: bool = False,
) -> Ended:
    """What `ansible-inventory --list` says of an inventory with these options."""
    source = write(folder, options)
    given: tuple[str | Path, ...] = ("-i", source, "--list", *words)
    return ansible("ansible-inventory", folder, *given, environment=environment, hurried=hurried)
