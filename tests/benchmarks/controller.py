# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a rolling maintenance costs its controller, and how well it uses the migrations that KubeVirt allows.

    python -m benchmarks.controller [--testbed NAME] [--nodes 60] [--vms 600] [--batch 3] [--seconds 6]
                                    [--maintenance 10] [--json FILE]

Nodes with equally many VMs are maintained by the playbook, on a testbed of its own or on one that is up: all that there
are, in batches, or a single batch beside some empty nodes. The requests pass a proxy that counts them.
Run it with `tests/` and the collection's tree on PYTHONPATH, the latter first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any

import psutil

from faults.proxy import proxied
from testbed import cluster
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.home import Home
from testbed.nodes import fake_node
from testbed.simulator.course import LINK
from testbed.waiting import wait_for

KUBEVIRT, VMIS, MIGRATIONS = "kubevirt.io/v1", "virtualmachineinstances", "virtualmachineinstancemigrations"
POOL = {"pool": "bench"}
TAINT = {"key": "pool", "value": "bench", "effect": "NoSchedule"}
TIME_SCALE, MEMORY = 10.0, 2**30
# KubeVirt's defaults: parallelMigrationsPerCluster and parallelOutboundMigrationsPerNode.
PER_CLUSTER, PER_NODE = 5, 2
DRAIN = "virtops.kubevirt.node_drain"
TIMEOUT = 900.0
# VMs on a node that is maintained, and empty nodes beside a single batch.
MACHINES, SPARE = 11, 4
MEBIBYTE = 2**20
# Of a task that is repeated the cheapest one is the least disturbed.
REPETITIONS = 4


@dataclass(frozen=True)
class Figures:
    """Times in seconds, `cpu` of the controller: user and system, all its processes.

    migration_seconds: of one, on average, without its wait in KubeVirt's queue. span: from the first migration's
    creation to the last one's end, of each batch and then summed up. bound: what it would be if KubeVirt's caps were
    always made full use of. wall_bound: that and the maintenance of all batches. cpu_of_a_task: of node_drain that
    finds nothing to do. memory: MiB that all processes had together at most, where what they share counts for each of
    them. lines: of stdout and stderr.
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
class Course:
    """Of a migration: where from, and when it was created, when its turn came, and when it ended."""

    source: str
    created: float
    started: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@dataclass(frozen=True)
class Played:
    """A playbook that has ended well. tasks: as callback/task_times.py has them. memory: when, and MiB then."""

    stdout: list[str]
    stderr: list[str]
    tasks: list[Object]
    memory: list[tuple[float, float]]

    @property
    def drains(self) -> list[Object]:
        return [entry for entry in self.tasks if entry["action"] == DRAIN]

    def most_memory(self, begin: float = 0.0, end: float = math.inf) -> float:
        return max((size for moment, size in self.memory if begin <= moment <= end), default=0.0)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    spare = SPARE if options.nodes == options.batch else 0
    nodes = [f"bench-{number}" for number in range(options.nodes + spare)]
    with (
        _testbed(options.testbed) as bench,
        tempfile.TemporaryDirectory() as folder,
        _crowded(bench, nodes, options) as namespace,
    ):
        figures = _measure(bench, namespace, nodes[: options.nodes], Path(folder), options)
    for name, value in asdict(figures).items():
        print(f"{name:22} {value:10.2f}" if isinstance(value, float) else f"{name:22} {value:7}")
    if options.json:
        options.json.write_text(json.dumps(asdict(figures), indent=2) + "\n")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with what those come to that are not given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--testbed", metavar="NAME", help=f"one that is up with --time-scale {TIME_SCALE:g}")
    parser.add_argument("--nodes", type=int, help="to maintain; a single batch if not given")
    parser.add_argument("--vms", type=int, help=f"on all of them; {MACHINES} a node if not given")
    parser.add_argument("--batch", type=int, default=3, help="nodes, at a time")
    parser.add_argument("--seconds", type=float, default=6.0, help="that the copying of a VM takes")
    parser.add_argument("--maintenance", type=int, default=0, help="seconds that a batch is maintained")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.nodes is None:
        options.nodes = options.batch
    if options.vms is None:
        options.vms = options.nodes * MACHINES
    if not 0 < options.batch <= options.nodes <= options.vms:
        parser.error("there has to be a batch of nodes, and a VM on each node at least")
    return options


def bound(courses: Sequence[Course]) -> float:
    """Seconds that the migrations of a batch take when KubeVirt's caps are always made full use of."""
    per_node = Counter(course.source for course in courses)
    turns = max(math.ceil(len(courses) / PER_CLUSTER), *(math.ceil(count / PER_NODE) for count in per_node.values()))
    return turns * mean(course.seconds for course in courses)


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
        api.delete(path)
        wait_for("the end of the VMs", lambda: not api.items(path), TIMEOUT, interval=1)
        bench.drop_namespace(namespace)
        for name in nodes:
            api.delete(resource_path("v1", "nodes", name=name))


def _measure(
    bench: RunningTestbed, namespace: str, nodes: list[str], folder: Path, options: argparse.Namespace
) -> Figures:
    with proxied(bench.kubeconfig, folder, seed=0) as (kubeconfig, proxy):
        begun, before = time.monotonic(), _used()
        run = _maintain(kubeconfig, nodes, folder, options)
        wall, cpu, requests = time.monotonic() - begun, _used() - before, proxy.requests
    courses = [_course(item) for item in bench.api.items(resource_path(KUBEVIRT, MIGRATIONS, namespace))]
    planned = json.loads((folder / "plan.json").read_text())["batches"]
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
        cpu_of_a_task=_cost_of_a_task(bench.kubeconfig, planned[-1][0], folder),
        memory=run.most_memory(),
        memory_in_first_batch=run.most_memory(*times[0]),
        memory_in_last_batch=run.most_memory(*times[-1]),
        requests_a_migration=requests / len(courses),
        lines=len(run.stdout) + len(run.stderr),
        lines_of_progress=len(run.stderr),
    )


def _maintain(kubeconfig: Path, nodes: list[str], folder: Path, options: argparse.Namespace) -> Played:
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
    return _play(folder, "maintain", [{"import_playbook": "virtops.kubevirt.rolling_maintenance"}], variables)


def _cost_of_a_task(kubeconfig: Path, node: str, folder: Path) -> float:
    """What node_drain takes of the processor before it begins: of a node that is empty, in check mode."""
    task = {DRAIN: {"kubeconfig": str(kubeconfig), "name": node, "owner": "bench", "cordon": True}}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task] * REPETITIONS}
    return float(min(entry["cpu"] for entry in _play(folder, "drain", [play], {}, "--check").drains))


def _play(folder: Path, name: str, plays: list[Object], variables: dict[str, Any], *words: str) -> Played:
    """Run a playbook, and end all if it fails."""
    playbook, times = folder / f"{name}.yml", folder / f"{name}-times"
    playbook.write_text(json.dumps(plays))
    settings = {
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"].split(os.pathsep)[0],
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("callback")),
        "ANSIBLE_CALLBACKS_ENABLED": "task_times",
        "VIRTOPS_TASK_TIMES": str(times),
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
    given = json.dumps({**variables, "ansible_python_interpreter": sys.executable})
    command = [str(Path(sys.executable).with_name("ansible-playbook")), str(playbook), "--extra-vars", given, *words]
    memory = []
    environment, piped = {**inherited, **settings}, subprocess.PIPE
    # With a terminal for its input a pause would ask there.
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=piped, stderr=piped, text=True
    ) as going:
        while True:
            try:
                stdout, stderr = going.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                memory.append((time.time(), _memory(going.pid)))
    if going.returncode:
        sys.exit(stdout + stderr)
    tasks = [json.loads(line) for line in times.read_text().splitlines()]
    return Played(stdout.splitlines(), stderr.splitlines(), tasks, memory)


def _memory(pid: int) -> float:
    """MiB that a process and its descendants have now."""
    size = 0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                size += process.memory_info().rss
    return size / MEBIBYTE


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _course(migration: Object) -> Course:
    stamps = {
        entry["phase"]: entry["phaseTransitionTimestamp"] for entry in migration["status"]["phaseTransitionTimestamps"]
    }
    moments = (migration["metadata"]["creationTimestamp"], stamps["Scheduling"], stamps["Succeeded"])
    created, started, ended = (datetime.fromisoformat(moment).timestamp() for moment in moments)
    return Course(migration["status"]["migrationState"]["sourceNode"], created, started, ended)


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
