# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start what was stopped for a node, when that is back."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.landings import landings_of_starts
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline, PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import start_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.deviations import starts_of_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import STARTED, WOULD_START, Starting
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

_REMEDY = "Remove the cause; a VM whose start was asked for comes up by itself then, for others run the task again."


def restore(module: Module, client: Client) -> JsonObject:
    """Raises Failure, and Incomplete if a VM does not run though it should."""
    params = module.params
    deadline = Deadline(params["wait_timeout"])
    hold, teller = guard.hold(client, params), Progress.of(params, f"node {params['name']}")
    plan = functools.cache(lambda: _plan(module, client))
    going = start_run(
        client,
        params["name"],
        params["owner"],
        lambda _nodes: hold.require() if hold is not None else None,
        teller,
        plan if hold is not None else None,
        dry_run=module.check_mode,
        tells_source=params["document"],
    )
    if module.check_mode:
        going.rehearse()
    else:
        going.run(deadline.left)
    return _result(module, going, _astray(module, client, going, plan) if hold is not None else [])


def _astray(module: Module, client: Client, going: PlanRun, planned: Callable[[], Plan | None]) -> list[JsonObject]:
    """Those that the run's plan had on other nodes than those where they have started again."""
    entries = (entry for entry in going.record.entries.values() if isinstance(entry, Starting))
    started = [entry for entry in entries if entry.outcome == STARTED]
    plan, node = planned() if started else None, module.params["name"]
    if plan is None:
        return []
    wanted = starts_of_batch(plan, node, started)
    targets: defaultdict[str, list[str]] = defaultdict(list)
    for action, uid in wanted:
        targets[uid].append(action.target or "")
    landings = landings_of_starts(client, started, targets)
    own = ((action, uid) for action, uid in wanted if action.node == node)
    return [deviation.to_json() for _action, deviation in landings.astray(own)]


def _plan(module: Module, client: Client) -> Plan | None:
    """The one that the run goes by, if the cluster keeps one; that it cannot be read is no reason to fail."""
    # With what plans, for which nothing else of this task has a use.
    from ansible_collections.virtops.kubevirt.plugins.module_utils._module import plan_keeping  # noqa: PLC0415

    try:
        kept, problems = plan_keeping.find(client, module.params)
    except Failure as error:
        kept, problems = None, [str(error)]
    for problem in problems:
        module.warn(f"Nothing tells where the plan had what has started again. {problem}")
    return kept.plan if kept is not None else None


def _result(module: Module, going: PlanRun, deviations: list[JsonObject]) -> JsonObject:
    """Raises Incomplete."""
    found = going.record.entries.values()
    # In check mode what has to be waited for first is not even asked for.
    entries = [entry.rehearsed() if module.check_mode and entry.unfinished else entry for entry in found]
    result: JsonObject = {
        "changed": any(entry.has_acted or entry.outcome == WOULD_START for entry in entries),
        "started": [entry.result() for entry in entries],
        "deviations": deviations,
    }
    if module.params["document"]:
        result["document"] = guard.document(going.plan, module.params)
    if module._diff:
        result["diff"] = {"before": "", "after": "".join(f"vm {entry.title}\n" for entry in entries)}
    left = [f"{entry.title}: {entry.status()}" for entry in entries if entry.unfinished or entry.has_failed]
    if left:
        raise Incomplete(_failure(module, going, left), result)
    return result


def _failure(module: Module, going: PlanRun, problems: list[str]) -> Failure:
    trouble = going.trouble
    late = not (going.is_over or module.check_mode)
    more = [trouble.at_the_end] if trouble else []
    return Failure(
        f"start {len(problems)} of {len(going.record.entries)} VMs again",
        going.means.verbs.server,
        (f"after {module.params['wait_timeout']} s " if late else "") + listed(problems, then=more),
        _REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late else "StartFailed",
        details={"problems": [*problems, *more]},
    )
