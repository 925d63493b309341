# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents that come back from files and from the cluster: headers of snapshots, plans, what a drain remembers."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.plan_file import load_plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import find_header, load
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import memory
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.interrupting import Interrupting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import FailedAttempt
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster, Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import (
    decode,
    document,
    encode_all,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import plan_keeping, plan_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce, PlanRequest, mended
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.plan_text import plan_text

from fuzz import grounds
from fuzz.doors import planning
from fuzz.spoiling import encoded
from unit.plugins.module_utils._plan.plans import action, vm

# A document as a JSON value, and what is asked with it once it is spoilt.
Door = tuple[Callable[[], Any], Callable[[random.Random, Any, Path], Any]]

_BATCHES = (("kni-worker", "kni-worker3"), ("kni-worker2",))
_DRIFT = plan_keeping.Drift(mends=True, option="drift")
_OPTIONS = PlanOptions(policies=({"selector": {"app": "mssql2016"}, "policy": "stop"},))


def _header() -> Any:
    return json.loads(_content().splitlines()[0].rstrip(b",") + b"}")


def _ask_snapshot(dice: random.Random, given: Any, folder: Path) -> Any:
    """With a header that is not what was written, above a body that is."""
    path = folder / "snapshot.json"
    path.write_bytes(encoded(given).removesuffix(b"}") + b",\n" + _content().partition(b"\n")[2])
    find_header(path)
    load(str(path))
    return plan_task.make_or_take(planning(str(path), folder, batches=list(map(list, _BATCHES))))


def _ask_plan(dice: random.Random, given: Any, folder: Path) -> Any:
    """As one that is compared with, as one that was approved, and as one that stands where a new one goes."""
    path, snapshot = folder / "approved.json", folder / "snapshot.json"
    path.write_bytes(encoded(_signed(given)))
    path.chmod(0o600)
    snapshot.write_bytes(_content())
    use = dice.choice(("read", "compare", "plan", "path"))
    if use == "read":
        return plan_text(load_plan(str(path)))
    if use == "plan":
        return plan_task.make_or_take(planning(str(snapshot), folder, plan=str(path), path=None))
    changes = {use: str(path)}
    return plan_task.make_or_take(planning(str(snapshot), folder, nodes=["kni-worker"], **changes))


def _document() -> dict[str, Any]:
    return to_json(_plan())


def _signed(given: Any) -> Any:
    """With the digest of what it says by now: each change would be refused for that before anything else is asked."""
    if not isinstance(given, dict) or not isinstance(given.get("sha256"), str):
        return given
    rest = {name: value for name, value in given.items() if name != "sha256"}
    try:
        said = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return given
    return {**given, "sha256": hashlib.sha256(said.encode()).hexdigest()}


def _in_force() -> Any:
    return {**json.loads(PlanInForce.new(_plan()).encoded()), "plan": _document()}


def _ask_in_force(dice: random.Random, given: Any, folder: Path) -> Any:
    """What a run that goes on makes of it, and a drain that keeps what it has mended."""
    plan = _signed(given["plan"]) if isinstance(given, dict) and "plan" in given else None
    content = encoded({**given, "plan": plan} if plan is not None else given)
    mended(content, _plan(), "kni-worker")
    kept = PlanInForce.decoded(content)
    done = dice.choice(((), ("kni-worker",), ("kni-worker", "kni-worker3")))
    request = PlanRequest([list(batch) for batch in _BATCHES], _OPTIONS, "uid")
    with explained("plan the maintenance"):
        return plan_keeping.choose(kept, request, decode(_content()), done, _plan, _DRIFT)


def _remembered() -> Any:
    ending = Interrupting.begin(action(ActionKind.RESTART, vm("db"), "n1", "n2"))
    failed = memory.FailedMigrations("uid-web", 2, (FailedAttempt("uid-m", "too busy", "n2"),))
    return json.loads(memory.encode(memory.Remembered("n1", "epoch", (failed,), (ending,))))


def _ask_remembered(dice: random.Random, given: Any, folder: Path) -> Any:
    known = memory.decode(encoded(given))
    record = memory.recall(Record({}), known, 1_700_000_000.0)
    return [entry.result() for entry in record.entries.values()], asdict(known)


@cache
def _content() -> bytes:
    encoded = {name: encode_all(items) for name, items in grounds.recorded().items()}
    made = document(encoded, cluster=Cluster("uid", "v1.36.3", "v1.8.4"), taken_at="2026-11-22T02:00:00Z")
    return b"".join(made.chunks())


@cache
def _plan() -> Plan:
    snapshot: Snapshot = decode(_content())
    return plan_run(snapshot, "patch", _BATCHES, _OPTIONS)


DOORS: dict[str, Door] = {
    "header of a snapshot": (_header, _ask_snapshot),
    "plan": (_document, _ask_plan),
    "plan in force": (_in_force, _ask_in_force),
    "what a drain remembers": (_remembered, _ask_remembered),
}
