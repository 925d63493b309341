# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who makes and mends the plans of processes: the model's own simple planner, or that of the product.

The product's is asked as `node_drain` asks it: for the plan of a run, that is held against a fresh look by each drain
that begins, or for one of its own, and to mend what is left when something does not come about.

Three things are otherwise than there. A drain begins also where something lasting stands against its plan, as more
happens then. Disruption budgets are not told to the planner. And no run begins anew by `review` of its whole plan: of
that tests/unit/plugins/module_utils/_planner/test_in_force.py and test_review.py tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import draining
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_planning
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan, PlannedFrom
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import with_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.plan_options import PlanOptions
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.run_plan import plan_run

from simulation import listing, planner
from simulation.world import RUN, World


@dataclass(frozen=True, slots=True)
class Mending:
    """What a drain knows when its plan is mended: as it says to `Replan`. node: the one that it empties."""

    drain: NodeDrain
    failures: Mapping[str, Collection[str]]
    hopeless: Collection[str]
    ended: Collection[str]
    replaced: Collection[str]
    first: Collection[str] | None

    @property
    def node(self) -> str:
        return self.drain.execution.node


class Planning(Protocol):
    """batch: the nodes of one that are drained together, each by a process of its own.

    spares_who_returns: whether pods stay that would come back at once, as they tolerate the cordon.
    """

    spares_who_returns: ClassVar[bool]

    def made(self, world: World, batch: tuple[str, ...]) -> Plan:
        """By which a batch begins."""

    def own(self, world: World, batch: tuple[str, ...]) -> Plan:
        """Of a drain that was given none."""

    def resumed(self, world: World, batch: tuple[str, ...], node: str, plan: Plan, *, is_over: bool) -> Plan:
        """By which a drain of a node begins after one that went by a plan, and has ended or died."""

    def mended(self, world: World, batch: tuple[str, ...], plan: Plan, mending: Mending) -> Plan:
        """What is left of a plan."""


class ByModel:
    """replaced: whoever has come in the place of another is planned for in any case."""

    spares_who_returns: ClassVar[bool] = False

    def made(self, world: World, batch: tuple[str, ...]) -> Plan:
        return planner.plan(world, batch)

    own = made

    def resumed(self, world: World, batch: tuple[str, ...], node: str, plan: Plan, *, is_over: bool) -> Plan:
        return planner.plan(world, batch, before=plan) if is_over else plan

    def mended(self, world: World, batch: tuple[str, ...], plan: Plan, mending: Mending) -> Plan:
        record, here = mending.drain.record, mending.drain.here
        returned = draining.returned(plan, record, here)
        return planner.plan(
            world,
            batch,
            before=plan,
            staying=frozenset(world.pods) - {pod.uid for pod in here.pods},
            failures=mending.failures,
            hopeless=mending.hopeless,
            ended=[name for name in mending.ended if record.entries[name].uid not in returned],
        )


@dataclass(frozen=True, slots=True)
class ByProduct:
    """batches: of the run."""

    batches: Sequence[Sequence[str]]
    spares_who_returns: ClassVar[bool] = True

    def made(self, world: World, batch: tuple[str, ...]) -> Plan:
        """The first time the plan of the run, which is in force from then on."""
        snapshot = listing.snapshot(world)
        if world.in_force is None:
            world.in_force = plan_run(snapshot, RUN, self.batches, _OPTIONS)
            return _from(world, of_batch(world.in_force, batch[0]))
        return self.resumed(world, batch, batch[0], world.in_force, is_over=False)

    def own(self, world: World, batch: tuple[str, ...]) -> Plan:
        (node,) = batch
        return _from(world, of_batch(plan_run(listing.snapshot(world), "", [batch], _OPTIONS), node))

    def resumed(self, world: World, batch: tuple[str, ...], node: str, plan: Plan, *, is_over: bool) -> Plan:
        """As for any drain that begins, the plan in force counts, and is held against a fresh look."""
        given = world.in_force
        if given is None:
            return self.own(world, batch)
        found, changes = drain_planning.held_against(_NOBODY, given, node, listing.snapshot(world), may_differ=True)
        if changes:
            world.in_force = with_node(given, found, node)
        return _from(world, found)

    def mended(self, world: World, batch: tuple[str, ...], plan: Plan, mending: Mending) -> Plan:
        failures = {name: tuple(nodes) for name, nodes in mending.failures.items()}
        node = mending.node
        found = drain_planning.mended_plan(
            listing.snapshot(world),
            plan,
            node,
            failures,
            mending.hopeless,
            mending.ended,
            mending.replaced,
            mending.first,
        )
        if plan.run and world.in_force is not None and found.of_node(node) != plan.of_node(node):
            world.in_force = with_node(world.in_force, found, node)
        return _from(world, found)


# One VM may make room for others.
_OPTIONS = PlanOptions(
    policies=[{"selector": {listing.POLICY: policy}, "policy": policy} for policy in ("stop", "restart")], room=1
)
# Whom a plan that may not differ would name.
_NOBODY: Any = None


def _from(world: World, plan: Plan) -> Plan:
    """A plan that has just been made or mended, with what the model was like then."""
    return replace(plan, snapshot=PlannedFrom(world.snapshot(), ""))
