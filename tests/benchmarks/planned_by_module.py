# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module maintenance_plan takes as a whole, in a process of its own, from a snapshot's file to the result."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.filled import Lists
from benchmarks.played import used

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import write
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import document, encode_all

RUN = "benchmark"
# Of the applications with several VMs, every how many-th has had two of them exchanged since a plan was approved.
EVERY = 20
_CLUSTER = Cluster("uid-of-cluster", "v1.36.3", "v1.8.4")
_PROGRAM = """
import json, sys
from ansible.module_utils.testing import patch_module_args
from ansible_collections.virtops.kubevirt.plugins.modules import maintenance_plan
with patch_module_args(json.load(sys.stdin)):
    maintenance_plan.main()
"""


@dataclass(frozen=True)
class ModuleFigures:
    """Of one task, in seconds. differences: what was mended of an approved plan. size: of the plan's file, in bytes."""

    what: str
    verdict: str
    migrations: int
    batches: int
    differences: int
    size: int
    wall: float
    cpu: float

    def __str__(self) -> str:
        return (
            f"    {self.what}: {self.verdict}, {self.migrations} migrations, {self.batches} batches,"
            f" {self.differences} differences, {self.size / 2**20:.1f} MiB, {self.wall:.2f} s, cpu {self.cpu:.2f} s"
        )


def exchanged(lists: Lists) -> Lists:
    """The same cluster after two VMs of some applications have changed their places, which all their rules allow."""
    found = copy.deepcopy(lists)
    alike: defaultdict[str, list[int]] = defaultdict(list)
    for number, vmi in enumerate(found["vmis"]):
        alike[vmi["metadata"]["labels"]["app"]].append(number)
    for first, *others in [numbers for numbers in alike.values() if len(numbers) > 1][::EVERY]:
        _exchange([found["vmis"][number]["status"] for number in (first, others[-1])])
        _exchange([found["pods"][number]["spec"] for number in (first, others[-1])])
    return found


def _exchange(pair: Sequence[dict[str, Any]]) -> None:
    one, other = pair
    one["nodeName"], other["nodeName"] = other["nodeName"], one["nodeName"]


def by_module(
    lists: Lists, nodes: Sequence[str], order: str, batch: int, room: int, *, approved: bool
) -> ModuleFigures:
    """Of a new plan, or of the review of an approved one on the cluster after some VMs have moved."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan, snapshot = folder / "plan.json", folder / "snapshot.json"
        wanted = {"nodes": list(nodes), "batch": str(batch), "order": order, "room": room, "path": str(plan)}
        _write(snapshot, lists)
        result, wall, cpu = _task({"snapshot": str(snapshot), "run": RUN, **wanted})
        if approved:
            _write(snapshot, exchanged(lists))
            result, wall, cpu = _task({"snapshot": str(snapshot), "run": RUN, "plan": str(plan)})
        return ModuleFigures(
            what="an approved plan by the module" if approved else "by the module",
            verdict=result["verdict"],
            migrations=result["totals"]["migrations"],
            batches=len(result["batches"]),
            differences=len(result["differences"]),
            size=plan.stat().st_size,
            wall=round(wall, 2),
            cpu=round(cpu, 2),
        )


def _write(path: Path, lists: Lists) -> None:
    encoded = {name: encode_all(items) for name, items in lists.items()}
    write(path, document(encoded, cluster=_CLUSTER, taken_at="2026-01-01T00:00:00Z"))


def _task(arguments: dict[str, Any]) -> tuple[dict[str, Any], float, float]:
    """The result of the module, and its seconds by the clock and of the processor. It has to succeed."""
    begun, before = time.monotonic(), used()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], input=json.dumps(arguments), capture_output=True, text=True, check=False
    )
    wall, cpu = time.monotonic() - begun, used() - before
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result, wall, cpu
