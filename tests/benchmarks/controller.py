# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what a rolling maintenance costs its controller, and how well it uses the migrations that KubeVirt allows.

    python -m benchmarks.controller [--testbed NAME] [--seconds 6] [--batch 3] [--machines 11] [--json FILE]

One batch of nodes with equally many VMs is maintained by the playbook, on a testbed of its own or on one that is up.
`bound`: what the migrations would take if KubeVirt's caps were always made full use of.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean

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
TIMEOUT = 300.0


@dataclass(frozen=True)
class Figures:
    """Times in seconds, `cpu` of the controller: user and system, all its processes.

    migration_seconds: of one, on average, without its wait in KubeVirt's queue. span: from the first migration's
    creation to the last one's end. lines: of stdout and stderr.
    """

    migrations: int
    migration_seconds: float
    span: float
    bound: float
    span_of_bound: float
    cpu_of_drains: float
    cpu: float
    wall_of_drains: float
    wall: float
    lines: int
    lines_of_progress: int


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    with _testbed(options.testbed) as bench, tempfile.TemporaryDirectory() as folder:
        nodes = [f"bench-{number}" for number in range(options.batch + 4)]
        with _crowded(bench, nodes, options) as namespace:
            figures = _measure(bench, namespace, nodes[: options.batch], Path(folder), options)
    for name, value in asdict(figures).items():
        print(f"{name:20} {value:10.2f}" if isinstance(value, float) else f"{name:20} {value:7}")
    if options.json:
        options.json.write_text(json.dumps(asdict(figures), indent=2) + "\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--testbed", metavar="NAME", help=f"one that is up with --time-scale {TIME_SCALE:g}")
    parser.add_argument("--seconds", type=float, default=6.0, help="that the copying of a VM takes")
    parser.add_argument("--batch", type=int, default=3, help="nodes, at a time")
    parser.add_argument("--machines", type=int, default=11, help="VMs on each of them")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


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
    """The namespace of VMs that run on the first nodes."""
    api, namespace = bench.api, bench.namespace("bench")
    for name in nodes:
        api.create("/api/v1/nodes", fake_node(name, memory="128Gi", labels=POOL, taints=[TAINT]))
    path = resource_path(KUBEVIRT, VMIS, namespace)
    try:
        wait_for("the nodes to report", lambda: all(_reports(api, name) for name in nodes), TIMEOUT)
        factor = options.seconds * TIME_SCALE * LINK / MEMORY
        bench.inject("slow-migration", "--factor", str(factor), "--selector", "app=bench")
        for number in range(options.batch * options.machines):
            api.create(path, _machine(namespace, f"vm-{number}", nodes[number % options.batch]))
        wait_for("the VMs to be migratable", lambda: all(map(_migratable, api.items(path))), TIMEOUT)
        yield namespace
    finally:
        bench.inject("clear")
        api.delete(path)
        wait_for("the end of the VMs", lambda: not api.items(path), TIMEOUT)
        bench.drop_namespace(namespace)
        for name in nodes:
            api.delete(resource_path("v1", "nodes", name=name))


def _measure(
    bench: RunningTestbed, namespace: str, nodes: list[str], folder: Path, options: argparse.Namespace
) -> Figures:
    times, begun, before = folder / "times", time.monotonic(), _used()
    done = _maintain(bench, nodes, folder, times)
    wall, cpu = time.monotonic() - begun, _used() - before
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    drains = [entry for entry in map(json.loads, times.read_text().splitlines()) if entry["action"] == DRAIN]
    courses = [_course(item) for item in bench.api.items(resource_path(KUBEVIRT, MIGRATIONS, namespace))]
    seconds = mean(end - start for _created, start, end in courses)
    span = max(end for _created, _start, end in courses) - min(created for created, _start, _end in courses)
    turns = max(math.ceil(len(courses) / PER_CLUSTER), math.ceil(options.machines / PER_NODE))
    return Figures(
        migrations=len(courses),
        migration_seconds=seconds,
        span=span,
        bound=turns * seconds,
        span_of_bound=span / (turns * seconds),
        cpu_of_drains=sum(entry["cpu"] for entry in drains),
        cpu=cpu,
        wall_of_drains=sum(entry["wall"] for entry in drains),
        wall=wall,
        lines=len(done.stdout.splitlines()) + len(done.stderr.splitlines()),
        lines_of_progress=len(done.stderr.splitlines()),
    )


def _maintain(bench: RunningTestbed, nodes: list[str], folder: Path, times: Path) -> subprocess.CompletedProcess[str]:
    tasks, playbook = folder / "tasks.yml", folder / "maintain.yml"
    tasks.write_text('[{"ansible.builtin.debug": {"msg": "empty"}}]')
    playbook.write_text('[{"import_playbook": "virtops.kubevirt.rolling_maintenance"}]')
    variables = {
        "plan_maintenance_run": "bench",
        "plan_maintenance_nodes": nodes,
        "plan_maintenance_batch": len(nodes),
        "rolling_maintenance_tasks": str(tasks),
        "rolling_maintenance_kubeconfig": str(bench.kubeconfig),
        "rolling_maintenance_rebalance": False,
        "ansible_python_interpreter": sys.executable,
    }
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
    program = Path(sys.executable).with_name("ansible-playbook")
    command = [str(program), str(playbook), "--extra-vars", json.dumps(variables)]
    return subprocess.run(command, env={**inherited, **settings}, capture_output=True, text=True, check=False)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _course(migration: Object) -> tuple[float, float, float]:
    """When it was created, when its turn came, and when it ended."""
    stamps = {
        entry["phase"]: entry["phaseTransitionTimestamp"] for entry in migration["status"]["phaseTransitionTimestamps"]
    }
    moments = (migration["metadata"]["creationTimestamp"], stamps["Scheduling"], stamps["Succeeded"])
    created, start, end = (datetime.fromisoformat(moment).timestamp() for moment in moments)
    return created, start, end


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
