# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a service account that has the rights of some roles, and of no others of the collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import MIGRATE
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import (
    RBAC_API_VERSION,
    manifests,
    role_name,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES, reasons

# KubeVirt's own ClusterRole for whoever migrates VMs, which is never ours to write or remove.
_KUBEVIRT_ROLE: JsonObject = {"kind": "ClusterRole", "metadata": {"name": "kubevirt.io:migrate"}}


@dataclass(frozen=True, slots=True)
class Account:
    """roles: what it is for, of ROLES. kubevirt_role: whether it is bound to KubeVirt's own if one of them migrates."""

    namespace: str
    name: str
    lease_namespace: str
    roles: tuple[str, ...]
    kubevirt_role: bool

    @property
    def service_account(self) -> JsonObject:
        return _object("v1", "ServiceAccount", {"name": self.name, "namespace": self.namespace})

    @property
    def wanted(self) -> list[JsonObject]:
        """All that has to be there, each after what it stands in or refers to."""
        namespaces = dict.fromkeys((self.namespace, self.lease_namespace))
        policies = self._policies(self.roles)
        return [
            *(_object("v1", "Namespace", {"name": name}) for name in namespaces),
            self.service_account,
            *policies,
            *map(self._binding, policies),
            *([self._binding(_KUBEVIRT_ROLE)] if self._is_bound_to_kubevirt else []),
        ]

    @property
    def unwanted(self) -> list[JsonObject]:
        """The bindings by which it would have other rights."""
        others = self._policies(role for role in ROLES if role not in self.roles)
        return [*map(self._binding, others), *([] if self._is_bound_to_kubevirt else [self._binding(_KUBEVIRT_ROLE)])]

    @property
    def bindings(self) -> list[JsonObject]:
        """All that it may have."""
        return [self._binding(policy) for policy in (*self._policies(ROLES), _KUBEVIRT_ROLE)]

    def unused(self, bindings: Iterable[JsonObject]) -> list[JsonObject]:
        """The ClusterRoles and Roles of the collection that nobody else is bound to. bindings: all of the cluster."""
        own = {binding["metadata"]["name"] for binding in self.bindings}
        used = {item["roleRef"]["name"] for item in bindings if item["metadata"]["name"] not in own}
        return [policy for policy in self._policies(ROLES) if policy["metadata"]["name"] not in used]

    @property
    def _is_bound_to_kubevirt(self) -> bool:
        return self.kubevirt_role and any(MIGRATE in ROLES[role] for role in self.roles)

    def _policies(self, roles: Iterable[str]) -> list[JsonObject]:
        found = (manifests(role_name(role), reasons(ROLES[role]), self.lease_namespace) for role in roles)
        return [policy for policies in found for policy in policies]

    def _binding(self, policy: JsonObject) -> JsonObject:
        """Its name begins with that of what it binds to, so that accounts do not share any."""
        kind, name = policy["kind"], policy["metadata"]["name"]
        metadata = {**policy["metadata"], "name": f"{name}:{self.namespace}:{self.name}"}
        group = RBAC_API_VERSION.partition("/")[0]
        return {
            **_object(RBAC_API_VERSION, f"{kind}Binding", metadata),
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        }


def _object(api_version: str, kind: str, metadata: JsonObject) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
