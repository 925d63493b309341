# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the testbed: how long it takes to build, to start and to fill, and what it costs when nothing happens.

Run by `make testbed-bench`; prints its figures and judges nothing.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import psutil

from testbed import cli, cluster, processes
from testbed.build import build_all, build_seconds, say
from testbed.home import Home
from testbed.status import MIB

SMALL_NODES = 6


def timed(action: Callable[[], object]) -> float:
    """Seconds that an action takes."""
    started = time.monotonic()
    action()
    return time.monotonic() - started


def command(name: str, *words: str) -> None:
    if cli.main(["--name", name, *words]):
        raise SystemExit(f"testbed {' '.join(words)} failed")


def cpu_seconds(live: dict[str, psutil.Process]) -> dict[str, float]:
    times = {name: process.cpu_times() for name, process in live.items()}
    return {name: used.user + used.system for name, used in times.items()}


def measure_idle(home: Home, seconds: float) -> None:
    live = processes.running(home)
    before = cpu_seconds(live)
    time.sleep(seconds)
    after = cpu_seconds(live)
    print(f"\nidle for {seconds:.0f} s                    cores      MiB")
    total_cores = total_memory = 0.0
    for name, process in live.items():
        cores = (after[name] - before[name]) / seconds
        memory = process.memory_info().rss / MIB
        total_cores += cores
        total_memory += memory
        print(f"  {name:<26}{cores:9.3f}{memory:9.0f}")
    print(f"  {'in all':<26}{total_cores:9.3f}{total_memory:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="testbed.bench", description=__doc__)
    parser.add_argument("--nodes", type=int, default=60, help="nodes of the large cluster (default: %(default)s)")
    parser.add_argument("--vmis", type=int, default=600, help="its VMIs (default: %(default)s)")
    parser.add_argument("--settle", type=float, default=60, help="seconds between load and idle (default: %(default)s)")
    parser.add_argument("--idle", type=float, default=60, help="seconds of idle measured (default: %(default)s)")
    args = parser.parse_args()

    build_all()
    print("build, each from an empty cache      seconds")
    for name, seconds in build_seconds().items():
        print(f"  {name:<32}{seconds:11.1f}")
    small, large = (Home(f"bench-{os.getpid()}-{size}") for size in ("small", "large"))
    owner = ("--owner", str(os.getpid()))
    try:
        up = timed(lambda: command(small.name, "up", "--nodes", str(SMALL_NODES), *owner))
        cluster.down(small)
        empty = timed(lambda: command(large.name, "up", *owner))
        size = ("--nodes", str(args.nodes), "--vmis", str(args.vmis))
        load = timed(lambda: command(large.name, "load", "generated", *size))
        print("\nstart                                seconds")
        print(f"  {'up, ' + str(SMALL_NODES) + ' nodes ready':<32}{up:11.1f}")
        print(f"  {'up, no nodes':<32}{empty:11.1f}")
        print(f"  {f'load {args.nodes} nodes, {args.vmis} VMIs running':<32}{load:11.1f}")
        say(f"letting the cluster settle for {args.settle:.0f} s")
        time.sleep(args.settle)
        measure_idle(large, args.idle)
    finally:
        cluster.down(small)
        cluster.down(large)


if __name__ == "__main__":
    main()
