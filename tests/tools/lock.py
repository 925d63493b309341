# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pin every package, with its dependencies and hashes, for each stack."""

from __future__ import annotations

import subprocess

from tools import environment
from tools.stacks import MAIN, REQUIREMENTS, STACKS, ToolsError

OPTIONS = ("--quiet", "--upgrade", "--no-header", "--generate-hashes")


def renew() -> None:
    """Write the newest allowed versions into the lock files; raises ToolsError."""
    uv = environment.venv("lock", environment.interpreter(MAIN), REQUIREMENTS / "lock.txt") / "bin/uv"
    # (source, oldest Python it must work on, with the packages' dependencies)
    jobs = [("lock", MAIN.pythons[0], True)]
    for stack in STACKS.values():
        jobs += [(stack.lock.stem, stack.pythons[0], True), (stack.wheels.stem, stack.pythons[0], False)]
    for name, python, deep in jobs:
        print(f"Resolving {name}.in", flush=True)
        options = (*OPTIONS, "--python-version", python, *(() if deep else ("--no-deps",)))
        try:
            compile_ = (uv, "pip", "compile", *options, f"{name}.in", "-o", f"{name}.txt")
            subprocess.run(compile_, cwd=REQUIREMENTS, check=True)
        except subprocess.CalledProcessError as error:
            raise ToolsError(f"{name}.in cannot be resolved; see above.") from error
