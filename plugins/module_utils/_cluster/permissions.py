# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which permissions are missing: all of them at once, with the rules that grant them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import Kind

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def explain_forbidden(client: Client, kinds: Iterable[Kind], first: Failure) -> Failure:
    """The failure to report after a first 403: it names every kind that may not be listed, not only the first one."""
    try:
        denied = [kind for kind in kinds if not _may_list(client, kind)]
    except Failure:
        return first  # who may not even ask is told what is known
    if not denied:
        return first
    rules = cluster_role_rules(denied)
    names = ", ".join(kind.title for kind in denied)
    return Failure(
        "read the cluster",
        client.server,
        f"the permission to list {names} in all namespaces is missing ({first.message})",
        f"Grant it by a ClusterRole with the rules {json.dumps(rules)} and a ClusterRoleBinding.",
        status=first.status,
        reason=first.reason,
        details={"missing_rules": rules},
    )


def cluster_role_rules(kinds: Iterable[Kind]) -> list[dict[str, Any]]:
    """The rules of a ClusterRole that lets one list the kinds: one for each API group."""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": ["list"]}
        for group, resources in sorted(groups.items())
    ]


def _may_list(client: Client, kind: Kind) -> bool:
    attributes = {"group": kind.group, "resource": kind.resource, "verb": "list"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = client.post(_REVIEWS, f"ask whether {kind.title} may be listed", review)
    return bool(answer["status"].get("allowed"))
