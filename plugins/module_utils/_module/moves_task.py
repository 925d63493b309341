# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan by which things only move: what waits for nothing first, then what waited for that, and so on.

What leads to a move is over when it has left its node, and where it was a pod when there is another one in its place:
who follows it would find nobody to be near. Each stage reads anew what of it is done, so the plan can be given again at
any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.eviction_run import EvictionRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.migration_looks import read_prospects
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import require_cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import May
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.carrying_out import VerbSettings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import landings
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.evicting import EVICTED
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import migration_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import eviction_task, migration_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import to_json
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Action, ActionKind, Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.remainder import stages

_MOVED_BEFORE = "What had moved before stays where it is, and nothing more was started: plan anew."


@dataclass
class _Done:
    """What modules have returned of the stages so far."""

    changed: bool = False
    migrations: list[JsonObject] = field(default_factory=list)
    evicted: list[JsonObject] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    replacements: list[JsonObject] = field(default_factory=list)
    deviations: list[JsonObject] = field(default_factory=list)
    before: str = ""
    after: str = ""

    def add(self, values: JsonObject) -> None:
        self.changed = self.changed or values["changed"]
        self.migrations += values.get("migrations", ())
        self.evicted += values.get("evicted", ())
        self.gone += values.get("gone", ())
        self.replacements += values.get("replacements", ())
        self.before += values.get("diff", {}).get("before", "")
        self.after += values.get("diff", {}).get("after", "")


def own_time(plan: Plan, wait_timeout: int) -> float:
    """Seconds that all of it may take: the evictions of each stage have all of `wait_timeout`, and so do its moves."""
    return 2.0 * len(stages(plan)) * wait_timeout


def carry_out(module: Module, client: Client, plan: Plan, may: May) -> JsonObject:
    """Raises Failure, InvalidRequest, and Incomplete unless all has come about, or would.

    may: asked before anything is moved.
    """
    if plan.cluster.uid:
        require_cluster(client, plan.cluster.uid)
    # Before anything moves, also of what comes last.
    migration_rules.check(read_prospects(client, _requests(plan.actions)))
    done = _Done()
    try:
        for actions in stages(plan):
            _evict(module, client, actions, may, done)
            _migrate(module, client, actions, may, done)
    except Incomplete as error:
        done.add(dict(error.result))
        raise Incomplete(error.failure, _result(module, plan, done)) from error
    except (Failure, InvalidRequest) as error:
        if not done.changed:
            raise
        if isinstance(error, InvalidRequest):  # which says that nothing was started
            error = InvalidRequest(error.attempted, error.problems, _MOVED_BEFORE)
        raise Incomplete(error, _result(module, plan, done)) from error
    return _result(module, plan, done)


def _evict(module: Module, client: Client, actions: Sequence[Action], may: May, done: _Done) -> None:
    pods = [action.object for action in actions if action.kind is ActionKind.EVICT]
    if pods:
        settings = VerbSettings(dry_run=module.check_mode)
        going = EvictionRun.begin(client, pods, settings, Progress.of(module.params), may)
        try:
            done.add(eviction_task.evict(module, going, module.params["wait_timeout"]))
        finally:
            done.deviations += _astray(actions, going)


def _astray(actions: Sequence[Action], going: EvictionRun) -> list[JsonObject]:
    """Of the pods that have gone, those in whose place others have come up elsewhere than was foretold."""
    gone = {entry.title for entry in going.record.entries.values() if entry.outcome == EVICTED}
    evicted = [action for action in actions if action.kind is ActionKind.EVICT and action.object.title in gone]
    came = {item.title: [pod["node"] for pod in item.pods if pod["node"]] for item in going.replacements}
    return [entry.to_json() for entry in landings(evicted, came)]


def _migrate(module: Module, client: Client, actions: Sequence[Action], may: May, done: _Done) -> None:
    requests = _requests(actions)
    if requests:
        done.add(migration_task.migrate(module, client, Deadline(module.params["wait_timeout"]), requests, may))


def _requests(actions: Sequence[Action]) -> list[MigrationRequest]:
    return [
        MigrationRequest(
            namespace=action.object.namespace,
            name=action.object.name,
            target_node=action.target,
            added_node_selector={} if action.target else dict(action.selector),
            uid=action.object.uid,
            source_node=action.source or "",
        )
        for action in actions
        if action.kind is ActionKind.MIGRATE
    ]


def _result(module: Module, plan: Plan, done: _Done) -> JsonObject:
    values: JsonObject = {
        "changed": done.changed,
        "migrations": done.migrations,
        "evicted": done.evicted,
        "gone": done.gone,
        "replacements": done.replacements,
        "deviations": done.deviations,
    }
    if module._diff:
        values["diff"] = {"before": done.before, "after": done.after}
    if module.params["document"]:
        values["document"] = to_json(plan)
    return values
