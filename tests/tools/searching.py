# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make search`: the programs that look for what no test knows yet, with fresh seeds, for as long as one likes.

No test run searches: it would turn red for what is nobody's change. What a search finds becomes a test by its name.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator

from tools import workspace as workspaces
from tools.stacks import REPOSITORY, Stack
from tools.workspace import Command, Workspace


def searches(workspace: Workspace, seed: int) -> Iterator[Command]:
    """One round: each takes a few minutes, the last one twenty, and exits with non-zero when it has found something."""
    tree, number = str(workspace.stack.tree), str(seed)
    properties = ("tests/unit", "-m", "hypothesis", "-n", "auto", "-p", "no:cacheprovider")
    yield workspace.command(
        *("python", "-m", "pytest", *properties, f"--hypothesis-seed={number}"),
        PYTHONPATH=tree,
        VIRTOPS_HYPOTHESIS="search",
    )
    mutants = ("tests/unit/plugins/module_utils/_execution/test_simulation.py", "-k", "noticed", "-n", "auto")
    yield workspace.command(
        *("python", "-m", "pytest", *mutants, "-p", "no:cacheprovider"), PYTHONPATH=tree, VIRTOPS_MUTANTS="1"
    )
    for words in (
        ("differential", "--cases", "1000", "--seed", number, "--scores"),
        ("simulation.campaign", "--histories", "5000", "--seed", number),
        ("unit.checker.clusters", "--clusters", "600", "--seed", number),
        ("unit.checker.mending", "--clusters", "200", "--seed", number),
        ("unit.checker.free_orders", "--clusters", "100", "--seed", number),
        ("fuzz", "--mutations", "2000", "--seed", number),
        ("integration.migration", "--verdicts", "150", "--seed", number),
        ("faults", "--runs", "2", "--seed", number),
    ):
        paths = f"{tree}{os.pathsep}{REPOSITORY / 'tests'}"
        yield workspace.command("python", "-m", *words, PYTHONPATH=paths)
    # So long that Leases run out, which takes more time than a test has.
    away = ("tests/integration/test_server_away.py", "-k", "in_each_phase", "-p", "no:cacheprovider")
    yield workspace.command("python", "-m", "pytest", *away, PYTHONPATH=tree, VIRTOPS_AWAY="60")


def search(stack: Stack, seconds: float, seed: int | None = None) -> bool:
    """Search round after round until `seconds` have gone by; whether nothing was found. Raises ToolsError."""
    workspace = workspaces.prepare(stack)
    seed = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    ends, found, tried = time.monotonic() + seconds, [], 0
    while not tried or time.monotonic() < ends:
        for command in searches(workspace, seed):
            if tried and time.monotonic() >= ends:
                break
            words = " ".join(str(word) for word in command.argv).replace(f"{workspace.venv}/bin/", "")
            print(f"\n===== {words}", flush=True)
            variables = {**workspace.variables(), **command.variables}
            code = subprocess.run(command.argv, cwd=command.cwd, env=variables, check=False).returncode
            tried += 1
            if code:
                found.append(f"exit code {code}: {words}")
        seed += 1
    print(f"\n{tried} searches, {len(found)} of them found something", *found, sep="\n")
    return not found
