# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out plans of drains on a cluster, and note what goes otherwise than foretold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import groupby

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import (
    DrainPlan,
    Outcome,
    PlannedMove,
    PodFate,
    PodOutcome,
    Policy,
    StuckMachine,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules

from integration.clusters import (
    KUBEVIRT,
    MIGRATIONS,
    VMIS,
    cordoned,
    evict,
    is_tainted,
    launchers,
    let_time_out,
    migrate,
    scheduling_message,
    wait_for_phase,
)
from testbed.api import Api, ApiError, Object, resource_path
from testbed.waiting import wait_for

TIMEOUT = 60.0
_MOST_PLANS = 10


@dataclass
class Tally:
    """`plans`: how many it took, as the scheduler chose another of several equally good nodes.

    `wrong`: what was said beforehand and what happened.
    """

    plans: int = 0
    moved: int = 0
    evicted: int = 0
    shut_down: int = 0
    refused: int = 0
    blocked: int = 0
    wrong: list[str] = field(default_factory=list)


def read(api: Api) -> dict[str, list[Object]]:
    return {kind.name: [item for item in api.items(kind.path) if kind.keep(item)] for kind in KINDS}


def projected(lists: Mapping[str, list[Object]]) -> dict[str, list[Object]]:
    """What a snapshot keeps of them."""
    return {kind.name: [kind.project(item) for item in lists[kind.name]] for kind in KINDS}


@contextmanager
def out_of_service(api: Api, nodes: Sequence[str]) -> Iterator[None]:
    """The nodes cordoned, and tainted as the node controller then does."""
    with ExitStack() as stack:
        for node in nodes:
            stack.enter_context(cordoned(api, node))
        for node in nodes:
            wait_for(f"the taint of {node}", partial(is_tainted, api, node), TIMEOUT)
        yield


def drain(api: Api, nodes: Sequence[str], tally: Tally, policies: Sequence[Mapping[str, object]] = ()) -> DrainPlan:
    """Plan and carry out, again from the start after a choice of the scheduler that was open; the last plan."""
    for _number in range(_MOST_PLANS):
        tally.plans += 1
        lists, rules = read(api), compile_rules(policies)
        plan = plan_drain(lists, nodes, policies=rules)
        _expect(tally, plan_drain(projected(lists), nodes, policies=rules) == plan, "a snapshot says otherwise")
        if _carry_out(api, plan, tally):
            return plan
    raise AssertionError(f"{_MOST_PLANS} plans were not enough")


def try_the_stuck(api: Api, plan: DrainPlan, tally: Tally) -> None:
    """Those that the plan says cannot be migrated, by migrations that are not pinned."""
    stuck = [machine for machine in plan.stuck if machine.outcome is Outcome.STAYS]
    for machine in stuck:
        vmi = _vmi(api, machine)
        try:
            migration = migrate(api, vmi)
        except ApiError as error:
            tally.blocked += 1
            _expect(tally, bool(machine.blockers), f"{machine}: refused with {error}")
            continue
        said = scheduling_message(api, vmi)
        tally.refused += 1
        _expect(tally, not machine.blockers and said == machine.message, f"{machine}: was told {said}")
        let_time_out(api, migration)
        # Its target pod would count for the next one.
        wait_for(f"the end of the target pod of {machine.name}", partial(_alone, api, vmi), TIMEOUT)


def _carry_out(api: Api, plan: DrainPlan, tally: Tally) -> bool:
    """Wave by wave, until the scheduler chooses otherwise; whether it never did."""
    items: list[tuple[int, PlannedMove | PodFate | StuckMachine]] = [
        *((move.wave, move) for move in plan.moves),
        *((pod.wave, pod) for pod in plan.pods if pod.wave is not None),
        *((machine.wave, machine) for machine in plan.stuck if machine.wave is not None),
    ]
    for _wave, group in groupby(sorted(items, key=lambda item: item[0]), key=lambda item: item[0]):
        inside = [item for _number, item in group]
        # One choice that was open decides the next ones: after the first that was made otherwise the plan says nothing.
        if not all(_evict(api, pod, tally) for pod in inside if isinstance(pod, PodFate)):
            return False
        if not all(_shut_down(api, machine, tally) for machine in inside if isinstance(machine, StuckMachine)):
            return False  # what migrates with them may have no room any more
        _migrate(api, [move for move in inside if isinstance(move, PlannedMove)], tally)
    return True


def _migrate(api: Api, moves: Sequence[PlannedMove], tally: Tally) -> None:
    """All at once, and wait until they have ended and their source pods are gone."""
    begun = [(move, migrate_pinned(api, move)) for move in moves]
    for move, migration in begun:
        wait_for_phase(api, migration, "Succeeded")
        vmi = _vmi(api, move)
        tally.moved += 1
        _expect(tally, vmi["status"]["nodeName"] == move.target_node, f"{move}: is on {vmi['status']['nodeName']}")
        wait_for(f"the end of the source pod of {move.name}", partial(_alone, api, vmi), TIMEOUT)


def migrate_pinned(api: Api, move: PlannedMove) -> Object:
    return api.create(
        resource_path(KUBEVIRT, MIGRATIONS, move.namespace),
        {
            "apiVersion": KUBEVIRT,
            "kind": "VirtualMachineInstanceMigration",
            "metadata": {"name": f"{move.name}-{uuid.uuid4().hex[:8]}", "namespace": move.namespace},
            "spec": {"vmiName": move.name, "addedNodeSelector": dict(move.node_selector)},
        },
    )


def _evict(api: Api, fate: PodFate, tally: Tally) -> bool:
    """Evict a pod and wait for its replacement's node; whether that is the one that the plan goes on with."""
    pod = api.get(resource_path("v1", "pods", fate.namespace, fate.name))
    before = {sibling["metadata"]["uid"] for sibling in _siblings(api, pod)}
    wait_for(f"the eviction of {fate.name}", lambda: _evicted(api, pod), TIMEOUT)
    tally.evicted += 1
    if fate.outcome is PodOutcome.ENDS:
        return True
    found: list[Object] = []

    def decided() -> bool:
        found[:] = [new for new in _siblings(api, pod) if new["metadata"]["uid"] not in before]
        if fate.outcome is PodOutcome.WAITS:
            return bool(found) and _refused(found[0])
        return bool(found) and bool(found[0]["spec"].get("nodeName"))

    wait_for(f"a decision on the replacement of {fate}", decided, TIMEOUT)
    node = found[0]["spec"].get("nodeName")
    _expect(tally, node in (fate.choices or (None,)), f"{fate}: the replacement is on {node}")
    return bool(node == fate.target_node)


def _evicted(api: Api, pod: Object) -> bool:
    """A disruption budget may forbid it for a while."""
    try:
        evict(api, pod)
    except ApiError as error:
        if error.status != HTTPStatus.TOO_MANY_REQUESTS:
            raise
        return False
    return True


def _shut_down(api: Api, machine: StuckMachine, tally: Tally) -> bool:
    """End a VM, and wait for the node of what its owner starts; whether that is the one that the plan goes on with."""
    vmi = _vmi(api, machine)
    (owner,) = vmi["metadata"]["ownerReferences"]
    before = {other["metadata"]["uid"] for other in _owned(api, machine.namespace, owner["uid"])}
    path = resource_path(KUBEVIRT, VMIS, machine.namespace, machine.name)
    if machine.policy is Policy.STOP and owner["kind"] == "VirtualMachine":
        of_vm = resource_path(KUBEVIRT, "virtualmachines", machine.namespace, owner["name"])
        api.patch(of_vm, {"spec": {"runStrategy": "Halted"}})
    else:
        api.delete(path)
    tally.shut_down += 1
    wait_for(f"the end of {machine.name}", lambda: _uid(api, path) != vmi["metadata"]["uid"], TIMEOUT)
    if machine.outcome is Outcome.STOPS:
        return True
    node: list[str] = []

    def placed() -> bool:
        new = [
            other for other in _owned(api, machine.namespace, owner["uid"]) if other["metadata"]["uid"] not in before
        ]
        node[:] = [other["status"]["nodeName"] for other in new if other["status"].get("nodeName")]
        return bool(node)

    wait_for(f"the next start of {machine.name}", placed, TIMEOUT)
    _expect(tally, node[0] in machine.choices, f"{machine}: starts on {node[0]}")
    return node[0] == machine.target_node


def _owned(api: Api, namespace: str, owner: str) -> list[Object]:
    machines = api.items(resource_path(KUBEVIRT, VMIS, namespace))
    return [vmi for vmi in machines if owner in {entry["uid"] for entry in vmi["metadata"].get("ownerReferences", [])}]


def _uid(api: Api, path: str) -> str:
    """Empty if there is no such object."""
    try:
        return str(api.get(path)["metadata"]["uid"])
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return ""
        raise


def _siblings(api: Api, pod: Object) -> list[Object]:
    """The pods of the same controller, itself among them."""
    owner = next(entry["uid"] for entry in pod["metadata"]["ownerReferences"])
    pods = api.items(resource_path("v1", "pods", pod["metadata"]["namespace"]))
    return [
        other for other in pods if owner in {entry["uid"] for entry in other["metadata"].get("ownerReferences", [])}
    ]


def _refused(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(entry["type"] == "PodScheduled" and entry["status"] == "False" for entry in conditions)


def _alone(api: Api, vmi: Object) -> bool:
    """Whether it has one pod that has not ended."""
    return len(launchers(api, vmi)) == 1


def _vmi(api: Api, item: PlannedMove | StuckMachine) -> Object:
    return api.get(resource_path(KUBEVIRT, VMIS, item.namespace, item.name))


def _expect(tally: Tally, true: bool, otherwise: str) -> None:
    if not true:
        tally.wrong.append(otherwise)
