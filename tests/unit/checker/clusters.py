# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check plans of small clusters that are nearly full: a fixed number in the tests, by this command as many as wanted.

    python -m unit.checker.clusters --seed 7 --clusters 2000

Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from checker.check import violations
from unit.plugins.module_utils._planner.scene import Lists
from unit.plugins.module_utils._planner.tight import tight_cluster

# Nodes, VMs and other pods of a cluster, and the batches that it is maintained in.
SHAPES: Sequence[tuple[tuple[int, int, int], Sequence[Sequence[str]]]] = (
    ((6, 16, 8), [["n0", "n1", "n2"]]),
    ((4, 7, 3), [["n0", "n1"], ["n2", "n3"]]),
    ((5, 10, 2), [["n0"], ["n1", "n2"], ["n3"], ["n4"]]),
    ((4, 8, 4), [["n0"], ["n1"]]),
)
POLICIES: Sequence[Sequence[Mapping[str, Any]]] = (
    (),
    ({"policy": "restart"},),
    ({"selector": {"app": "g0"}, "policy": "restart"}, {"selector": {"app": "g1"}, "policy": "stop"}),
    ({"policy": "stop"},),
)
LOTS = 2


def options_of(seed: int) -> PlanOptions:
    return PlanOptions(policies=POLICIES[seed // 4 % 4], room=4 * (seed // 16 % 2))


def planned(seed: int) -> tuple[Lists, Plan]:
    (nodes, machines, pods), batches = SHAPES[seed % 4]
    lists = tight_cluster(seed, nodes=nodes, machines=machines, pods=pods)
    return lists, plan_run(from_plain(lists), "patch", batches, options_of(seed))


def faults(seeds: Iterable[int], plan_of: Callable[[int], tuple[Lists, Plan]] = planned) -> Iterator[str]:
    """What is wrong with the plans of these clusters, each a line. plan_of: makes one, by its seed."""
    for seed in seeds:
        lists, plan = plan_of(seed)
        lots = [random.Random(lot).randrange for lot in range(LOTS)]
        for found in violations(lists, plan, lots):
            yield f"cluster {seed}, {found.fault.value}: {found.sentence}"


def search(about: str | None, found_in: Callable[[Iterable[int]], Iterator[str]]) -> int:
    """Of a program with this description: all that is found in the clusters that its arguments name, a line each."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    parser.add_argument("--clusters", type=int, default=2000)
    given = parser.parse_args()
    found = False
    for line in found_in(range(given.seed, given.seed + given.clusters)):
        found = True
        print(line, flush=True)
    return int(found)


if __name__ == "__main__":
    sys.exit(search(__doc__, faults))
