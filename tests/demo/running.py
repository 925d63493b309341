# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the collection's playbooks as a user does, told by callback/narrator.py, and reckon where the time went."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.handle import RunningTestbed

FOLDER = Path(__file__).resolve().parent
HOOK = ("Reboot", "Wait until it has another boot ID")


class PlaybookError(Exception):
    """A playbook ended with another code than 0; what it said has been shown."""


@dataclass(frozen=True)
class NodeTime:
    """Seconds that a node took: altogether, in the maintenance itself, and for VMs and pods to leave and to come."""

    node: str
    total: float
    hook: float
    moving: float

    @property
    def overhead(self) -> float:
        return self.total - self.hook - self.moving


@dataclass(frozen=True)
class Playbook:
    """`ansible_playbook`: the program. `scratch`: a folder of the demonstration's own."""

    testbed: RunningTestbed
    ansible_playbook: Path
    scratch: Path

    @property
    def times(self) -> Path:
        return self.scratch / "times.jsonl"

    def run(self, name: str, *words: str) -> None:
        """Run a playbook, by its name in the collection or its path. Raises PlaybookError."""
        inventory = str(FOLDER / "inventory.yml")
        command = [str(self.ansible_playbook), name, "--inventory", inventory, *words]
        if subprocess.run(command, env=self._variables(), check=False).returncode:
            raise PlaybookError(f"The playbook {name} has failed.")

    def _variables(self) -> dict[str, str]:
        return {
            **os.environ,
            "ANSIBLE_CALLBACK_PLUGINS": str(FOLDER / "callback"),
            "ANSIBLE_STDOUT_CALLBACK": "narrator",
            "ANSIBLE_HOME": str(self.scratch / "ansible"),
            "K8S_AUTH_KUBECONFIG": str(self.testbed.kubeconfig),
            "VIRTOPS_DEMO_TIMES": str(self.times),
        }

    def entries(self) -> list[dict[str, Any]]:
        """What the narrator wrote down of each task, in the order of their ends."""
        return [json.loads(line) for line in self.times.read_text().splitlines()]


def reckon(entries: list[dict[str, Any]], nodes: list[str]) -> list[NodeTime]:
    """Where the time of each node went, in the order of the run."""
    found = []
    for node in nodes:
        own = [entry for entry in entries if entry["host"] == node]
        if own:
            total = max(entry["ended"] for entry in own) - min(entry["began"] for entry in own)
            hook = _seconds(own, *HOOK)
            moving = sum(float(entry["moving"]) for entry in own)
            found.append(NodeTime(node, total, hook, moving))
    return found


def _seconds(entries: list[dict[str, Any]], *tasks: str) -> float:
    chosen = (entry for entry in entries if entry["task"].rpartition(" : ")[2] in tasks)
    return sum((float(entry["ended"] - entry["began"]) for entry in chosen), start=0.0)
