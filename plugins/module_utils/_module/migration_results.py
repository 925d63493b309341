# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What vmi_migration returns: results, diffs, and the failures that name each VMI and its trouble."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.cancellation import (
    MIGRATING,
    Cancellation,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migration_run import MigrationRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.move import NOT_MIGRATED, PLANNED, Move
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module

Result = dict[str, Any]

_FAILED_REMEDY = "Remove the cause and run the task again; VMIs that have arrived stay untouched."
_DEADLINE_REMEDY = (
    "The migrations in flight go on: run the task again to go on waiting, or with state=absent to cancel them."
)
_CANCELLING_GOES_ON = "KubeVirt goes on cancelling what it was asked to."
_NOT_UNDONE_REMEDY = "Look into the log of virt-handler on the nodes of these VMIs; KubeVirt goes on cancelling."


def migrated(module: Module, server: str, run: MigrationRun) -> Result:
    """Raises Incomplete if a migration failed, or has not ended though it was waited for."""
    planned = any(move.outcome == PLANNED for move in run.moves)
    result: Result = {"changed": run.has_created or planned, "migrations": [move.result() for move in run.moves]}
    if module._diff:
        result["diff"] = {
            "before": _lines((move.title, move.source_node) for move in run.moves),
            "after": _lines((move.title, _expected(move)) for move in run.moves),
        }
    left = run.unfinished if module.params["wait"] or run.trouble else []
    failed = [move for move in run.moves if move.outcome == NOT_MIGRATED]
    if left or failed:
        raise Incomplete(_failure(module, server, run, failed, left), result)
    return result


def cancelled(module: Module, server: str, cancellation: Cancellation) -> Result:
    """Raises Incomplete if a cancellation could not be asked for, or was waited for in vain."""
    result: Result = {"changed": cancellation.has_begun, "migrations": cancellation.results()}
    if module._diff:
        titles = list(cancellation.migrations)
        result["diff"] = {"before": _lines((title, "migrating") for title in titles), "after": ""}
    if cancellation.left and (module.params["wait"] or cancellation.trouble):
        raise Incomplete(_not_cancelled(module, server, cancellation), result)
    return result


def _not_cancelled(module: Module, server: str, cancellation: Cancellation) -> Failure:
    waited, trouble = module.params["wait"], cancellation.trouble
    unasked = [title for title in cancellation.left if cancellation.outcomes[title] == MIGRATING]
    asked = [title for title in cancellation.left if title not in unasked] if waited else []
    words = [f"that of {', '.join(unasked)} was not cancelled"] if unasked else []
    if asked and trouble:
        words.append(f"whether that of {', '.join(asked)} is undone is not known")
    elif asked:
        words.append(f"after {module.params['wait_timeout']} s KubeVirt has not undone that of {', '.join(asked)}")
    late = waited and (trouble is None or trouble.passing)
    return Failure(
        f"cancel {len(asked) + len(unasked)} of {len(cancellation.outcomes)} migrations",
        server,
        "; ".join(words) + (f", as {trouble.message}" if trouble else ""),
        f"{trouble.remedy} {_CANCELLING_GOES_ON}" if trouble else _NOT_UNDONE_REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late or trouble is None else trouble.reason,
    )


def _failure(module: Module, server: str, run: MigrationRun, failed: list[Move], left: list[Move]) -> Failure:
    troubles = [f"{move.title}: {move.failure_reason.rstrip('.')}" for move in failed]
    if left:
        waiting = ", ".join(f"{move.title} ({move.status()})" for move in left)
        troubles.append(f"after {module.params['wait_timeout']} s not finished: {waiting}")
    if run.trouble:
        troubles.append(run.trouble.message)
    number = len(failed) + len(left)
    return Failure(
        f"migrate {number} of {len(run.moves)} VMIs" if len(run.moves) > 1 else "migrate the VMI",
        server,
        "; ".join(troubles),
        _DEADLINE_REMEDY if left else _FAILED_REMEDY,
        status=run.trouble.status if run.trouble else None,
        reason="DeadlineExceeded" if left else "MigrationFailed",
    )


def _expected(move: Move) -> str:
    """Where a VMI is after the task, as far as is known; a wish where it is not."""
    if move.outcome == PLANNED or move.unfinished:
        return move.target_node or f"a node with {move.destination}"
    return move.node


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{title}: {value}\n" for title, value in pairs)
