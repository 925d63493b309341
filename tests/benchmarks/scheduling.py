# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure the scheduler's verdicts on clusters of several sizes, each in a process of its own.

    python -m benchmarks.scheduling [--nodes 100,1000,5000] [--upstream] [--json FILE]

It prints a table; the file gets the same figures. `--upstream` adds what kube-scheduler itself needs for a pod.
Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path

from benchmarks.clusters import cluster, machine

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod, pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.filters.registry import FILTERS
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.framework import evaluate, total_scores
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import SCORERS, Profile
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, cluster_state

from differential import upstream

NODES = (100, 1000, 5000)
# Group numbers that no pod of the clusters has: a pod of one is the first of its class.
_NEW_GROUP = 10**6

# How many pods are asked about in a run of the real scheduler; the difference leaves out what reading costs.
_ASKED_UPSTREAM = (1, 101)
# It filters twice for each pod: once as a whole, and once plugin by plugin for the reasons.
_TIMES_UPSTREAM_FILTERS = 2


@dataclass(frozen=True)
class Figures:
    """One line of the table.

    Of repeated measurements the median. Times are the processor's, so that what else runs on the machine matters
    little. A verdict is complete, with its message.
    """

    nodes: int
    pods: int
    load_seconds: float
    peak_mebibytes: float
    first_verdict_ms: float
    first_of_class_ms: float
    warm_ms: float
    warm_with_scores_ms: float
    verdicts_per_second_while_changing: float
    change_and_undo_us: float
    upstream_ms: float | None = None


def measure(path: str) -> Figures:
    """Load the cluster in a file, and ask and change it."""
    started = time.process_time()
    state = cluster_state(load(path).lists)
    loading = time.process_time() - started
    group = [pod(machine(f"new-{number}", number)) for number in range(32)]
    strangers = [pod(machine(f"stranger-{number}", _NEW_GROUP + number)) for number in range(32)]
    return Figures(
        nodes=len(state.nodes),
        pods=len(state.placements()),
        load_seconds=loading,
        peak_mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        first_verdict_ms=1e3 * _once(lambda: _verdict(group[0], state)),
        first_of_class_ms=1e3 * statistics.median(_once(partial(_verdict, new, state)) for new in strangers),
        warm_ms=1e3 * _median(lambda: _verdict(group[0], state)),
        warm_with_scores_ms=1e3 * _median(lambda: _verdict_with_scores(group[0], state)),
        verdicts_per_second_while_changing=_rate(group, state),
        change_and_undo_us=1e6 * _median(lambda: state.undo(state.add(group[0].occupant, state.nodes.names[0]))),
    )


def measure_upstream(nodes: int) -> float:
    """Milliseconds of one core that kube-scheduler's own filters take for a pod, without reading the cluster."""
    few, many = (_upstream_seconds(nodes, asked) for asked in _ASKED_UPSTREAM)
    return 1e3 * (many - few) / (_ASKED_UPSTREAM[1] - _ASKED_UPSTREAM[0]) / _TIMES_UPSTREAM_FILTERS


def _upstream_seconds(nodes: int, asked: int) -> float:
    case = {"lists": cluster(nodes), "asked": [machine(f"new-{number}", number) for number in range(asked)]}
    stored = list(upstream.store([case]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    list(upstream.judge(stored))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _verdict(wanted: Pod, state: ClusterState) -> str:
    return evaluate(wanted, state, FILTERS).message


def _verdict_with_scores(wanted: Pod, state: ClusterState) -> None:
    found = evaluate(wanted, state, FILTERS)
    total_scores(wanted, state, found.feasible, SCORERS[Profile.LOW_NODE_UTILIZATION])


def _rate(wanted: Sequence[Pod], state: ClusterState, rounds: int = 500) -> float:
    """Verdicts per second, with a pod bound before each of them, as a planner binds what it has placed."""
    names = state.nodes.names
    changes = []
    started = time.process_time()
    for number in range(rounds):
        asked = wanted[number % len(wanted)]
        newcomer = pod(machine(f"bound-{number}", number)).occupant
        changes.append(state.add(newcomer, names[number % len(names)]))
        _verdict(asked, state)
    elapsed = time.process_time() - started
    for change in reversed(changes):
        state.undo(change)
    return rounds / elapsed


def _once(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _median(work: Callable[[], object], rounds: int = 200) -> float:
    return statistics.median(_once(work) for _round in range(rounds))


def _measured(sizes: Sequence[int]) -> Iterator[Figures]:
    """A fresh process for each size, so that its peak of memory is its own."""
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for nodes in sizes:
            path = Path(folder) / f"{nodes}.json"
            path.write_text(json.dumps(cluster(nodes)))
            with spawning.Pool(1) as pool:
                yield pool.apply(measure, (str(path),))


def _print(measured: Sequence[Figures]) -> None:
    for field in fields(Figures):
        values = (getattr(figures, field.name) for figures in measured)
        texts = ("-" if value is None else f"{value:,.6g}" for value in values)
        print(f"{field.name.replace('_', ' '):36}", *(f"{text:>12}" for text in texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), help="sizes of clusters, separated by commas")
    parser.add_argument("--upstream", action="store_true", help="also measure kube-scheduler itself")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    measured = list(_measured([int(size) for size in arguments.nodes.split(",")]))
    if arguments.upstream:
        measured = [replace(figures, upstream_ms=measure_upstream(figures.nodes)) for figures in measured]
    _print(measured)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figures) for figures in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
