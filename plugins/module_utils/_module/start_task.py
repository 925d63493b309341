# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start what was stopped for a node, when that is back."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.plan_run import Deadline, PlanRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import start_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.starting import WOULD_START
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module

_REMEDY = "Remove the cause; a VM whose start was asked for comes up by itself then, for others run the task again."


def restore(module: Module, client: Client) -> dict[str, Any]:
    """Raises Failure, and Incomplete if a VM does not run though it should."""
    params = module.params
    deadline = Deadline(params["wait_timeout"])
    hold, teller = guard.hold(client, params), Progress.of(params, f"node {params['name']}")
    going = start_run(
        client,
        params["name"],
        params["owner"],
        lambda _nodes: hold.require() if hold is not None else None,
        teller,
        dry_run=module.check_mode,
    )
    if module.check_mode:
        going.rehearse()
    else:
        going.run(deadline.left)
    return _result(module, going)


def _result(module: Module, going: PlanRun) -> dict[str, Any]:
    """Raises Incomplete."""
    found = going.record.entries.values()
    # In check mode what has to be waited for first is not even asked for.
    entries = [entry.rehearsed() if module.check_mode and entry.unfinished else entry for entry in found]
    result: dict[str, Any] = {
        "changed": any(entry.has_acted or entry.outcome == WOULD_START for entry in entries),
        "started": [entry.result() for entry in entries],
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
    told = [*problems, trouble.at_the_end] if trouble else problems
    return Failure(
        f"start {len(problems)} of {len(going.record.entries)} VMs again",
        going.means.verbs.server,
        (f"after {module.params['wait_timeout']} s " if late else "") + "; ".join(told),
        _REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late else "StartFailed",
        details={"problems": told},
    )
