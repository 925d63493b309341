# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is in the cluster for each request: the VMI, the nodes it may go to, and its migrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import (
    find,
    find_migrations,
    find_vmi,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import (
    collection_path,
    object_path,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import by_vmi
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect

# What pins a pod to the wanted nodes, and the names of those nodes.
_Destination = tuple[Mapping[str, str], frozenset[str]]


def read_prospects(client: Client, requests: Iterable[MigrationRequest]) -> list[Prospect]:
    """One for each request, in their order. Each place is read once. Raises Failure, InvalidRequest."""
    requests = list(requests)
    namespaces = {request.namespace for request in requests}
    migrations = by_vmi(entry for namespace in namespaces for entry in find_migrations(client, namespace))
    different = {request.destination: request for request in requests}
    destinations = {name: _destination(client, request) for name, request in different.items()}
    prospects = []
    for request in requests:
        selector, nodes = destinations[request.destination]
        vmi = find_vmi(client, request.namespace, request.name)
        prospects.append(Prospect(request, vmi, selector, nodes, migrations.get(request.title, ())))
    return prospects


def _destination(client: Client, request: MigrationRequest) -> _Destination:
    if request.target_node:
        return _node(client, request.target_node)
    query = {"labelSelector": request.destination}
    page = client.get(
        collection_path("v1", None, "nodes"), f"list nodes with the labels {request.destination}", **query
    )
    return request.added_node_selector, frozenset(node["metadata"]["name"] for node in page["items"])


def _node(client: Client, name: str) -> _Destination:
    """A pod is pinned to a node by its label, which need not be the node's name."""
    node = find(client, object_path("v1", None, "nodes", name), f"read node {name}")
    if node is None:
        return {}, frozenset()
    hostname = (node["metadata"].get("labels") or {}).get(HOSTNAME)
    return {HOSTNAME: hostname} if hostname else {}, frozenset({name})
