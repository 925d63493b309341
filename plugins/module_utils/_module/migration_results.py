# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What vmi_migration returns: results, diffs, and the failures that name each VMI and its trouble."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.moves_run import MovesRun
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.cancellation import (
    STILL_MIGRATING,
    Cancellation,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.migrating import WOULD_MIGRATE, Migrating
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.record import WAITING
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind

_FAILED_REMEDY = "Remove the cause and run the task again; VMIs that have arrived stay untouched."
_DEADLINE_REMEDY = (
    "The migrations in flight go on: run the task again to go on waiting, or with state=absent to cancel them."
)
_MIGRATING_GOES_ON = "The migrations in flight go on."
_CANCELLING_GOES_ON = "KubeVirt goes on cancelling what it was asked to."
_NOT_UNDONE_REMEDY = "Look into the log of virt-handler on the nodes of these VMIs; KubeVirt goes on cancelling."


def migrated(module: Module, run: MovesRun) -> JsonObject:
    """What is returned of the VMIs."""
    entries = run.of(Migrating)
    changed = any(entry.has_acted or entry.outcome == WOULD_MIGRATE for entry in entries)
    values: JsonObject = {"changed": changed, "migrations": [entry.result() for entry in entries]}
    if module._diff:
        values["diff"] = {
            "before": _lines((entry.title, entry.source_node) for entry in entries),
            "after": _lines((entry.title, _expected(entry)) for entry in entries),
        }
    return values


def failed(module: Module, run: MovesRun) -> Failure | None:
    """Why a migration failed, or has not ended, or begun, as far as it was waited for; None if all is well."""
    entries = run.of(Migrating)
    left = [] if module.check_mode else [entry for entry in entries if _is_left(module, run, entry)]
    lost = [entry for entry in entries if entry.has_failed]
    return _failure(module, run, lost, left) if left or lost else None


def cancelled(module: Module, server: str, cancellation: Cancellation) -> JsonObject:
    """Raises Incomplete if a cancellation could not be asked for, or was waited for in vain."""
    result: JsonObject = {"changed": cancellation.has_begun, "migrations": cancellation.results()}
    if module._diff:
        states = dict.fromkeys(sorted(cancellation.evacuated), "to be evacuated")
        states |= dict.fromkeys(cancellation.migrations, "migrating")
        result["diff"] = {"before": _lines(states.items()), "after": ""}
    if cancellation.left and (module.params["wait"] or cancellation.trouble):
        raise Incomplete(_not_cancelled(module, server, cancellation), result)
    return result


def _not_cancelled(module: Module, server: str, cancellation: Cancellation) -> Failure:
    waited, trouble = module.params["wait"], cancellation.trouble
    unasked = [title for title in cancellation.left if cancellation.outcomes[title] == STILL_MIGRATING]
    asked = [title for title in cancellation.left if title not in unasked] if waited else []
    words = [f"that of {listed(unasked, ', ')} was not cancelled"] if unasked else []
    if asked and trouble:
        words.append(f"whether that of {listed(asked, ', ')} is undone is not known")
    elif asked:
        words.append(f"after {module.params['wait_timeout']} s KubeVirt has not undone that of {listed(asked, ', ')}")
    late = waited and (trouble is None or trouble.passing)
    return Failure(
        f"cancel {len(asked) + len(unasked)} of {len(cancellation.outcomes)} migrations",
        server,
        "; ".join(words) + (f", as {trouble.at_the_end}" if trouble else ""),
        f"{trouble.remedy} {_CANCELLING_GOES_ON}" if trouble else _NOT_UNDONE_REMEDY,
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late or trouble is None else trouble.reason,
    )


def _is_left(module: Module, run: MovesRun, entry: Migrating) -> bool:
    """Whether it should have come further: to its end, or at least to its begin."""
    waited = module.params["wait"] or run.trouble is not None
    return entry.unfinished if waited else entry.outcome == WAITING


def _failure(module: Module, run: MovesRun, failed: list[Migrating], left: list[Migrating]) -> Failure:
    trouble, total = run.trouble, sum(action.kind is ActionKind.MIGRATE for action in run.moves.actions)
    late = left and module.params["wait"] and (trouble is None or trouble.passing)
    lost = [f"{entry.title}: {entry.failure_reason.rstrip('.')}" for entry in failed]
    words = [listed(lost)] if lost else []
    if left:
        after = f"after {module.params['wait_timeout']} s " if late else ""
        words.append(f"{after}not finished: {listed(list(map(_standing, left)), ', ')}")
    if trouble:
        words.append(trouble.at_the_end)
    return Failure(
        f"migrate {len(failed) + len(left)} of {total} VMIs" if total > 1 else "migrate the VMI",
        run.means.verbs.server,
        "; ".join(words),
        _remedy(trouble, left),
        status=trouble.status if trouble else None,
        reason="DeadlineExceeded" if late else trouble.reason if trouble else "MigrationFailed",
    )


def _remedy(trouble: Failure | None, left: list[Migrating]) -> str:
    if trouble is not None and not trouble.passing:
        return f"{trouble.remedy} {_MIGRATING_GOES_ON}"
    return _DEADLINE_REMEDY if left else _FAILED_REMEDY


def _standing(entry: Migrating) -> str:
    again = f" after the failure: {entry.failure_reason.rstrip('.')}" if entry.in_flight and entry.failed else ""
    return f"{entry.title} ({entry.status()}{again})"


def _expected(entry: Migrating) -> str:
    """Where a VMI is after the task, as far as is known; what was asked for where it is not."""
    if entry.outcome == WOULD_MIGRATE or entry.unfinished:
        return entry.target_node or f"a node with {entry.destination}"
    return entry.node


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{title}: {value}\n" for title, value in pairs)
