# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A testbed that is up, as tests see it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed import cli
from testbed.api import Api, resource_path
from testbed.home import Home


@dataclass
class RunningTestbed:
    """Its administrator's connection, and its command line."""

    home: Home
    api: Api
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def name(self) -> str:
        return self.home.name

    @property
    def kubeconfig(self) -> Path:
        return self.home.kubeconfig()

    def run(self, *words: str) -> None:
        """Run a command of the testbed's command line, e.g. `run("load", "customapp")`."""
        code = cli.main(["--name", self.name, *words])
        assert code == 0, f"testbed {' '.join(words)} exited with {code}"

    def inject(self, *words: str) -> None:
        self.run("inject", *words)

    def namespace(self, prefix: str = "test") -> str:
        """A new namespace of its own for one test."""
        name = f"{prefix}-{os.getpid()}-{next(self._numbers)}"
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return name

    def drop_namespace(self, name: str) -> None:
        self.api.delete(resource_path("v1", "namespaces", name=name))
