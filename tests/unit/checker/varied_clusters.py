# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of generated clusters in which much else than rules and memory matters, held against the checker.

    python -m unit.checker.varied_clusters --seed 7 --clusters 2000

Run it with `tests/` and the collection's tree on PYTHONPATH.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import NEEDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from unit.checker import clusters
from unit.plugins.module_utils._planner.scene import Lists
from unit.plugins.module_utils._planner.varied import varied_cluster


def planned(seed: int) -> tuple[Lists, Plan]:
    (nodes, machines, pods), batches = clusters.SHAPES[seed % 4]
    lists = varied_cluster(seed, nodes=nodes, machines=machines, pods=pods + 2)
    dice = random.Random(seed)
    allowed = frozenset(dice.sample(sorted(NEEDS), dice.randint(0, len(NEEDS))))
    options = replace(clusters.options_of(seed), allowed=allowed)
    return lists, plan_run(from_plain(lists), "patch", batches, options)


def faults(seeds: Iterable[int]) -> Iterator[str]:
    """What is wrong with the plans of these clusters, each a line."""
    return clusters.faults(seeds, planned)


if __name__ == "__main__":
    sys.exit(clusters.search(__doc__, faults))
