# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disturb whole runs by chance, and see that what must hold holds.

    python -m faults [--runs 10] [--seed 1] [--nodes 6] [--vms 20] [--only NAME ... | --begin-with NAME | --calm]
                     [--batch N] [--testbed NAME] [--json FILE | --resume FILE]

Each run is made by a seed of its own: cluster, nodes to maintain, disturbances and their moments. So is how many nodes
go together, unless --batch says it. What each attempt has printed stays in the folder that is named where something is
wrong. With --resume what FILE tells is counted, and the first new seed is the one after its last.
Run it with `tests/` and the collection's tree on PYTHONPATH, the latter first.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.campaign import Schedule, disturbed
from faults.disturbances.registry import ALL
from faults.outcome import keep, kept, table, told, totals
from testbed import cluster
from testbed.api import Api
from testbed.handle import RunningTestbed
from testbed.home import Home

TIME_SCALE = 60.0


@contextmanager
def running(name: str | None) -> Iterator[RunningTestbed]:
    """A testbed that is up, or one of its own."""
    home = Home(name or f"faults-{os.getpid()}")
    if name is None:
        cluster.up(home, time_scale=TIME_SCALE, seed=0, owner_pid=os.getpid())
    try:
        with Api(home.kubeconfig()) as api:
            yield RunningTestbed(home, api)
    finally:
        if name is None:
            cluster.down(home)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--vms", type=int, default=20)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--only", nargs="+", choices=list(ALL), default=[])
    chosen.add_argument("--begin-with", choices=list(ALL), help="this alone, from the first moment on")
    chosen.add_argument("--calm", action="store_true", help="disturb nothing, to compare with")
    parser.add_argument("--batch", type=int, help="so many nodes together; of two, a pod may find no other node")
    parser.add_argument("--testbed")
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--json", type=Path, help="write what came of the runs")
    files.add_argument("--resume", type=Path, help="go on after the last seed that this file tells of")
    options = parser.parse_args()
    fixed: Schedule | None = [(0.0, options.begin_with)] if options.begin_with else [] if options.calm else None
    outcomes = kept(options.resume) if options.resume else []
    first = max((outcome.seed + 1 for outcome in outcomes), default=options.seed)
    file = options.json or options.resume
    with running(options.testbed) as testbed:
        for seed in range(first, first + options.runs):
            folder = Path(tempfile.mkdtemp(prefix=f"faults-{seed}-"))
            scale = (options.nodes, options.vms)
            outcomes.append(disturbed(testbed, folder, seed, *scale, options.only, fixed, batch=options.batch))
            print(told(outcomes[-1], folder), flush=True)
            if file:
                keep(outcomes, file)
    wrong = [outcome.seed for outcome in outcomes if outcome.wrong]
    print(*table(outcomes), totals(outcomes), sep="\n")
    print(f"{len(outcomes) - len(wrong)} of {len(outcomes)} runs held" + (f"; not: {wrong}" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
