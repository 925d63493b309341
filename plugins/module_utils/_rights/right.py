# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One verb on one resource, what several of them are needed for, and the rules and roles of the API that grant them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

LEASE_NAMESPACE = "medik8s-leases"
RBAC_API_VERSION = "rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """resource: with its subresource. name: of the one object that it is about. of_leases: in their namespace only."""

    group: str
    resource: str
    verb: str
    name: str = ""
    of_leases: bool = False

    @property
    def title(self) -> str:
        """What messages call the resource: `pods/eviction`, `leases.coordination.k8s.io`."""
        title = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{title} {self.name}" if self.name else title


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Something that the collection does in a cluster. reasons: what each right is for, words that follow "to"."""

    title: str
    reasons: Mapping[Right, str]


def need(title: str, *parts: Mapping[Right, str]) -> Need:
    return Need(title, {right: why for part in parts for right, why in part.items()})


def on(group: str, resource: str, name: str = "", **reasons: str) -> dict[Right, str]:
    """Rights in the whole cluster; `reasons`: by verb."""
    return {Right(group, resource, verb, name): why for verb, why in reasons.items()}


def on_leases(group: str, resource: str, **reasons: str) -> dict[Right, str]:
    """Rights in the namespace of the Leases; `reasons`: by verb."""
    return {Right(group, resource, verb, of_leases=True): why for verb, why in reasons.items()}


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
            "apiVersion": RBAC_API_VERSION,
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": _rules(right for right in rights if not right.of_leases),
        }
    ]
    if of_leases := [right for right in rights if right.of_leases]:
        metadata = {"name": name, "namespace": namespace}
        rules = _rules(of_leases)
        found.append({"apiVersion": RBAC_API_VERSION, "kind": "Role", "metadata": metadata, "rules": rules})
    return found


def _rules(rights: Iterable[Right]) -> list[JsonObject]:
    """One for each resource, as in the files for people, where each verb has its reasons."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in sorted(rights):
        verbs.setdefault((right.group, right.resource, right.name), []).append(right.verb)
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": found, **({"resourceNames": [name]} if name else {})}
        for (group, resource, name), found in verbs.items()
    ]
