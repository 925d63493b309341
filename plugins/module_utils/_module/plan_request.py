# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What maintenance_plan is to plan, by its options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import explained
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import (
    AUTO,
    NEEDS,
    BatchRules,
    PlanOptions,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import unblocked

ATTEMPT = "plan the maintenance"
# Looking for a name that is meant costs time in proportion to all there are.
_MOST_GUESSES = 10
# So often a part of a run is planned that cannot be carried out as a whole.
_MOST_ROUNDS = 5


def wanted(
    params: Mapping[str, Any], snapshot: Snapshot, done: frozenset[str], away: Collection[str] = ()
) -> PlanRequest:
    """For all nodes but those that are done. away: nodes that may be named all the same. Raises InvalidRequest."""
    given = params["batches"] if params["batches"] is not None else [[name] for name in params["nodes"]]
    name = "nodes" if params["batches"] is None else "batches"
    problems = list(_problems(params, given, snapshot, done, away)) if given else [f"{name} names no node"]
    if problems:
        raise InvalidRequest(ATTEMPT, problems, "Correct the names, or take a new snapshot.")
    left = [[name for name in batch if name not in done] for batch in given]
    with explained(ATTEMPT):
        options = options_of(params, len(done.union(named_nodes(params))))
    uid = snapshot.header.cluster.uid if snapshot.header else ""
    return PlanRequest([batch for batch in left if batch], options, uid)


def named_nodes(params: Mapping[str, Any]) -> list[str]:
    """The nodes of the task."""
    return params["nodes"] or [name for batch in params["batches"] or () for name in batch]


def options_of(params: Mapping[str, Any], run: int) -> PlanOptions:
    """run: how many nodes that has, with those that are done. Raises InvalidRequest."""
    policies = [{key: value for key, value in rule.items() if value is not None} for rule in params["policies"]]
    allowed = [need for need in NEEDS if params[need]]
    named = {name: params[name] for name in ("avoid", "targets", "profile", "room", "reserve")}
    batching = _batching(params, run).to_json() if params["batches"] is None else None
    return PlanOptions.of({**named, "policies": policies, "allowed": allowed, "batching": batching})


def _batching(params: Mapping[str, Any], run: int) -> BatchRules:
    """Raises InvalidRequest."""
    wanted = params["batch_constraints"] or {}
    return BatchRules(
        size=_size_of_batch(params["batch"], run),
        free=params["order"] == "free",
        apart=tuple(wanted.get("apart") or ()),
        together=wanted.get("together") or "",
        first=tuple(wanted.get("first") or ()),
        last=tuple(wanted.get("last") or ()),
    )


def possible(params: Mapping[str, Any], plan: Plan, snapshot: Snapshot, done: frozenset[str]) -> list[str]:
    """Nodes that could be maintained without those that cannot be emptied; none where none are found.

    They are planned anew, as the task would with them alone, in their order in it: who stays may be in the way of
    others, and in batches of others nobody else leaves what they need. Each round costs a plan. Raises as `plan_run`
    does, but where the task would be refused with them alone there are none.
    """
    names = unblocked(plan, done)
    everybody = [name for nodes in plan.batches for name in nodes if name not in done]
    if len(names) == len(everybody):
        return names
    if not params["plan"]:
        places = {name: place for place, name in enumerate(named_nodes(params))}
        names.sort(key=lambda name: places.get(name, len(places)))
    for _round in range(_MOST_ROUNDS):
        if not names:
            break
        try:
            made = _with_nodes(params, plan, names, done).made(snapshot, plan.run)
        except InvalidRequest:
            break
        left = frozenset(unblocked(made))
        if left.issuperset(names):
            return names
        names = [name for name in names if name in left]
    return []


def _with_nodes(params: Mapping[str, Any], plan: Plan, names: Sequence[str], done: frozenset[str]) -> PlanRequest:
    """What the plan was wanted for, for these nodes alone, which are not done."""
    options, wanted = PlanOptions.of(plan.options), frozenset(names)
    batches = [kept for nodes in plan.batches if (kept := [name for name in nodes if name in wanted])]
    if (rules := options.batching) is not None:
        batches = [[name] for name in names]
        size = rules.size
        if not params["plan"] and params["batch"].strip().endswith("%"):
            size = _size_of_batch(params["batch"], len(done.union(names)))
        first, last = (tuple(name for name in ends if name in wanted) for ends in (rules.first, rules.last))
        fitting = replace(rules, size=size and min(size, len(names)), first=first, last=last)
        options = replace(options, batching=fitting)
    return PlanRequest(batches, options, plan.cluster.uid)


def unknown_labels(request: PlanRequest, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Constraints that constrain nothing, as no node of the run has their label: the suboption, and the label's key."""
    rules, names = request.options.batching, {name for nodes in request.batches for name in nodes}
    nodes = [node["metadata"] for name, node in snapshot.nodes.items() if name in names]
    labels = {key for metadata in nodes for key in metadata.get("labels") or ()}
    if rules is not None and nodes:
        wanted = [*(("apart", key) for key in rules.apart), *[("together", rules.together)] * bool(rules.together)]
        yield from (entry for entry in wanted if entry[1] not in labels)


def _problems(
    params: Mapping[str, Any],
    batches: Sequence[Sequence[Any]],
    snapshot: Snapshot,
    done: frozenset[str],
    away: Collection[str],
) -> Iterator[str]:
    """All that is wrong with the names in the task, in its order."""
    nodes, vmis = snapshot.nodes.keys() | away, frozenset(map(title, snapshot.lists["vmis"]))
    seen: set[str] = set()
    unknown: dict[tuple[str, str], None] = {}
    for number, batch in enumerate(batches, start=1):
        if not batch:
            yield f"batch {number} names no node"
        for name in batch:
            if not isinstance(name, str):
                yield f"batch {number} has {name!r}, which is no name"
            elif name in seen:
                yield f"node {name} is named twice"
            else:
                seen.add(name)
                if name not in nodes:
                    unknown["node", name] = None
    targets = {str(vmi): str(node) for vmi, node in params["targets"].items()}
    ends = _ends(params)
    for name in (*params["avoid"], *targets.values(), *ends["first"], *ends["last"]):
        if name not in nodes:
            unknown["node", name] = None
    yield from _misplaced(ends, nodes - seen - done)
    unknown |= dict.fromkeys(("VirtualMachineInstance", name) for name in targets if name not in vmis)
    known = {"node": nodes, "VirtualMachineInstance": vmis}
    for index, (kind, name) in enumerate(unknown):
        near = get_close_matches(name, sorted(known[kind]), n=1) if index < _MOST_GUESSES else []
        yield f"there is no {kind} {name}" + (f" (do you mean {near[0]}?)" if near else "")


def _size_of_batch(wanted: str, run: int) -> int | None:
    """How many of the nodes are out of service together at most; a share is rounded as Ansible's `serial` does.

    None: the planner is to say. run: how many nodes the run has, also those that are done and not named any more, so
    that a run that goes on may be asked for with the number that it began with. Raises InvalidRequest.
    """
    if wanted.strip() == AUTO:
        return None
    found = re.fullmatch(r"\s*([0-9]{1,9})(%?)\s*", wanted)
    number, is_share = (int(found[1]), bool(found[2])) if found else (0, False)
    problem = f"batch is {brief(wanted.strip())}"
    if is_share and number > 100:
        problem += ", but a run has no more than all of its nodes"
    elif number > max(run, 1) and not is_share:
        problem += f", but the run has {run} node{'' if run == 1 else 's'}"
    elif number > 0:
        return max(run * number // 100, 1) if is_share else number
    remedy = f"Give a number of nodes such as 2, a share of them such as 25%, or {AUTO}."
    raise InvalidRequest("read the options of the task", [problem], remedy)


def _ends(params: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The nodes that are to come first and last, by suboption."""
    wanted = params["batch_constraints"] or {}
    return {name: wanted.get(name) or () for name in ("first", "last")}


def _misplaced(ends: Mapping[str, Sequence[str]], strangers: Collection[str]) -> Iterator[str]:
    """strangers: nodes that the run does not maintain."""
    for option, names in ends.items():
        found = (name for name in names if name in strangers)
        yield from (f"batch_constraints.{option} has {name}, which is not to be maintained" for name in found)
    yield from (f"node {name} is to be first and last" for name in ends["first"] if name in ends["last"])
