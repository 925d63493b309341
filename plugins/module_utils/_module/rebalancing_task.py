# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rebalance_plan is asked for, and the plan that it answers with."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import plan_file, snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import require_same
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import same_meaning, to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.rebalance import plan_rebalance
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import moves_text

_PAGE_SIZE = 500


def spec() -> ArgumentSpec:
    return {
        **arguments.connection(),
        "snapshot": {"type": "path"},
        "max_moves": {"type": "int", "default": 20},
        "run": {"type": "str", "default": ""},
        "path": {"type": "path"},
        "document": {"type": "bool", "default": False},
        "cluster_uid": {"type": "str"},
    }


def find_moves(module: Module) -> JsonObject:
    """The work of rebalance_plan. Raises InvalidRequest, Failure, ExpectedError."""
    params = module.params
    arguments.require_positive(params, "max_moves", "request_timeout")
    if plan_file.is_same_file(params["path"], params["snapshot"]):
        lost = "path is the file of snapshot, which would be lost"
        raise InvalidRequest("read the options of the task", [lost], "Nothing was written.")
    path = Path(params["path"]) if params["path"] else None
    there = None
    if path is not None:
        plan_file.check_writable(path)
        there = plan_file.find_plan(path)
    snapshot = _read_cluster(module)
    with explained("plan moves"):
        found = plan_rebalance(snapshot, params["run"], max_moves=params["max_moves"])
    plan = there if there is not None and same_meaning(found.plan, there) else found.plan
    lines = moves_text(plan, found.message)
    changed = path is not None and _write(module, path, plan, there, lines)
    document = to_json(plan)
    result: JsonObject = {
        "changed": changed,
        **found.to_json(),
        "lines": lines,
        "sha256": document["sha256"],
        "totals": document["totals"],
        "plan_path": str(path.absolute()) if path is not None else "",
    }
    return {**result, **({"document": document} if params["document"] else {})}


def _read_cluster(module: Module) -> Snapshot:
    """From the snapshot that is given, else from the cluster. Raises SnapshotError, Failure."""
    source, wanted = module.params["snapshot"], module.params["cluster_uid"]
    if source:
        snapshot, where = snapshot_file.load(Path(source)), source
    else:
        client = connect(module)
        document = take(client, _PAGE_SIZE)
        snapshot, where = document.decoded(*document.lists), client.server
    if wanted:
        require_same(snapshot.header.cluster.uid if snapshot.header else "unknown", wanted, where)
    return snapshot


def _write(module: Module, path: Path, plan: Plan, there: Plan | None, lines: list[str]) -> bool:
    """Whether the file was, or would be, changed."""
    changed = plan != there or not private_file.has_mode(path)
    if not module.check_mode:
        if changed:
            plan_file.write(path, plan)
        plan_file.write_text(path, plan, lines)
    return changed
