# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty a node by a plan, and see that it is still empty right before its maintenance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.drain import NodeDrain
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.landings import LandingLook
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.observer import Observer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.plan_file import load_plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Means
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import (
    require_cluster,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.answers import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import Verbs
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.evacuations import take_over
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.held_nodes import HeldNodes
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import Landings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import EVICTED, GONE, Evicting
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.reducer import Execution
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.slots import MigrationCaps
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import nodes_done
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import label_value, unpinned_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (
    drain_arguments,
    drain_results,
    guard,
    libraries,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.drain_memory import DrainMemory
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.readiness_task import facts_before
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import of_batch

# So many seconds are waited in the end for pods in place of evicted ones to get their nodes. Who fitted nowhere as long
# as the old one was there is tried again by the scheduler after ten at most.
_LAND_WITHIN = 15.0


def drain(module: Module, client: Client) -> JsonObject:
    """Raises Failure, InvalidRequest, MissingLibrary, and Incomplete unless the node is, or would be, empty."""
    libraries.require("numpy", "to plan")
    params = module.params
    progress = Progress.of(params, f"node {params['name']}")
    hold = None if module.check_mode else guard.hold(client, params)
    # Check mode holds no run, and foretells what a drain of it would do.
    is_of_run = params["run"] if module.check_mode else hold
    store = RunStore(client, params["run"], params["lease_namespace"]) if is_of_run else None
    memory = DrainMemory(client, params, progress, store, hold)
    task = _Task(module, client, progress, memory, hold)
    task.require()
    plans = task.plans()
    if stuck := drain_results.lasting(plans.right):
        raise drain_results.blocked(client.server, params["name"], stuck)
    caps, before, landing = task.caps(plans.right), facts_before(client, task.name), task.landing(plans)
    try:
        epochs = task.take_nodes(plans.right)
        going = task.going(plans, memory.begin(epochs, task.run), caps)
    except Failure as error:
        if not task.nodes.have_changed:
            raise
        raise drain_results.not_begun(error) from error
    if plans.is_mended:
        memory.mended(plans.right)
    try:
        if module.check_mode:
            going.rehearse()
        else:
            going.run(params["wait_timeout"])
    except (Failure, InvalidRequest) as error:
        going.landings = _landings(landing, going)
        raise drain_results.broken_off(module, going, error, changed=task.has_changed) from error
    finally:
        memory.end(going.record, is_done=going.is_done)
    going.landings = _landings(landing, going)
    return {**drain_results.result(module, going, changed=task.has_changed), **before}


def _landings(look: LandingLook, going: NodeDrain) -> Landings:
    """A replacement is made when its pod begins to end: when the node is empty, all are about to have theirs."""
    evicted = [entry for entry in going.record.entries.values() if isinstance(entry, Evicting) and entry.expected_node]
    gone = {entry.uid: entry.expected_node for entry in evicted if entry.outcome in (EVICTED, GONE)}
    return look.landings(gone.keys(), gone.values(), _LAND_WITHIN if going.is_done else 0.0)


def verify(module: Module, client: Client) -> JsonObject:
    """See that the node is cordoned for the owner, and empty. Raises Failure, Incomplete."""
    params = module.params
    progress = Progress.of(params, f"node {params['name']}")
    task = _Task(module, client, progress, DrainMemory(client, params, progress), None)
    before = facts_before(client, params["name"])
    task.require()
    observer = Observer(client, [params["name"]], _run_label(params), params["unschedulable_timeout"])
    look = observer.first()
    task.require()  # as before the look: what was uncordoned meanwhile may not be empty any more
    return {**drain_results.verified(client.server, params["name"], look), **before}


@dataclass(frozen=True)
class _Plans:
    """Of the node's batch: `given`, as it was made, and `right`, as it is now. is_mended: whether these differ.

    missed: ids of evictions whose pods were not there any more.
    """

    given: Plan
    right: Plan
    is_mended: bool = False
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Task:
    """`hold`: of the run, None if there is none, or nothing is to be changed.

    taken_over: titles of VMIs whose evacuations it has withdrawn, by now. maybe_taken: as of `take_over`.
    """

    module: Module
    client: Client
    progress: Progress
    memory: DrainMemory
    hold: RunHold | None
    taken_over: list[str] = field(default_factory=list)
    maybe_taken: set[str] = field(default_factory=set)

    @property
    def params(self) -> Mapping[str, Any]:
        params: Mapping[str, Any] = self.module.params
        return params

    @property
    def name(self) -> str:
        return str(self.params["name"])

    @cached_property
    def nodes(self) -> HeldNodes:
        wanted = drain_arguments.request(self.params, dry_run=self.module.check_mode)
        return HeldNodes(self.client, wanted, self.hold)

    @property
    def has_changed(self) -> bool:
        """Or perhaps; beside what the drain itself does."""
        return self.nodes.have_changed or bool(self.taken_over or self.maybe_taken)

    @property
    def run(self) -> str:
        """The label on what is created."""
        return _run_label(self.params)

    def require(self) -> None:
        """See that the node is ours, if it is not to be taken. Raises Failure."""
        if self.params["state"] == "verified" or not self.params["cordon"]:
            self.nodes.require([self.name])

    def plans(self) -> _Plans:
        """Raises Failure, InvalidRequest."""
        given = self._given()
        if given is not None and self._is_fresh(given):
            plan = of_batch(given, self.name)
            return _Plans(plan, plan)
        # With numpy and the scheduler, which a drain that goes as planned does without.
        from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (  # noqa: PLC0415
            drain_planning,
        )

        if given is None:
            plan = drain_planning.own_plan(self.client, self.params)
            return _Plans(plan, plan)
        source = self.params["snapshot"]
        snapshot = snapshot_file.load(source) if source else drain_planning.fresh_snapshot(self.client)
        plan, changes = drain_planning.held_against(
            self.client, given, self.name, snapshot, may_differ=self._may_differ
        )
        for change in changes:
            self.progress.tell(f"the plan has changed: {change}")
        missed = drain_planning.missed(given, self.name, snapshot)
        return _Plans(of_batch(given, self.name), plan, bool(changes), missed)

    def _given(self) -> Plan | None:
        """The plan that was given, if it is one for this node in this cluster. Raises Failure, InvalidRequest."""
        if not self.params["plan"]:
            return None
        given = load_plan(self.params["plan"])
        if given.batch_of(self.name) is None:
            nodes = ", ".join(name for batch in given.batches for name in batch)
            raise InvalidRequest(
                f"drain node {self.name}",
                [f"the plan does not maintain it, but {nodes or 'no node, as by it things only move'}"],
                "Give a node of the plan, or make a plan with it; nothing was changed.",
            )
        run = self.params["run"]
        if given.run and run and given.run != run:
            raise InvalidRequest(
                f"drain node {self.name}",
                [f"the plan is of run {given.run}, and run is {run}"],
                "Give the plan of that run; nothing was changed.",
            )
        drain_arguments.require_agreement(self.params, self.module.given, given)
        if given.cluster.uid:
            require_cluster(self.client, given.cluster.uid)
        return given

    def take_nodes(self, plan: Plan) -> dict[str, str]:
        """By node what tells this maintenance of it from others. Raises Failure.

        All nodes of the batch are cordoned before anything leaves one of them, so that nothing comes to the others.
        """
        if self.params["cordon"]:
            return self.nodes.take(action.node for action in plan.actions if action.kind is ActionKind.CORDON)
        # The node, and those from which something has to leave before.
        return self.nodes.require(Execution(self.name, self.run).nodes(plan))

    def caps(self, plan: Plan) -> MigrationCaps:
        """KubeVirt's own, as they are now. Raises Failure, InvalidRequest if it cannot migrate as planned."""
        found = self.client.get(BY_NAME["kubevirts"].path, "read the configuration of KubeVirt")["items"]
        kubevirt = configuration({"kubevirts": found})
        migrates = any(action.kind is ActionKind.MIGRATE for action in plan.actions)
        if migrates and (why := unpinned_by(kubevirt.version)):
            raise InvalidRequest(f"drain node {self.name}", [why], "Upgrade KubeVirt first; nothing was changed.")
        migrations = kubevirt.migrations
        return MigrationCaps(migrations.parallel_per_cluster, migrations.parallel_outbound_per_node)

    def going(self, plans: _Plans, epochs: Mapping[str, str], caps: MigrationCaps) -> NodeDrain:
        params = self.params
        execution = Execution(self.name, self.run, epochs, caps)
        settings = VerbSettings(
            run=self.run,
            owner=params["owner"],
            grace_period=params["terminate_grace_period"],
            unschedulable_timeout=params["unschedulable_timeout"],
            dry_run=self.module.check_mode,
        )
        means = Means(
            looks=Observer(self.client, [self.name], self.run, params["unschedulable_timeout"]),
            verbs=Verbs(self.client, settings, self.client.guarded(lambda: self.nodes.require_all(()))),
            guard=self.nodes.require_all,
            teller=self.progress,
        )
        return NodeDrain(
            means,
            execution,
            plans.right,
            planned=plans.given,
            missed=plans.missed,
            replan=self._replan,
            memory=self.memory,
            retries=params["retries"],
            max_failed=params["max_failed_vms"],
            done=self._done(plans.right),
        )

    def landing(self, plans: _Plans) -> LandingLook:
        """Raises Failure."""
        both = () if self.module.check_mode else (plans.given, plans.right)
        actions = [action for plan in both for action in plan.of_node(self.name)]
        pods = (action.object for action in actions if action.kind is ActionKind.EVICT and action.target)
        return LandingLook(self.client, pods)

    @property
    def _may_differ(self) -> bool:
        return bool(self.params["drift"] == "repair")

    def _done(self, plan: Plan) -> int | None:
        """How many of the plan's nodes its run was done with when the batch began, by the snapshot of that moment.

        It stays so: the nodes of a batch are emptied before any of them is maintained.
        """
        path = snapshot_file.find_path(self.params["snapshot"])
        nodes = snapshot_file.find_nodes(path) if path and plan.run else None
        if nodes is None:
            return None
        return len(nodes_done(nodes, plan.run).intersection(name for batch in plan.batches for name in batch))

    def _is_fresh(self, given: Plan) -> bool:
        """Whether the plan was made from the very snapshot that it is to be held against.

        Of a batch that is not its first it takes for granted that those before came about, which this tells nothing of.
        """
        if given.batch_of(self.name) != 1:
            return False
        path = snapshot_file.find_path(self.params["snapshot"])
        header = snapshot_file.find_header(path) if path else None
        return header is not None and header.sha256 == given.snapshot.sha256

    @cached_property
    def _unchanged(self) -> Snapshot:
        """The whole cluster, in check mode, where nothing is done between two plans. Raises Failure."""
        from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (  # noqa: PLC0415
            drain_planning,
        )

        return drain_planning.fresh_snapshot(self.client)

    def _replan(
        self,
        plan: Plan,
        failures: Mapping[str, Collection[str]],
        hopeless: Collection[str],
        ended: Collection[str],
        replaced: Collection[str],
        first: Collection[str] | None,
    ) -> Plan:
        from ansible_collections.virtops.kubevirt.plugins.module_utils._module import (  # noqa: PLC0415
            drain_planning,
        )

        if self.params["evacuations"] == "take_over" and not self.module.check_mode:
            client = self.client.briefly(lambda: self.nodes.require_all([self.name]))
            for title in take_over(client, self.name, self.maybe_taken):
                self.taken_over.append(title)
                self.progress.tell(f"{title}: its evacuation by KubeVirt is taken over")
        failed = {name: tuple(nodes) for name, nodes in failures.items()}
        snapshot = self._unchanged if self.module.check_mode else drain_planning.fresh_snapshot(self.client)
        mended = drain_planning.mended_plan(snapshot, plan, self.name, failed, hopeless, ended, replaced, first)
        if not self._may_differ:
            drain_planning.require_as_planned(self.client, plan, mended, self.name)
        if self.params["plan"] and mended.of_node(self.name) != plan.of_node(self.name):
            self.memory.mended(mended)
        return mended


def _run_label(params: Mapping[str, Any]) -> str:
    return label_value(params["run"] or params["owner"])
