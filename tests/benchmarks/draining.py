# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure plans of drains on clusters of several sizes, each in a process of its own.

    python -m benchmarks.draining [--nodes 100,1000,5000] [--json FILE]

Each cluster has 20 pods a node, and one node with 20 VMs more, which is the one that is drained. It is measured twice:
as it is, with room for all of them, and full, with room for some. The last line is of a whole run on one cluster.
Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.clusters import PODS_PER_NODE, cluster, machine

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot, from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import Scene, plan, plan_drains, prepare
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import NEEDS, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.repair import repair
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

Json = dict[str, Any]
Result = TypeVar("Result")

NODES = (100, 1000, 5000)
CROWDED, NEXT = "node-7", "node-8"
EXTRA_MACHINES = 20
# In a full cluster: the nodes with room for one more pod each.
NOT_FULL = 12


@dataclass(frozen=True)
class Figures:
    """One line of the table. Times are the processor's.

    `reading`: the file. `preparing`: what costs in proportion to the cluster. `planning`: all the rest. `next_node`:
    both for one more node of a run, on which there are as many VMs and pods as on most.
    """

    nodes: int
    pods: int
    vms_that_move: int
    vms_that_stay: int
    pods_that_move: int
    waves: int
    reading_seconds: float
    preparing_seconds: float
    planning_seconds: float
    next_node_seconds: float
    peak_mebibytes: float


def crowded_cluster(nodes: int) -> dict[str, list[Json]]:
    """The benchmarks' cluster with a VMI for each launcher pod, and one node with many VMs."""
    lists = cluster(nodes)
    for number in range(EXTRA_MACHINES):
        pod = machine(f"extra-{number}", 10**6 + number)
        pod["spec"]["nodeName"], pod["status"] = CROWDED, {"phase": "Running"}
        lists["pods"].append(pod)
    launchers = [pod for pod in lists["pods"] if "vm.kubevirt.io/name" in pod["metadata"]["labels"]]
    for number, pod in enumerate(launchers):
        pod["metadata"]["uid"] = f"pod-of-{number}"
        name = pod["metadata"]["name"]
        owner = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "name": name,
            "uid": f"uid-{name}",
            "controller": True,
        }
        pod["metadata"]["ownerReferences"] = [owner]
    return {**lists, "vmis": [_vmi(pod) for pod in launchers]}


def full_cluster(nodes: int) -> dict[str, list[Json]]:
    """The same, with room for one more pod on few nodes, and none on the others."""
    lists = crowded_cluster(nodes)
    others = [node for node in lists["nodes"] if node["metadata"]["name"] != CROWDED]
    for number, node in enumerate(others):
        node["status"]["allocatable"]["pods"] = str(PODS_PER_NODE + (number < NOT_FULL))
    return lists


def _vmi(pod: Json) -> Json:
    """What the pod could have been rendered from."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = {key: value for key, value in spec["nodeSelector"].items() if not key.startswith("kubevirt.io/")}
    labels = {key: pod["metadata"]["labels"][key] for key in ("app", "group")}
    return {
        "metadata": {"namespace": "machines", "name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": {
            "domain": {"cpu": {"cores": 10}, "memory": {"guest": "4Gi"}},
            "nodeSelector": own,
            "affinity": spec["affinity"],
            "tolerations": spec["tolerations"],
        },
        "status": {"phase": "Running", "nodeName": spec["nodeName"], "selinuxContext": "none"},
    }


def measure(path: str, feasible: bool) -> Figures:
    """Load the cluster in a file, and plan the drain of the crowded node, which has to be `feasible` or not."""
    lists, reading = _timed(lambda: load(path).lists)
    ground = Ground(Snapshot(lists))
    scene, preparing = _timed(lambda: _scene(ground, CROWDED))
    planned, planning = _timed(lambda: plan(scene))
    if planned.feasible is not feasible:
        raise RuntimeError(planned.message)
    scene.board.clear()
    _plan, another = _timed(lambda: plan(_scene(ground, NEXT)))
    return Figures(
        nodes=len(lists["nodes"]),
        pods=len(lists["pods"]),
        vms_that_move=len(planned.moves),
        vms_that_stay=len(planned.stuck),
        pods_that_move=sum(pod.wave is not None for pod in planned.pods),
        waves=max(move.wave for move in planned.moves),
        reading_seconds=reading,
        preparing_seconds=preparing,
        planning_seconds=planning,
        next_node_seconds=another,
        peak_mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def measure_run(nodes: int) -> str:
    """Maintain a whole cluster, two nodes at a time, and mend the plan when nothing has changed."""
    lists = crowded_cluster(nodes)
    for node in lists["nodes"]:
        node["status"]["allocatable"]["pods"] = str(3 * PODS_PER_NODE)
    snapshot, names = from_plain(lists), [node["metadata"]["name"] for node in lists["nodes"]]
    batches = [names[first : first + 2] for first in range(0, nodes, 2)]
    _plans, alone = _timed(lambda: plan_drains(Ground(Snapshot(lists)), batches))
    planned, carried = _timed(lambda: plan_run(snapshot, "benchmark", batches, PlanOptions(allowed=frozenset(NEEDS))))
    mended, mending = _timed(lambda: repair(planned, snapshot))
    if mended != planned:
        raise RuntimeError("the plan has changed, and the cluster has not")
    totals = planned.totals
    return (
        f"a run of {nodes} nodes with {len(lists['vmis'])} VMs: {totals.migrations} migrations (at least "
        f"{totals.lower_bound}), {alone:.3g} s if each batch is the only one, {carried:.3g} s as a run, {mending:.3g} "
        "s to look at the plan again"
    )


def _scene(ground: Ground, node: str) -> Scene:
    return prepare(ground, [node], (), (), {})


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def _measured(sizes: Sequence[int]) -> Iterator[Figures]:
    """A fresh process for each cluster, so that its peak of memory is its own."""
    spawning = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        for nodes, (make, feasible) in product(sizes, ((crowded_cluster, True), (full_cluster, False))):
            path.write_text(json.dumps(make(nodes)))
            with spawning.Pool(1) as pool:
                yield pool.apply(measure, (str(path), feasible))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), help="sizes of clusters, separated by commas")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--run", type=int, default=200, help="size of the cluster that is maintained as a whole")
    arguments = parser.parse_args()
    measured = list(_measured([int(size) for size in arguments.nodes.split(",")]))
    for field in fields(Figures):
        values = (f"{getattr(figures, field.name):,.4g}" for figures in measured)
        print(f"{field.name.replace('_', ' '):20}", *(f"{text:>12}" for text in values))
    print(measure_run(arguments.run))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(figures) for figures in measured], indent=2) + "\n")


if __name__ == "__main__":
    main()
