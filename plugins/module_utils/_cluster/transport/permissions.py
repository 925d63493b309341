# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which permissions are missing: all of them at once, with what they are for and what grants them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import repeatable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import listing
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import (
    LEASE_NAMESPACE,
    Right,
    policy_rules,
    role_name,
)

MISSING = "RightsMissing"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_THREADS = 8


def missing_rights(client: Client, rights: Iterable[Right], namespace: str) -> list[Right]:
    """Those that the user does not have, in their order. namespace: of the Leases. Raises Failure."""
    rights = list(rights)
    with ThreadPoolExecutor(_THREADS) as pool:
        allowed = list(pool.map(lambda right: _is_allowed(client, right, namespace), rights))
    return [right for right, may in zip(rights, allowed, strict=True) if not may]


def require_rights(
    client: Client, attempted: str, roles: Sequence[str], reasons: Mapping[Right, Sequence[str]], namespace: str
) -> None:
    """Raise Failure unless the user has all of them. roles: an account for these has. namespace: of the Leases."""
    if missing := missing_rights(client, reasons, namespace):
        raise Failure(
            attempted,
            client.server,
            "the user lacks the rights to " + "; to ".join(_clauses(missing, reasons, namespace)),
            f"Nothing was touched. Let an administrator run `{_access(roles, namespace)}`, with all that the account "
            "is for in access_roles, as it has no other rights then; the file is its kubeconfig. Or bind ClusterRole "
            f"and Role {' and '.join(map(role_name, roles))} to this user.",
            status=HTTPStatus.FORBIDDEN,
            reason=MISSING,
            details={"missing": [_told(right, reasons[right], namespace) for right in missing]},
        )


def explain_forbidden(client: Client, kinds: Iterable[Kind], first: Failure) -> Failure:
    """The failure to report after a first 403: it names every kind that may not be listed, not only the first one."""
    try:
        denied = missing_rights(client, (listing(kind) for kind in kinds if not kind.dispensable), "")
    except Failure:
        return first  # who may not even ask is told what is known
    if not denied:
        return first
    rules = policy_rules(denied)
    names = ", ".join(right.title for right in denied)
    return Failure(
        "read the cluster",
        client.server,
        f"the permission to list {names} in all namespaces is missing ({first.message})",
        f"Grant it by a ClusterRole with the rules {json.dumps(rules)} and a ClusterRoleBinding.",
        status=first.status,
        reason=first.reason,
        details={"missing_rules": rules},
    )


def _is_allowed(client: Client, right: Right, namespace: str) -> bool:
    resource, _slash, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    place = {"namespace": namespace} if right.of_leases else {}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, **place, "name": right.name}},
    }
    answer = client.post(_REVIEWS, f"ask whether one may {right.verb} {right.title}", review, done=repeatable)
    return bool(answer["status"].get("allowed"))


def _access(roles: Sequence[str], namespace: str) -> str:
    """The command that makes an account for these roles, and its credentials."""
    elsewhere = "" if namespace == LEASE_NAMESPACE else f" -e access_lease_namespace={namespace}"
    return (
        f"ansible-playbook virtops.kubevirt.access -e access_roles={','.join(roles)}{elsewhere} "
        "-e access_path=maintenance.kubeconfig"
    )


def _clauses(missing: Iterable[Right], reasons: Mapping[Right, Sequence[str]], namespace: str) -> list[str]:
    """With the first reason of each; many have several."""
    return [
        f"{right.verb} {right.title}{f' in namespace {namespace}' if right.of_leases else ''} (to {reasons[right][0]})"
        for right in missing
    ]


def _told(right: Right, why: Sequence[str], namespace: str) -> dict[str, object]:
    return {
        "verb": right.verb,
        "api_group": right.group,
        "resource": right.resource,
        "name": right.name,
        "namespace": namespace if right.of_leases else "",
        "why": list(why),
    }
