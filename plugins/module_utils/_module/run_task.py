# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What maintenance_run takes from its task, does with it, and gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.run_traces import (
    find_left,
    find_traces,
    maintained,
    release,
    stopped_for,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import (
    cluster_uid,
    require_same,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.undoing import TO_START, Undoing, Undone
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import (
    Invocation,
    RunLease,
    run_problem,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import listed
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import rights, run_report
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run_report import RunReport


@dataclass(frozen=True, slots=True)
class RunTask:
    """`playbook`: the process of ansible-playbook whose invocation this is. cluster: uid of the one meant, or empty."""

    run: str
    namespace: str
    invocation: Invocation
    playbook: Process
    wait_seconds: float
    dry_run: bool
    cluster: str
    connection: Mapping[str, Any]

    def hold(self, client: Client) -> RunHold:
        return RunHold(client, self.run, self.invocation, self.namespace, dry_run=self.dry_run)

    def store(self, client: Client) -> RunStore:
        return RunStore(client, self.run, self.namespace)

    def cluster_uid(self, client: Client) -> str:
        """Of the cluster that answers. Raises Failure with reason OtherCluster unless it is the one meant."""
        found = cluster_uid(client)
        if self.cluster:
            require_same(found, self.cluster, client.server)
        return found


def read(params: Mapping[str, Any], *, dry_run: bool) -> RunTask:
    """Raises InvalidRequest."""
    problems = [*name_problems(params, "lease_namespace")]
    problem = run_problem(params["run"])
    if problem:
        problems.append(f"run {problem}")
    if params["wait_timeout"] < 0:
        problems.append(f"wait_timeout is {params['wait_timeout']}")
    if params["report"] is not None and params["state"] != "released":
        problems.append("report is given, which is for state=released")
    if problems:
        raise InvalidRequest("hold or release the run", problems, "Correct the task; nothing was written.")
    given = params["_invocation"] or {}
    process = Process.of(0) if not given else Process(given["pid"], given["started"], given["place"])
    if not process.here:
        raise InvalidRequest(
            "hold or release the run",
            ["the task runs on another machine than ansible-playbook, and who renews the run"],
            "Let it run on the controller, with delegate_to: localhost.",
        )
    return RunTask(
        run=params["run"],
        namespace=params["lease_namespace"],
        invocation=Invocation(given.get("id", ""), given.get("user", ""), given.get("host", ""), process.pid),
        playbook=process,
        wait_seconds=params["wait_timeout"],
        dry_run=dry_run,
        cluster=params["cluster_uid"] or "",
        connection={name: params[name] for name in AUTH_ARG_SPEC if params.get(name) is not None},
    )


def own_time(params: Mapping[str, Any]) -> float | None:
    """Seconds that the task has for its requests, None if it is as patient with each as a task without any limit.

    `wait_timeout` is what others get: a holder that seems dead, and then what is undone, of which VMs that start have
    some time of their own. What is left to do after that finds the API server away no less than what came before.
    """
    if params["state"] != "aborted":
        return None
    return float(2 * params["wait_timeout"] + TO_START + persistence.READING)


def held(client: Client, task: RunTask, *, diff: bool) -> JsonObject:
    """Take the run and have it renewed from now on. Raises Failure."""
    hold, uid = task.hold(client), task.cluster_uid(client)
    if task.dry_run:
        return _foretold(hold, task, client, uid, diff=diff)
    taken = hold.take(task.wait_seconds)
    try:
        renewer.start(task.connection, hold, uid, task.playbook, client.patience)
    except Failure as error:
        raise _told_with(error, _let_go(hold)) from error
    documents = task.store(client).names()
    resumed = taken.taken_over or bool(documents)
    result = _result(hold, taken.before, taken.lease, uid, diff=diff, resumed=resumed, documents=documents)
    return {**result, **_stopped(client, task)}


def released(
    client: Client, task: RunTask, *, keep_record: bool, report: Sequence[str] | None, diff: bool
) -> JsonObject:
    """Let go of the run, if it is this invocation's, and tell what it has left. Raises Failure.

    A node that it has given back may be held still, if something came in between. No task of the run looks at it again.

    report: lines that are kept with what the run remembers, if that is.
    """
    hold, uid = task.hold(client), task.cluster_uid(client)
    before = hold.look()
    ours = client.guarded(hold.require) if before else client  # of a run that nobody holds anybody tidies up
    store = task.store(ours)
    documents, left = store.names(), find_left(client, task.run, task.namespace)
    told = {
        "left": left.lines(),
        "still_stopped": [asdict(item) for item in left.stopped],
        "still_taken": list(left.taken),
    }
    known = run_report.find(store) if run_report.REPORT_DOCUMENT in documents else RunReport()
    if before and not hold.owns(before):
        result = _result(hold, before, before, uid, diff=diff, resumed=False, documents=documents)
        warning = f"Run {hold.run} is held by {before.who}, so it was not released, and nothing of it was removed."
        return {**result, **told, "changed": False, **_reported(known, warning)}
    # Whoever brings back what is left goes by them.
    keeps = keep_record or bool(told["left"])
    # The documents first: who releases the run first and is killed then leaves them to nobody.
    is_forgotten = bool(documents) and not keeps
    if not task.dry_run:
        if before:
            release(ours, left.leases, task.namespace, lambda: hold.require(anew=True))
        if is_forgotten:
            if before:
                hold.require(anew=True)  # what another invocation remembers by now is not ours to remove
            store.delete_all()
        elif keeps and report is not None and before:
            known = _kept(store, task.invocation, report, known)
            documents = sorted({*documents, *([run_report.REPORT_DOCUMENT] if known.parts else [])})
        hold.release()
    result = _result(hold, before, None, uid, diff=diff, resumed=False, documents=documents if keeps else [])
    return {**result, **told, "changed": before is not None or is_forgotten, **_reported(known)}


def _kept(store: RunStore, invocation: Invocation, lines: Sequence[str], known: RunReport) -> RunReport:
    """The report with these lines. That they cannot be kept is told, and no reason to hold the run any longer."""
    try:
        return run_report.keep(store, invocation, lines)
    except Failure as error:
        return replace(known, warnings=(*known.warnings, f"The report was not kept: {error}"))


def _reported(report: RunReport, *warnings: str) -> JsonObject:
    told = [*warnings, *report.warnings]
    return {"report": report.lines(), **({"warnings": told} if told else {})}


def aborted(client: Client, task: RunTask, *, force: bool, diff: bool) -> JsonObject:
    """Undo what the run has left, and forget it. Raises Failure, and Incomplete once it may have undone something."""
    if not task.dry_run:
        rights.require_for_abort(client, task.run, task.namespace)
    hold, uid = task.hold(client), task.cluster_uid(client)
    store = task.store(client.guarded(hold.require))
    traces, documents, before = find_traces(client, task.run, task.namespace), store.names(), hold.look()
    lines = [*traces.lines(), *(f"document {name}" for name in documents)]
    result = _result(hold, before, None, uid, diff=False, resumed=False, documents=[])
    result |= {"changed": bool(lines) or before is not None, "cancelled": [], "given_back": [], "started": []}
    result["done"] = list(traces.done)
    if diff:
        held = [f"lease of the run, held by {before.who}"] if before else []
        result["diff"] = {"before": "".join(f"{line}\n" for line in [*held, *lines]), "after": ""}
    if task.dry_run or not result["changed"]:
        return result
    hold.take(task.wait_seconds, force=force)
    undoing = Undoing(client, task.run, task.namespace, task.wait_seconds, hold.require)
    undone = undoing.undone
    try:
        renewer.start(task.connection, hold, uid, task.playbook, client.patience)
        undoing.undo()
        if not undone.problems:
            hold.require(anew=True)
            store.delete_all()
    except Failure as error:
        told = _told_with(_ended(error, undone.problems), _let_go(hold))
        raise Incomplete(told, result | _undone(undone)) from error
    except Exception:
        _let_go(hold)
        raise
    result |= _undone(undone)
    trouble = _let_go(hold)
    if undone.problems:
        raise Incomplete(_told_with(_left(client, task, undone.problems), trouble), result)
    if trouble:
        raise Incomplete(trouble, result)
    return result


def _undone(undone: Undone) -> JsonObject:
    """For the result, which has nodes that are done from before it was begun."""
    started = list(undone.started.values())
    found: JsonObject = {"cancelled": undone.cancelled, "given_back": undone.given_back, "started": started}
    return found | ({"done": undone.done} if undone.done else {})


def _ended(error: Failure, problems: list[str]) -> Failure:
    """What has ended an abort, and then what could not be undone before that."""
    if not problems:
        return error
    message = f"{error.message.rstrip('.')}; and before that was left, {listed(problems)}"
    return error.replaced(message=message, details={"problems": problems})


def _let_go(hold: RunHold) -> Failure | None:
    """Release the run, whatever has happened; why that did not come about, if so."""
    try:
        hold.release()
    except Failure as error:
        return error
    return None


def _told_with(error: Failure, trouble: Failure | None) -> Failure:
    """What has failed, and then what became of letting go of the run."""
    more = f"; and the run was not released, {trouble.message}" if trouble else ""
    return error.replaced(message=f"{error.message.rstrip('.')}{more}")


def _left(client: Client, task: RunTask, problems: list[str]) -> Failure:
    return Failure(
        f"undo all of run {task.run}",
        client.server,
        listed(problems),
        "Remove the cause and run the task again: it goes on with what is left.",
        reason="NotUndone",
        details={"problems": problems},
    )


def _foretold(hold: RunHold, task: RunTask, client: Client, uid: str, *, diff: bool) -> JsonObject:
    """A dry run tells what is now, and refuses nothing: it writes nothing that could disturb another invocation."""
    before, documents = hold.look(), task.store(client).names()
    result = _result(hold, before, before, uid, diff=diff, resumed=bool(documents), documents=documents)
    result |= {"changed": not hold.owns(before), **_stopped(client, task)}
    if before and not hold.owns(before):
        seconds = before.age(datetime.now(timezone.utc))
        doubt = ", and seems to have died" if seconds > before.seconds else ""
        result["warnings"] = [f"Run {hold.run} is held by {before.who}{doubt}; it would be refused while that lives."]
    return result


def _stopped(client: Client, task: RunTask) -> JsonObject:
    """For which nodes something is stopped, and which of them can have it back."""
    nodes = stopped_for(client, task.run)
    return {"stopped_for": nodes, "maintained": maintained(client, task.run, nodes)}


def _result(
    hold: RunHold,
    before: RunLease | None,
    after: RunLease | None,
    uid: str,
    *,
    diff: bool,
    resumed: bool,
    documents: list[str],
) -> JsonObject:
    values: JsonObject = {
        "changed": not hold.owns(before),
        "run": hold.run,
        "invocation_id": hold.invocation.id,
        "holder": after.facts() if after else None,
        "cluster_uid": uid,
        "resumed": resumed,
        "documents": documents,
    }
    if diff:
        values["diff"] = {"before": _shown(before), "after": _shown(after)}
    return values


def _shown(lease: RunLease | None) -> JsonObject:
    """What makes a change; the time of the last renewal does not."""
    return {"held_by": {key: value for key, value in lease.facts().items() if key != "renewed"} if lease else None}
