# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the parts of `make test` run: a stack made ready, and the environment variables its programs see."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.home import cache
from tools import environment
from tools.interpreters import Interpreter, clean_path
from tools.stacks import BUILD, COLLECTION, REPOSITORY, Stack

# A test must never reach the cluster, or be bent by the configuration, of the person who runs it.
PRIVATE = ("ANSIBLE_", "K8S_AUTH_", "KUBECONFIG", "MOLECULE_", "PYTEST_", "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Command:
    """A program to run. `variables` are added to the workspace's own."""

    argv: tuple[str | Path, ...]
    cwd: Path = REPOSITORY
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workspace:
    stack: Stack
    python: Interpreter
    venv: Path
    wheels: Path

    @property
    def collection(self) -> Path:
        """The repository under its full collection name."""
        return self.stack.tree / COLLECTION

    def command(self, program: str, *words: str | Path, cwd: Path = REPOSITORY, **variables: str) -> Command:
        """`program` of the stack's environment with its arguments."""
        return Command((self.venv / "bin" / program, *words), cwd, variables)

    def variables(self) -> dict[str, str]:
        """The person's environment without what is private, led to this stack."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PRIVATE)}
        return inherited | {
            "PATH": f"{self.venv / 'bin'}{os.pathsep}{clean_path()}",
            "NO_COLOR": "1",
            "ANSIBLE_NOCOLOR": "1",
            "VIRTOPS_CACHE": str(cache()),
            "VIRTOPS_PYTHON": str(self.venv / "bin/python"),
            "ANSIBLE_HOME": str(BUILD / f"ansible-home-{self.stack.name}"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.stack.tree),
            "ANSIBLE_PYTHON_INTERPRETER": str(self.venv / "bin/python"),
        }


def prepare(stack: Stack) -> Workspace:
    """Make ready whatever `stack` needs; fast when it stands already. Raises ToolsError."""
    python = environment.interpreter(stack)
    wheels = environment.wheels(stack, python)
    environment.tree(stack, wheels)
    return Workspace(stack, python, environment.venv(f"stack-{stack.name}", python, stack.lock), wheels)
