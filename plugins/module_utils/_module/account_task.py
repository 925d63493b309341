# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What access_account takes, writes and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import grants
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.grants import Written
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.account import Account
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import LEASE_NAMESPACE
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES


def spec() -> ArgumentSpec:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "roles": {"type": "list", "elements": "str", "choices": list(ROLES)},
        "lease_namespace": {"type": "str", "default": LEASE_NAMESPACE},
        "kubevirt_role": {"type": "bool", "default": True},
    }


def account(params: JsonObject) -> Account:
    """Raises InvalidRequest."""
    if problems := list(name_problems(params, "name", "namespace", "lease_namespace")):
        raise InvalidRequest("make or remove the account", problems, "Correct the task; nothing was written.")
    return Account(
        namespace=params["namespace"],
        name=params["name"],
        lease_namespace=params["lease_namespace"],
        roles=() if params["state"] == "absent" else tuple(dict.fromkeys(params["roles"])),
        kubevirt_role=params["kubevirt_role"],
    )


def write(module: Module, client: Client, meant: Account) -> JsonObject:
    """Raises Failure if nothing was written, and Incomplete if not all was."""
    act = _remove if module.params["state"] == "absent" else _make
    done: list[Written] = []
    try:
        for written in act(client, meant, module.check_mode):
            done.append(written)  # noqa: PERF402  # what was done before a failure counts
    except Failure as error:
        if not (done or error.maybe_done):
            raise
        raise Incomplete(error, {**_result(module, done), "changed": True}) from error
    return _result(module, done)


def _make(client: Client, meant: Account, dry_run: bool) -> Iterator[Written]:
    bindings = grants.read_all(client, *grants.BINDINGS)
    done: list[Written] = []
    for wanted in meant.wanted:
        if written := grants.store(client, wanted, dry_run=dry_run, foretold=done):
            done.append(written)
            yield written
    yield from _unbind(client, meant, bindings, dry_run)


def _remove(client: Client, meant: Account, dry_run: bool) -> Iterator[Written]:
    """Its rights first, so that it has none without being seen."""
    yield from _unbind(client, meant, grants.read_all(client, *grants.BINDINGS), dry_run)
    yield from _without(client, [meant.service_account], dry_run)
    policies = grants.read_all(client, *grants.ROLE_KINDS)
    # Anew, as somebody may have bound another account meanwhile.
    bindings = grants.read_all(client, *grants.BINDINGS)
    yield from _without(client, meant.unused(policies, bindings), dry_run)


def _without(client: Client, unwanted: Sequence[JsonObject], dry_run: bool) -> Iterator[Written]:
    for item in unwanted:
        if written := grants.remove(client, item, dry_run=dry_run):
            yield written


def _unbind(client: Client, meant: Account, bindings: Sequence[JsonObject], dry_run: bool) -> Iterator[Written]:
    """Bindings that others have as well stay for those."""
    for stray in meant.strays(bindings):
        if written := grants.unbind(client, stray, meant.others, dry_run=dry_run):
            yield written


def _result(module: Module, done: Sequence[Written]) -> JsonObject:
    values: JsonObject = {"changed": bool(done), "objects": [_told(written) for written in done]}
    if module._diff:
        values["diff"] = {
            "before": {grants.title(item.wanted): item.content(item.before) for item in done if item.before},
            "after": {grants.title(item.wanted): item.content(item.after) for item in done if item.after},
        }
    return values


def _told(written: Written) -> JsonObject:
    metadata = written.wanted["metadata"]
    change = "created" if written.before is None else "removed" if written.after is None else "changed"
    return {
        "kind": written.wanted["kind"],
        "namespace": metadata.get("namespace") or "",
        "name": metadata["name"],
        "change": change,
    }
