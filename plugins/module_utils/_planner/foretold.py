# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and VMIs that a plan foretold, found by the names that they have got."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import of_a_machine, stays
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    VMI_REPLICA_SET,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import (
    ObjectReference,
    Plan,
    action_id,
    is_foretold,
    kin,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.actions import reference_of

# Kind, namespace, what their names have in common, and node.
_Kin = tuple[str, str, str, str]


def identified(plan: Plan, number: int, pods: Iterable[Object], vmis: Iterable[Object]) -> Plan:
    """The plan with what it foretold for a batch replaced by those of its kin that are on the same nodes.

    pods, vmis: on the nodes of the batch. Who is not found stays as it is.
    """
    of_batch = [action for action in plan.actions if action.batch == number]
    evictable, machines = list(_evictable(pods)), list(vmis)
    here = [*evictable, *_placed(machines)]
    titles = {(reference.kind, reference.title, node) for reference, node in here}
    foretold = [
        action
        for action in of_batch
        if is_foretold(action) and (action.object.kind, action.object.title, action.node) not in titles
    ]
    if not foretold:
        return plan
    planned = {(action.object.kind, action.object.title) for action in of_batch}
    there: defaultdict[_Kin, list[ObjectReference]] = defaultdict(list)
    renamed = [*evictable, *_placed(vmi for vmi in machines if _is_renamed(vmi))]
    for reference, node in sorted(renamed, key=lambda entry: entry[0].title, reverse=True):
        if (reference.kind, reference.title) not in planned:
            there[_kin(reference, node)].append(reference)
    names = {action.id: others.pop() for action in foretold if (others := there[_kin(action.object, action.node)])}
    ids = {action.id: action_id(number, action.kind, names[action.id]) for action in foretold if action.id in names}
    actions = (
        replace(
            action,
            id=ids.get(action.id, action.id),
            object=names.get(action.id, action.object),
            after=tuple(ids.get(name, name) for name in action.after),
        )
        if ids
        else action
        for action in plan.actions
    )
    return replace(plan, actions=tuple(actions))


def _evictable(pods: Iterable[Object]) -> Iterator[tuple[ObjectReference, str]]:
    for pod in pods:
        if not stays(pod) and not of_a_machine(pod):
            yield reference_of("Pod", pod), pod["spec"]["nodeName"]


def _placed(vmis: Iterable[Object]) -> Iterator[tuple[ObjectReference, str]]:
    for vmi in vmis:
        yield reference_of(VMI, vmi), vmi["status"]["nodeName"]


def _is_renamed(vmi: Object) -> bool:
    """Whether it has another name than its predecessor: all others are found by that, or are none of the foretold."""
    owner = controller(vmi)
    return owner is not None and owner["kind"] == VMI_REPLICA_SET


def _kin(reference: ObjectReference, node: str) -> _Kin:
    return reference.kind, reference.namespace, kin(reference), node
