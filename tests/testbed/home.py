# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a testbed and the shared caches lie on disk."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class TestbedError(Exception):
    """Something a person can act on; its text is printed without a traceback."""

    __test__ = False  # not a test case, although pytest would take it for one by its name


def cache() -> Path:
    """Folder of everything that is kept between runs; `VIRTOPS_CACHE` moves it."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(os.environ.get("VIRTOPS_CACHE") or f"{base}/virtops.kubevirt")


def testbeds() -> Path:
    return cache() / "testbeds"


@dataclass(frozen=True)
class Settings:
    """What `up` decided once for a testbed: its parts all read the same values.

    `ports`: TCP port by use (`etcd`, `etcd-peer`, `api`, `virt-api`, …).
    `owner`: process whose end makes the testbed stale, with its creation time (seconds since the epoch),
    or None for a testbed that stays until `down`.
    `time_scale`: simulated seconds that pass in a real one.
    `ready`: all parts answered once.
    """

    ports: dict[str, int] = field(default_factory=dict)
    owner: tuple[int, float] | None = None
    time_scale: float = 10.0
    seed: int = 0
    ready: bool = False


@dataclass(frozen=True)
class Home:
    """The folder of one testbed; nothing of it lies elsewhere."""

    name: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise TestbedError(f"{self.name!r} is no testbed name: use up to 40 lower-case letters, digits and dashes.")

    @property
    def root(self) -> Path:
        return testbeds() / self.name

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def etcd(self) -> Path:
        return self.root / "etcd"

    @property
    def temporary(self) -> Path:
        """For files that parts never remove themselves; they go with the testbed."""
        return self.root / "tmp"

    @property
    def settings_file(self) -> Path:
        return self.root / "testbed.json"

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.root / "kubeconfigs" / f"{user}.yaml"

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def create(self) -> None:
        for folder in (self.root, self.pki, self.logs, self.temporary, self.kubeconfig().parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, settings: Settings) -> None:
        self.settings_file.write_text(json.dumps(asdict(settings), indent=2))

    def settings(self) -> Settings | None:
        """The settings of an existing testbed; None when there is none or its `up` was cut off while writing."""
        try:
            data: dict[str, Any] = json.loads(self.settings_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        owner = data.pop("owner")
        return Settings(**data, owner=(owner[0], owner[1]) if owner else None)


def existing() -> list[Home]:
    """Every testbed that has a folder, running or not."""
    folder = testbeds()
    return (
        [Home(p.name) for p in sorted(folder.iterdir()) if p.is_dir() and NAME.fullmatch(p.name)]
        if folder.is_dir()
        else []
    )
