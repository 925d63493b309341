# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a service account that has the rights of some roles, and of no others of the collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
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

    def strays(self, bindings: Iterable[JsonObject]) -> list[JsonObject]:
        """The bindings of its name by which it has other rights, wherever they stand. bindings: all of the cluster."""
        wanted = set(map(_key, self.wanted))
        return [item for item in bindings if self._is_named_for_it(item) and _key(item) not in wanted]

    def others(self, binding: Object) -> list[JsonObject]:
        """Whom a binding is for beside it."""
        return [subject for subject in binding.get("subjects") or () if subject != self._subject]

    def unused(self, policies: Iterable[JsonObject], bindings: Sequence[JsonObject]) -> list[JsonObject]:
        """The ClusterRoles and Roles of the collection that nobody else is bound to; both: all of the cluster."""
        names = set(map(role_name, ROLES))
        removed = {_key(stray) for stray in self.strays(bindings) if not self.others(stray)}
        used = {_role_key(binding) for binding in bindings if _key(binding) not in removed}
        return [policy for policy in policies if policy["metadata"]["name"] in names and _key(policy) not in used]

    @property
    def _is_bound_to_kubevirt(self) -> bool:
        return self.kubevirt_role and any(MIGRATE in ROLES[role] for role in self.roles)

    @property
    def _subject(self) -> JsonObject:
        return {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}

    def _binding_name(self, role: str) -> str:
        """It begins with that of what it binds to, so that accounts do not share any."""
        return f"{role}:{self.namespace}:{self.name}"

    def _is_named_for_it(self, binding: Object) -> bool:
        name: str = binding["metadata"]["name"]
        is_own = name.startswith(role_name("")) and name.endswith(self._binding_name(""))
        return is_own or name == self._binding(_KUBEVIRT_ROLE)["metadata"]["name"]

    def _policies(self, roles: Iterable[str]) -> list[JsonObject]:
        found = (manifests(role_name(role), reasons(ROLES[role]), self.lease_namespace) for role in roles)
        return [policy for policies in found for policy in policies]

    def _binding(self, policy: JsonObject) -> JsonObject:
        kind, name = policy["kind"], policy["metadata"]["name"]
        metadata = {**policy["metadata"], "name": self._binding_name(name)}
        group = RBAC_API_VERSION.partition("/")[0]
        return {
            **_object(RBAC_API_VERSION, f"{kind}Binding", metadata),
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [self._subject],
        }


def _object(api_version: str, kind: str, metadata: JsonObject) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _key(item: Object) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace") or "", metadata["name"]


def _role_key(binding: Object) -> tuple[str, str, str]:
    """That of the role that it binds to. A RoleBinding may bind to a ClusterRole as well."""
    role, namespace = binding["roleRef"], binding["metadata"].get("namespace") or ""
    return role["kind"], namespace if role["kind"] == "Role" else "", role["name"]
