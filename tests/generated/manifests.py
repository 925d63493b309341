# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of a role, with what each verb is for beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import indent

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import (
    LEASE_NAMESPACE,
    RBAC_API_VERSION,
    Right,
    role_name,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import ROLES, reasons

Reasons = Mapping[Right, list[str]]

HEAD = """\
# SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Made by `make generate`. What a user needs to act as {role}, whom a ClusterRoleBinding and a RoleBinding let do so.
---
apiVersion: v1
kind: List
items:
"""
NAMESPACE = f"""\
# The Leases stand there. Whoever may not create namespaces finds it made.
apiVersion: v1
kind: Namespace
metadata:
  name: {LEASE_NAMESPACE}
"""


def text(role: str) -> str:
    """One document, as linters want it: a list of the objects."""
    needed = reasons(ROLES[role])
    everywhere = {right: why for right, why in needed.items() if not right.of_leases}
    of_leases = {right: why for right, why in needed.items() if right.of_leases}
    objects = [_object("ClusterRole", role, "", everywhere)]
    if of_leases:
        role_of_leases = _object("Role", role, f"  namespace: {LEASE_NAMESPACE}\n", of_leases)
        objects = [NAMESPACE, *objects, role_of_leases]
    return HEAD.format(role=role) + "".join(map(_item, objects))


def _item(text: str) -> str:
    """Of a list: its first line that is no comment begins it."""
    comment = text[: text.index("apiVersion")]
    item = indent(text.removeprefix(comment), "    ")
    return indent(comment, "  ") + item.replace("    ", "  - ", 1)


def _object(kind: str, role: str, namespace: str, needed: Reasons) -> str:
    head = f'apiVersion: {RBAC_API_VERSION}\nkind: {kind}\nmetadata:\n  name: "{role_name(role)}"\n{namespace}rules:\n'
    return head + "".join(_rules(needed))


def _rules(needed: Reasons) -> Iterator[str]:
    """One for each resource, so that each verb has its reasons above it."""
    resources: dict[tuple[str, str, str], list[Right]] = {}
    for right in sorted(needed):
        resources.setdefault((right.group, right.resource, right.name), []).append(right)
    for (group, resource, name), rights in resources.items():
        for right in rights:
            yield from (f"  # {right.verb}, to {why}\n" for why in needed[right])
        yield f"  - apiGroups: [{group or json.dumps(group)}]\n"
        yield f"    resources: [{resource}]\n"
        yield f"    resourceNames: [{name}]\n" if name else ""
        yield f"    verbs: [{', '.join(right.verb for right in rights)}]\n"
