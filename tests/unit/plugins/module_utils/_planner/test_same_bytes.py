# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of one cluster every process makes the same plan, byte for byte, however it hashes texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from unit.plugins.module_utils._planner.tight import tight_cluster

PLANNING = """
import json, sys
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import from_plain
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import encode
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import BatchRules
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.whole_run import plan_whole_run

snapshot = from_plain(json.load(sys.stdin))
asked = {"policies": [{"policy": "stop"}], "allowed": frozenset({"force", "delete_emptydir_data"}), "room": 2}
options = PlanOptions(**asked, batching=BatchRules(size=2, apart=("topology.kubernetes.io/zone",)))
sys.stdout.buffer.write(encode(plan_whole_run(snapshot, "patch", ["n0", "n1", "n2"], options)))
"""


def planned(lists: str, hash_seed: int) -> bytes:
    """By a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PLANNING]
    return subprocess.run(command, input=lists.encode(), env=environment, capture_output=True, check=True).stdout


def test_the_same_cluster_has_the_same_plan_in_every_process() -> None:
    lists = json.dumps(tight_cluster(0, nodes=5, machines=10, pods=6))
    first, second = planned(lists, 1), planned(lists, 2)
    assert json.loads(first)["actions"]
    assert first == second
