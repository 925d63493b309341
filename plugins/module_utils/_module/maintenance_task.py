# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_maintenance takes from its task, and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.maintenance import (
    Request,
    State,
    Transition,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import Cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import guard


def request(params: Mapping[str, Any], *, dry_run: bool) -> Request:
    """Raises InvalidRequest."""
    problems = list(_problems(params))
    if problems:
        raise InvalidRequest("take or give back the node", problems, "Correct the task; nothing was written.")
    return Request(
        node=params["name"],
        owner=params["owner"],
        reason=params["reason"],
        keep_foreign=params["foreign_cordon"] == "keep",
        lease_namespace=params["lease_namespace"],
        lease_seconds=params["lease_duration"],
        dry_run=dry_run,
        run=params["run"] or "",
        invocation=params["invocation"] or "",
        maintained=params["maintained"],
        can_wait=True,
    )


def wait_seconds(params: Mapping[str, Any], *, dry_run: bool) -> float:
    """How long to wait for others. A dry run tells what is now."""
    return params["wait_timeout"] if params["wait"] and not dry_run else 0


def result(transition: Transition, owner: str, *, diff: bool) -> JsonObject:
    after = transition.after
    values: JsonObject = {
        "changed": transition.changed,
        "schedulable": after.cordon is None,
        "cordon": _cordon(after.cordon, owner),
        "lease": _lease(after),
    }
    if diff:
        values["diff"] = {"before": transition.before.facts(), "after": after.facts()}
    return values


def stays_cordoned(node: str, cordon: Cordon) -> str:
    return f"Node {node} stays cordoned, by {cordon.told}."


def _problems(params: Mapping[str, Any]) -> Iterator[str]:
    yield from name_problems(params, "name", "lease_namespace")
    if not params["owner"].strip():
        yield "owner is empty"
    yield from guard.problems(params)
    if params["maintained"] and not (params["run"] and params["state"] == "uncordoned"):
        yield "maintained is true, which is for a node that is given back (state=uncordoned) in a run"
    for name in ("lease_duration", "wait_sleep"):
        if params[name] < 1:
            yield f"{name} is {params[name]}, but at least 1 second is needed"


def _cordon(cordon: Cordon | None, owner: str) -> JsonObject | None:
    if cordon is None:
        return None
    return {"by": cordon.by, "since": cordon.since, "reason": cordon.reason, "ours": cordon.belongs_to(owner)}


def _lease(state: State) -> JsonObject | None:
    if state.lease is None or state.lease.expires_at is None:
        return None
    return {**asdict(state.lease), "expires_at": state.lease.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")}
