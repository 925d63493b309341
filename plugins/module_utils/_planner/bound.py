# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many migrations a run needs at least, whatever its order and its batches.

Whoever migrates does so once. Where all nodes that some VMs can ever go to are maintained, the first of these nodes
sends its VMs to others that come later, so that they migrate twice, unless they are stopped then or cannot leave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.arrays import BoolArray
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that VMs cannot leave, all of which are maintained. `vms`: of those, by node, as namespace/name."""

    vms: Mapping[str, frozenset[str]]

    def twice(self, unharmed: Collection[str]) -> int:
        """How many of these VMs migrate twice at least. unharmed: those that migrate and are never interrupted."""
        return min(len(here.intersection(unharmed)) for here in self.vms.values())


def regions(
    names: Sequence[str], reaches: Sequence[BoolArray], vms: Mapping[str, Collection[tuple[str, int]]]
) -> list[Region]:
    """names: of all nodes. reaches: the nodes that VMs of a kind can go to, whoever else is there.

    vms: of each node that is maintained, namespace/name and kind of its VMs.
    """
    groups = list(_connected(reaches))
    found = []
    for group in groups:
        nodes = [name for name, inside in zip(names, group, strict=True) if inside]
        if nodes and all(name in vms for name in nodes):
            inside = {kind for kind, reach in enumerate(reaches) if (reach & group).any()}
            here = {name: frozenset(key for key, kind in vms[name] if kind in inside) for name in nodes}
            found.append(Region(here))
    return found


def have_to_move(actions: Iterable[Action]) -> set[str]:
    """VMs, by title, that migrate and are on a node that is maintained when the run begins.

    They cannot leave unharmed in another way. Who only makes room for others might not have to, for all that is known.
    """
    known = list(actions)
    maintained, firsts = {action.node for action in known}, dict[str, Action]()
    for action in known:
        if action.kind is ActionKind.MIGRATE:
            firsts.setdefault(action.object.title, action)
    return {title for title, action in firsts.items() if (action.source or action.node) in maintained}


def bounded(plan: Plan, regions: Sequence[Region]) -> Plan:
    """The plan, with the bound and whether it is reached. regions: as they were before the run."""
    harmed = {action.object.title for action in plan.actions if action.kind in (ActionKind.STOP, ActionKind.RESTART)}
    kept = {entry.object.title for entry in plan.blocked}
    moving = have_to_move(plan.actions)
    unharmed = moving - harmed - kept
    least = len(moving) + sum(region.twice(unharmed) for region in regions)
    proof = "optimal" if least == plan.totals.migrations else "none"
    return replace(plan, totals=replace(plan.totals, lower_bound=least, proof=proof))


def _connected(reaches: Sequence[BoolArray]) -> Iterator[BoolArray]:
    """The nodes of all that share a node, directly or by others."""
    groups: list[BoolArray] = []
    for reach in reaches:
        joined = reach
        for group in groups:
            if (group & reach).any():
                joined = joined | group
        groups = [group for group in groups if not (group & joined).any()]
        groups.append(joined)
    return iter(groups)
