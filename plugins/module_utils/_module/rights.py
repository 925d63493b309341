# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""See that all that a task may come to do is allowed, before it does the first of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.permissions import (
    MISSING,
    require_rights,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import GIVE_BACK, INTERRUPT, START, TAKE
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import LEASE_NAMESPACE, Need
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES, ROLES, demanded


def spec() -> ArgumentSpec:
    """Of access_review."""
    return {
        "roles": {"type": "list", "elements": "str", "choices": list(ROLES), "required": True},
        "lease_namespace": {"type": "str", "default": LEASE_NAMESPACE},
        "wait_timeout": {"type": "int"},
    }


def require_for_roles(client: Client, roles: Sequence[str], namespace: str) -> int:
    """How many rights the roles need. Raises Failure unless the user has them all."""
    needed = demanded(need for role in roles for need in ROLES[role])
    require_rights(client, f"act as {' and '.join(roles)}", roles, needed, namespace)
    return len(needed)


def require_for_drain(client: Client, params: Mapping[str, Any]) -> None:
    """Raises Failure."""
    state, name = params["state"], params["name"]
    if state == "restored":
        _require(client, params, f"start what was stopped for node {name}", "uncordon", MODULES["node_drain, restored"])
    elif state == "drained":
        policies = {rule["policy"] for rule in params["policies"]}
        spared = [INTERRUPT] if policies <= {"fail"} else []
        # What is restarted comes by its owner; only what was stopped has to be started.
        spared += [] if "stop" in policies else [START]
        needs = [need for need in MODULES["node_drain"] if params["plan"] or need not in spared]
        _require(client, params, f"drain node {name}", "drain", needs)


def require_for_node(client: Client, params: Mapping[str, Any]) -> None:
    """Raises Failure. Who may not let go of a node does not take it either."""
    if params["state"] == "cordoned":
        _require(client, params, f"cordon node {params['name']}", "drain", [TAKE])
    else:
        _require(client, params, f"uncordon node {params['name']}", "uncordon", [GIVE_BACK])


def require_for_abort(client: Client, run: str, namespace: str) -> None:
    """Raises Failure."""
    needs = MODULES["maintenance_run, aborted"]
    _ask(client, f"undo all of run {run}", "rolling_maintenance", needs, namespace)


def _require(client: Client, params: Mapping[str, Any], attempted: str, role: str, needs: Iterable[Need]) -> None:
    """For what an invocation of a run does, role plan_maintenance has asked before it took the run."""
    if not params["invocation"]:
        _ask(client, attempted, role, needs, params["lease_namespace"])


def _ask(client: Client, attempted: str, role: str, needs: Iterable[Need], namespace: str) -> None:
    """Who may not even ask goes on, and is told of what is missing when it is needed."""
    try:
        require_rights(client, attempted, [role], demanded(needs), namespace)
    except Failure as error:
        if error.reason == MISSING or error.status != HTTPStatus.FORBIDDEN:
            raise
