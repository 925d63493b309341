# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters whose batches, and their order, the planner chooses, held against the checker.

    python -m unit.checker.free_orders --seed 7 --clusters 2000

Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules, PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

from unit.checker import clusters
from unit.plugins.module_utils._planner.scene import Lists
from unit.plugins.module_utils._planner.tight import tight_cluster


def planned(seed: int) -> tuple[Lists, Plan]:
    (count, machines, pods), _batches = clusters.SHAPES[seed % 4]
    lists = tight_cluster(seed, nodes=count, machines=machines, pods=pods)
    dice = random.Random(seed)
    nodes = dice.sample([node["metadata"]["name"] for node in lists["nodes"]], dice.randint(1, count))
    rules = BatchRules(dice.choice((None, 1, 2, 3)), free=True)
    options = PlanOptions(policies=clusters.POLICIES[seed // 4 % 4], room=4 * (seed // 16 % 2), batching=rules)
    return lists, plan_whole_run(from_plain(lists), "patch", nodes, options)


def faults(seeds: Iterable[int]) -> Iterator[str]:
    """What is wrong with the plans of these clusters, each a line."""
    return clusters.faults(seeds, planned)


if __name__ == "__main__":
    sys.exit(clusters.search(__doc__, faults))
