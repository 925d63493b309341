# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan drains and whole runs over clusters that are more or less full, and print what that takes and what comes out.

    python -m benchmarks.planning [--nodes 16] [--vms 120] [--fill 0.7 0.85] [--batch 1 3] [--order given free]
                                  [--pools 1] [--seeds 3] [--room 0] [--check] [--module] [--approved] [--json FILE]

A line for each cluster, size of batches and order, with the seconds of the processor; first one node alone is drained,
from lists to plan. With --module also what module maintenance_plan takes for the same, from the snapshot's file to the
plan's and to its result, and with --approved what it takes to hold that plan against the cluster after some VMs have
moved: by the clock and of the processor. Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from benchmarks.filled import Full, Lists, Wanted, filled_cluster
from benchmarks.planned_by_module import ModuleFigures, by_module

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from checker.check import violations


@dataclass(frozen=True)
class Figures:
    """Of one plan. `order`: empty for a drain of one node. `stuck`: what cannot leave. `bound`: of migrations.

    making_room: how many of the migrations are for the sake of others. checking: the seconds to carry the plan out
    twice, None if that was not asked for.
    """

    fill: float
    seed: int
    vms: int
    order: str
    batch: int
    verdict: str
    stuck: int
    migrations: int
    making_room: int
    bound: int | None
    batches: int
    hours: float | None
    seconds: float
    checking: float | None = None

    def __str__(self) -> str:
        what = f"batches of {self.batch}, order {self.order}" if self.order else "one node"
        checked = "" if self.checking is None else f", checked in {self.checking:.2f} s"
        span = "" if self.hours is None else f"{self.hours:7.1f} h by the caps,"
        return (
            f"fill {self.fill}, seed {self.seed:2}, {self.vms} VMs, {what:27} {self.verdict:10} {self.stuck:3} stuck,"
            f" {self.migrations:5} moves (at least {self.bound}, {self.making_room} to make room),"
            f" {self.batches:4} batches,{span} {self.seconds:7.2f} s{checked}"
        )


def planned(
    lists: Lists,
    nodes: Sequence[str],
    fill: float,
    seed: int,
    order: str,
    batch: int,
    room: int = 0,
    check: bool = False,
) -> Figures:
    begun = time.process_time()
    snapshot = from_plain(lists)
    if order:
        options = PlanOptions(batching=BatchRules(batch, free=order == "free"), room=room)
        plan = plan_whole_run(snapshot, "benchmark", nodes, options)
    else:
        plan = plan_run(snapshot, "benchmark", [nodes[:1]], PlanOptions())
    spent = time.process_time() - begun
    checking = _checked(lists, plan) if check else None
    span, totals = plan.totals.seconds, plan.totals
    return Figures(
        fill=fill,
        seed=seed,
        vms=len(lists["vmis"]),
        order=order,
        batch=batch,
        verdict=plan.verdict.value,
        stuck=len(plan.blocked),
        migrations=totals.migrations,
        making_room=sum(action.makes_room for action in plan.actions),
        bound=totals.lower_bound,
        batches=len(plan.batches),
        hours=None if span is None else round(span / 3600, 2),
        seconds=round(spent, 2),
        checking=checking,
    )


def _checked(lists: Lists, plan: Plan) -> float:
    """The seconds of the processor. A plan that is wrong is none to measure."""
    begun = time.process_time()
    found = violations(lists, plan)
    if found:
        raise SystemExit(f"the plan is wrong: {found[0].sentence}")
    return round(time.process_time() - begun, 2)


def all_planned(given: argparse.Namespace) -> Iterator[Figures | ModuleFigures]:
    for fill, seed in product(given.fill, range(given.seeds)):
        try:
            lists = filled_cluster(Wanted(given.nodes, given.vms, fill, pools=given.pools, seed=seed))
        except Full as reason:
            print(f"fill {fill}, seed {seed}: left out, as {reason}")
            continue
        nodes = [str(node["metadata"]["name"]) for node in lists["nodes"]]
        yield planned(lists, nodes, fill, seed, "", 1)
        for batch, order in product(given.batch, given.order):
            yield planned(lists, nodes, fill, seed, order, batch, given.room, given.check)
            for approved in [False] * given.module + [True] * given.approved:
                yield by_module(lists, nodes, order, batch, given.room, approved=approved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--vms", type=int, default=120)
    parser.add_argument("--fill", type=float, nargs="+", default=[0.7, 0.85])
    parser.add_argument("--pools", type=int, default=1, help="reserved groups of nodes")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--order", choices=("given", "free"), nargs="+", default=["given", "free"])
    parser.add_argument("--room", type=int, default=0, help="how many VMs may make room for others")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="also measure the check of each plan")
    parser.add_argument("--module", action="store_true", help="also measure the whole module for each plan")
    parser.add_argument("--approved", action="store_true", help="also measure the module with that plan approved")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    found = []
    for figures in all_planned(given):
        found.append(figures)
        print(figures, flush=True)
    verdicts = Counter(
        (figures.order, figures.verdict) for figures in found if isinstance(figures, Figures) and figures.order
    )
    print(*(f"order {order}: {count} {verdict}" for (order, verdict), count in sorted(verdicts.items())), sep="\n")
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB of memory")
    if given.json:
        given.json.write_text(json.dumps([asdict(figures) for figures in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
