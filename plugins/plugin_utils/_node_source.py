# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Nodes for an inventory: from the API, or from what a cache keeps of an earlier look.

Ansible's caches take seconds for thousands of small values and none for a long text, so nodes are kept as one text.

No text of theirs is ever a template, whoever has written it. Since 2.19 Ansible takes for a template only what is
trusted. But `ansible-inventory` prints what is not as a mapping, `{"__ansible_unsafe": ...}`, and AWX, which reads
that, expects a text for an address. So what could be no template anyway, and no condition that calls anything, is
trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from ansible.utils.unsafe_proxy import wrap_var
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    Persistence,
    Tell,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import read_nodes
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import require_shape
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_KIND
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import require

try:
    from ansible.template import trust_as_template
except ImportError:  # before 2.19, where every text is trusted that is not marked

    def trust_as_template(value: str) -> str:
        return value


_SCHEMA = "virtops.kubevirt/nodes/1"
# What says whose nodes they are, of the options and of the variables that stand for them.
_WHOSE = ("host", "kubeconfig", "context", "username", "impersonate_user", "impersonate_groups")

# No braces, of which templates are made, and no brackets, quotes and bars, of which calls and filters are.
_HARMLESS = re.compile(r"[A-Za-z0-9 ._:/@+-]*")


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """`connection`: the options that modules have for it, with request_timeout."""

    connection: Mapping[str, Any]
    label_selectors: Sequence[str]
    field_selectors: Sequence[str]

    @property
    def identity(self) -> str:
        """The same for what gives the same nodes. Another context or selector is never answered from its cache."""
        whose = [self.connection.get(name) or os.environ.get(f"K8S_AUTH_{name.upper()}") for name in _WHOSE]
        content = [whose, os.environ.get("KUBECONFIG"), list(self.label_selectors), list(self.field_selectors)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class NodeLook:
    """Nodes as the API gives them. `read_at`: just before they were read."""

    nodes: Sequence[JsonObject]
    read_at: datetime

    def to_cache(self) -> dict[str, str]:
        return {"schema": _SCHEMA, "read_at": self.read_at.isoformat(), "nodes": json.dumps(self.nodes)}


def from_cache(content: object) -> NodeLook | None:
    """None for what another release, or somebody else, has left there: it is read anew then."""
    if not isinstance(content, Mapping) or content.get("schema") != _SCHEMA:
        return None
    nodes, read_at = embedded(content.get("nodes")), content.get("read_at")
    try:
        return NodeLook(nodes, datetime.fromisoformat(str(read_at))) if isinstance(nodes, list) else None
    except ValueError:
        return None


def look(query: NodeQuery, tell: Tell) -> NodeLook:
    """tell: takes a line for people when trouble lasts. Raises Failure, MissingLibrary, SnapshotError."""
    require("kubernetes", "to read the nodes of the cluster")
    client = connect_by(query.connection, query.connection["request_timeout"], Persistence(None, tell))
    now = datetime.now(timezone.utc)
    try:
        nodes = read_nodes(client, ",".join(query.label_selectors), ",".join(query.field_selectors))
    except Failure as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise
        remedy = "Correct label_selectors and field_selectors."
        raise Failure(error.attempted, error.where, error.message, remedy, status=400, reason=error.reason) from error
    for node in nodes:
        require_shape(BY_KIND["Node"], node)
    return NodeLook(nodes, now)


def as_variable(value: Any) -> Any:
    """Plain data, with its texts marked."""
    if isinstance(value, Mapping):
        return {key: as_variable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_variable(inner) for inner in value]
    if isinstance(value, str) and _HARMLESS.fullmatch(value):
        return trust_as_template(value)
    return wrap_var(value)
