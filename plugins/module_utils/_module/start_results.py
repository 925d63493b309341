# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_drain returns of the VMs that it has started again."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.starts import Starts
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.start import NOT_STARTED, WAITING, Start
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module

_REMEDY = "Remove the cause; a VM whose start was asked for comes up by itself then, for others run the task again."


def started(module: Module, server: str, run: Starts) -> dict[str, Any]:
    """Raises Incomplete if a VM does not run though it should."""
    result: dict[str, Any] = {
        "changed": any(item.outcome not in (WAITING, NOT_STARTED) for item in run.starts),
        "started": [item.result() for item in run.starts],
    }
    if module._diff:
        lines = [f"vm {item.title}\n" for item in run.starts]
        result["diff"] = {"before": "", "after": "".join(lines)}
    left = [item for item in run.starts if item.unfinished or item.outcome == NOT_STARTED]
    if left:
        raise Incomplete(_failure(module, server, run, left), result)
    return result


def _failure(module: Module, server: str, run: Starts, left: list[Start]) -> Failure:
    problems = [f"{item.title}: {item.status()}" for item in left]
    if run.trouble:
        problems.append(run.trouble.message)
    late = f"after {module.params['wait_timeout']} s " if run.unfinished else ""
    return Failure(
        f"start {len(left)} of {len(run.starts)} VMs again",
        server,
        late + "; ".join(problems),
        _REMEDY,
        status=run.trouble.status if run.trouble else None,
        reason="DeadlineExceeded" if late else "StartFailed",
        details={"problems": problems},
    )
