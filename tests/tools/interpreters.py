# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a real Python interpreter of a wanted version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# What has to work for a virtual environment; Debian's python3 lacks ensurepip until python3-venv is installed.
PROBE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Interpreter:
    path: Path
    version: str


def find(versions: Sequence[str]) -> Interpreter | None:
    """The first working interpreter of the first of `versions` ("3.13") that has one; None if there is none."""
    for version in versions:
        for candidate in _candidates(version):
            if _works(candidate, version):
                return Interpreter(candidate, version)
    return None


def clean_path() -> str:
    """PATH without a version manager's shims: tools that try every `pythonX.Y` they see trip over dead ones."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).name != "shims")


def _candidates(version: str) -> Iterator[Path]:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        yield Path(sys.executable).resolve()
    for folder in clean_path().split(os.pathsep):
        yield Path(folder) / f"python{version}"
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from sorted(versions.glob(f"{version}.*/bin/python{version}"), reverse=True)


def _works(candidate: Path, version: str) -> bool:
    if not candidate.is_file():
        return False
    try:
        probe = subprocess.run([candidate, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0 and probe.stdout.strip() == version
