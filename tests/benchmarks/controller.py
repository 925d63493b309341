# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a rolling maintenance costs its controller, and how well it uses the migrations that KubeVirt allows.

    python -m benchmarks.controller [--testbed NAME] [--nodes 60] [--vms 600] [--batch 3] [--seconds 6]
                                    [--maintenance 10] [--check] [--json FILE]

Nodes with equally many VMs are maintained by the playbook, on a testbed of its own or on one that is up: all that there
are, in batches, or a single batch beside some empty nodes. The requests pass a proxy that counts them. One run tells
little on a machine that does other things besides: measure three times, and go by the median of each figure.

With --check the whole run is played in check mode instead, and what that prints is counted.
Run it with `tests/` and the collection's tree on PYTHONPATH, the latter first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean

import httpx
from benchmarks.courses import KUBEVIRT, WatchedCourses, bound
from benchmarks.played import DRAIN, Played, play, used

from faults.proxy import proxied
from testbed import cluster
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.home import Home
from testbed.nodes import fake_node
from testbed.simulator.course import LINK
from testbed.waiting import wait_for

VMIS = "virtualmachineinstances"
POOL = {"pool": "bench"}
TAINT = {"key": "pool", "value": "bench", "effect": "NoSchedule"}
TIME_SCALE, MEMORY = 10.0, 2**30
TIMEOUT = 900.0
# VMs on a node that is maintained, and empty nodes beside a single batch.
MACHINES, SPARE = 11, 4
# Of a task that is repeated the cheapest one is the least disturbed.
REPETITIONS = 4


@dataclass(frozen=True)
class Figures:
    """Times in seconds, as exact as courses.py says, `cpu` of the controller: user and system, all its processes.

    migration_seconds: of one, on average, without its wait in KubeVirt's queue. span: from the first migration's
    creation to the last one's end, of each batch and then summed up. bound: what it would be if KubeVirt's caps were
    always made full use of. wall_bound: that and the maintenance of all batches. cpu_of_a_task: of node_drain that
    finds nothing to do by the run's plan. memory: MiB that all processes had together at most, of which what several
    share counts once. lines: of stdout and stderr.
    """

    batches: int
    migrations: int
    migration_seconds: float
    span: float
    bound: float
    span_of_bound: float
    wall: float
    wall_bound: float
    wall_of_bound: float
    wall_of_drains: float
    cpu: float
    cpu_of_drains: float
    cpu_of_a_task: float
    memory: float
    memory_in_first_batch: float
    memory_in_last_batch: float
    requests_a_migration: float
    lines: int
    lines_of_progress: int


@dataclass(frozen=True)
class CheckFigures:
    """What check mode of a whole run prints, of stdout and stderr, and takes: seconds, `cpu` as above."""

    nodes: int
    lines: int
    lines_a_node: float
    bytes: int
    wall: float
    cpu: float


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    spare = SPARE if options.nodes == options.batch else 0
    nodes = [f"bench-{number}" for number in range(options.nodes + spare)]
    with (
        _testbed(options.testbed) as bench,
        tempfile.TemporaryDirectory() as folder,
        _crowded(bench, nodes, options) as namespace,
    ):
        measure = _measure_check if options.check else _measure
        figures = asdict(measure(bench, namespace, nodes[: options.nodes], Path(folder), options))
        # Here, as hundreds of VMs take minutes to end.
        for name, value in figures.items():
            print(f"{name:22} {value:10.2f}" if isinstance(value, float) else f"{name:22} {value:7}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with what those come to that are not given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--testbed", metavar="NAME", help=f"one that is up with --time-scale {TIME_SCALE:g}")
    parser.add_argument("--nodes", type=int, help="to maintain; a single batch if not given")
    parser.add_argument("--vms", type=int, help=f"on all of them; {MACHINES} a node if not given")
    parser.add_argument("--batch", type=int, default=3, help="nodes, at a time")
    parser.add_argument("--seconds", type=float, default=6.0, help="that the copying of a VM takes")
    parser.add_argument("--maintenance", type=int, default=0, help="seconds that a batch is maintained")
    parser.add_argument("--check", action="store_true", help="measure what check mode of the run prints")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.nodes is None:
        options.nodes = options.batch
    if options.vms is None:
        options.vms = options.nodes * MACHINES
    if not 0 < options.batch <= options.nodes <= options.vms:
        parser.error("there has to be a batch of nodes, and a VM on each node at least")
    return options


@contextmanager
def _testbed(name: str | None) -> Iterator[RunningTestbed]:
    home = Home(name or f"controller-{os.getpid()}")
    if not name:
        cluster.up(home, TIME_SCALE, seed=0, owner_pid=os.getpid())
    try:
        with Api(home.kubeconfig()) as api:
            yield RunningTestbed(home, api)
    finally:
        if not name:
            cluster.down(home)


@contextmanager
def _crowded(bench: RunningTestbed, nodes: list[str], options: argparse.Namespace) -> Iterator[str]:
    """The namespace of VMs that run on those nodes that are maintained."""
    api, namespace = bench.api, bench.namespace("bench")
    for name in nodes:
        api.create("/api/v1/nodes", fake_node(name, memory="128Gi", labels=POOL, taints=[TAINT]))
    path = resource_path(KUBEVIRT, VMIS, namespace)
    try:
        wait_for("the nodes to report", lambda: all(_reports(api, name) for name in nodes), TIMEOUT)
        factor = options.seconds * TIME_SCALE * LINK / MEMORY
        bench.inject("slow-migration", "--factor", str(factor), "--selector", "app=bench")
        for number in range(options.vms):
            api.create(path, _machine(namespace, f"vm-{number}", nodes[number % options.nodes]))
        wait_for("the VMs to be migratable", lambda: all(map(_migratable, api.items(path))), TIMEOUT, interval=1)
        yield namespace
    finally:
        bench.inject("clear")
        with suppress(httpx.ReadTimeout):  # of hundreds; the server goes on with them
            api.delete(path)
        wait_for("the end of the VMs", lambda: not api.items(path), TIMEOUT, interval=1)
        bench.drop_namespace(namespace)
        for name in nodes:
            api.delete(resource_path("v1", "nodes", name=name))


def _measure(
    bench: RunningTestbed, namespace: str, nodes: list[str], folder: Path, options: argparse.Namespace
) -> Figures:
    with (
        proxied(bench.kubeconfig, folder, seed=0) as (kubeconfig, proxy),
        WatchedCourses(bench.kubeconfig, namespace) as watched,
    ):
        begun, before = time.monotonic(), used()
        run = _maintain(kubeconfig, nodes, folder, options)
        wall, cpu, requests = time.monotonic() - begun, used() - before, proxy.requests
    courses, planned = watched.courses.found, json.loads((folder / "plan.json").read_text())["batches"]
    found = ([course for course in courses if course.source in names] for names in planned)
    batches = [batch for batch in found if batch]
    times = [(min(one.created for one in batch), max(one.ended for one in batch)) for batch in batches]
    span, least = sum(end - begin for begin, end in times), sum(map(bound, batches))
    wall_bound = least + len(planned) * options.maintenance
    return Figures(
        batches=len(planned),
        migrations=len(courses),
        migration_seconds=mean(course.seconds for course in courses),
        span=span,
        bound=least,
        span_of_bound=span / least,
        wall=wall,
        wall_bound=wall_bound,
        wall_of_bound=wall / wall_bound,
        wall_of_drains=sum(entry["wall"] for entry in run.drains),
        cpu=cpu,
        cpu_of_drains=sum(entry["cpu"] for entry in run.drains),
        cpu_of_a_task=cost_of_a_task(bench.kubeconfig, planned[-1][0], folder),
        memory=run.most_memory(),
        memory_in_first_batch=run.most_memory(*times[0]),
        memory_in_last_batch=run.most_memory(*times[-1]),
        requests_a_migration=requests / len(courses),
        lines=run.printed[0],
        lines_of_progress=len(run.stderr),
    )


def _measure_check(
    bench: RunningTestbed, _namespace: str, nodes: list[str], folder: Path, options: argparse.Namespace
) -> CheckFigures:
    begun, before = time.monotonic(), used()
    run = _maintain(bench.kubeconfig, nodes, folder, options, "--check")
    wall, cpu = time.monotonic() - begun, used() - before
    lines, size = run.printed
    return CheckFigures(len(nodes), lines, lines / len(nodes), size, wall, cpu)


def _maintain(kubeconfig: Path, nodes: list[str], folder: Path, options: argparse.Namespace, *words: str) -> Played:
    # Once for all nodes of a batch, in the process of ansible-playbook itself.
    pause = {"ansible.builtin.pause": {"seconds": options.maintenance}}
    nothing = {"ansible.builtin.debug": {"msg": "empty"}}
    tasks = folder / "tasks.yml"
    tasks.write_text(json.dumps([pause if options.maintenance else nothing]))
    variables = {
        "plan_maintenance_run": "bench",
        "plan_maintenance_nodes": nodes,
        "plan_maintenance_batch": options.batch,
        "plan_maintenance_path": str(folder / "plan.json"),
        "rolling_maintenance_tasks": str(tasks),
        "rolling_maintenance_kubeconfig": str(kubeconfig),
        "rolling_maintenance_rebalance": False,
    }
    return play(folder, "maintain", [{"import_playbook": "virtops.kubevirt.rolling_maintenance"}], variables, *words)


def cost_of_a_task(kubeconfig: Path, node: str, folder: Path) -> float:
    """What node_drain takes of the processor before it begins, by the plan in the folder, in check mode.

    Given as role drain gives it: with a snapshot from a moment ago, against which the plan is held.
    """
    plan = json.loads((folder / "plan.json").read_text())
    connected = {"kubeconfig": str(kubeconfig)}
    snapshot = {"virtops.kubevirt.cluster_snapshot": {**connected, "path": str(folder / "snapshot.json.gz")}}
    reading = {**snapshot, "register": "cluster", "check_mode": False}
    given = {
        "name": node,
        "owner": plan["run"],
        "run": plan["run"],
        # Check mode holds no run, but a task of one does not ask for its rights.
        "invocation": "none",
        "cluster_uid": plan["cluster"]["uid"],
        "plan": str(folder / "plan.json"),
        "snapshot": "{{ cluster }}",
        "cordon": True,
    }
    tasks = [reading, *[{DRAIN: {**connected, **given}}] * REPETITIONS]
    plays: list[Object] = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    return float(min(entry["cpu"] for entry in play(folder, "drain", plays, {}, "--check").drains))


def _reports(api: Api, name: str) -> bool:
    item = api.get(resource_path("v1", "nodes", name=name))
    return "conditions" in item["status"] and item["spec"]["taints"] == [TAINT]


def _migratable(vmi: Object) -> bool:
    conditions = (vmi.get("status") or {}).get("conditions") or ()
    known = {condition["type"]: condition["status"] for condition in conditions}
    return (known.get("Ready"), known.get("LiveMigratable")) == ("True", "True")


def _machine(namespace: str, name: str, node: str) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    at_first = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    interface = {"name": "default", "masquerade": {}}
    spec: Object = {
        "domain": {"memory": {"guest": str(MEMORY)}, "cpu": {"cores": 1}, "devices": {"interfaces": [interface]}},
        "networks": [{"name": "default", "pod": {}}],
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": POOL,
        "tolerations": [{"key": "pool", "operator": "Exists"}],
        "affinity": {"nodeAffinity": at_first},
    }
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "bench"}}
    return {"apiVersion": KUBEVIRT, "kind": "VirtualMachineInstance", "metadata": metadata, "spec": spec}


if __name__ == "__main__":
    main()
