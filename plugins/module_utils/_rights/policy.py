# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules and roles as the API has them."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Right

API_VERSION = "rbac.authorization.k8s.io/v1"
LEASE_NAMESPACE = "medik8s-leases"


def role_name(role: str) -> str:
    """Of the ClusterRole, and of the Role in the namespace of the Leases."""
    return f"virtops.kubevirt:{role}"


def policy_rules(rights: Iterable[Right]) -> list[JsonObject]:
    """As few rules as grant just these rights, wherever the role stands that they are put in."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in sorted(rights):
        verbs.setdefault((right.group, right.name, right.resource), []).append(right.verb)
    resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, name, resource), found in verbs.items():
        resources.setdefault((group, name, tuple(found)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": names, "verbs": list(found), **({"resourceNames": [name]} if name else {})}
        for (group, name, found), names in resources.items()
    ]


def manifests(name: str, rights: Iterable[Right], namespace: str = LEASE_NAMESPACE) -> list[JsonObject]:
    """A ClusterRole, and a Role in the namespace of the Leases if there is something to be allowed there."""
    rights = list(rights)
    found: list[JsonObject] = [
        {
            "apiVersion": API_VERSION,
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": policy_rules(right for right in rights if not right.of_leases),
        }
    ]
    if of_leases := [right for right in rights if right.of_leases]:
        metadata = {"name": name, "namespace": namespace}
        rules = policy_rules(of_leases)
        found.append({"apiVersion": API_VERSION, "kind": "Role", "metadata": metadata, "rules": rules})
    return found
