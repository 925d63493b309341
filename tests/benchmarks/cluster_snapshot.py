# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how long a snapshot takes to read, write and load, and how much memory, on clusters of several sizes.

    python -m benchmarks.cluster_snapshot [--nodes 60,1000,5000] [--page-size 500] [--json FILE]

The API server is synthetic (synthetic_api.py) and runs in a process of its own on the same machine; the module and the
loading run in fresh processes too, as in Ansible. Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.synthetic_api import SyntheticApi

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving

NODES = (60, 1000, 5000)
# Fresh interpreters: a forked one would begin with the memory and the imports of this one.
_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Cost:
    """Of one process from its first import: elapsed and processor time, and the most memory it ever had."""

    seconds: float
    cpu_seconds: float
    peak_mebibytes: float


@dataclass(frozen=True)
class Figures:
    """One line of the table. `take`: the whole module. `load`: what a filter does with the file. File in 10^6 bytes."""

    nodes: int
    pods: int
    file_megabytes: float
    take_seconds: float
    take_cpu_seconds: float
    take_peak_mebibytes: float
    load_seconds: float
    load_cpu_seconds: float
    load_peak_mebibytes: float


def measure(nodes: int, page_size: int) -> Figures:
    with tempfile.TemporaryDirectory() as name, api_server(nodes, Path(name)) as connection:
        file = Path(name) / "cluster.json"
        took = cost(take, {**connection, "path": str(file), "page_size": page_size})
        loaded = cost(load, str(file))
        return Figures(
            nodes=nodes,
            pods=SyntheticApi(nodes=nodes).pods,
            file_megabytes=file.stat().st_size / 10**6,
            take_seconds=took.seconds,
            take_cpu_seconds=took.cpu_seconds,
            take_peak_mebibytes=took.peak_mebibytes,
            load_seconds=loaded.seconds,
            load_cpu_seconds=loaded.cpu_seconds,
            load_peak_mebibytes=loaded.peak_mebibytes,
        )


@contextlib.contextmanager
def api_server(nodes: int, folder: Path) -> Iterator[dict[str, str]]:
    """The module's arguments that reach a synthetic API server, as long as the context lasts."""
    here, there = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_serve, args=(there, nodes, folder))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        process.join()


def _serve(pipe: Connection, nodes: int, folder: Path) -> None:
    authority = Authority(folder)
    with serving(SyntheticApi(nodes=nodes), authority.issue("server", "server", hosts=["127.0.0.1"])) as api:
        pipe.send({"host": api.url, "api_key": "token", "ca_cert": str(authority.cert)})
        pipe.recv()


def cost(work: Callable[[Any], None], argument: Any) -> Cost:
    """What `work` costs in a process of its own."""
    here, there = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_measured, args=(there, work, argument))
    process.start()
    result: Cost = here.recv()
    process.join()
    return result


def _measured(pipe: Connection, work: Callable[[Any], None], argument: Any) -> None:
    start = time.perf_counter()
    work(argument)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pipe.send(Cost(time.perf_counter() - start, time.process_time(), peak))


def take(arguments: dict[str, Any]) -> None:
    """Imports are part of the cost, as each task of Ansible pays them."""
    from ansible.module_utils.testing import patch_module_args  # noqa: PLC0415
    from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main  # noqa: PLC0415

    output = io.StringIO()
    with patch_module_args(arguments), contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main()
    result = json.loads(output.getvalue())
    if result.get("failed"):
        raise RuntimeError(result["msg"])


def load(path: str) -> None:
    from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file  # noqa: PLC0415

    snapshot_file.load(path)


def print_table(lines: Sequence[Figures]) -> None:
    names = [field.name for field in fields(Figures)]
    rows = [[name.replace("_", " ") for name in names]]
    rows += [
        [f"{value:.1f}" if isinstance(value, float) else str(value) for value in asdict(x).values()] for x in lines
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), help="sizes, separated by commas (%(default)s)")
    parser.add_argument("--page-size", type=int, default=500)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    lines = [measure(int(nodes), options.page_size) for nodes in options.nodes.split(",")]
    print_table(lines)
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=2) + "\n")


if __name__ == "__main__":
    main()
