# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is in the cluster for each wish: the VMI, the nodes it may go to, and whether it is migrating."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import find, find_vmi, unfinished
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path, object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Prospect, Wish

_HOSTNAME = "kubernetes.io/hostname"

# What pins a pod to the wanted nodes, and the names of those nodes.
_Destination = tuple[Mapping[str, str], frozenset[str]]


def read_prospects(client: Client, wishes: Iterable[Wish]) -> list[Prospect]:
    """One for each wish, in their order. Each namespace and each destination is read once. Raises Failure, Mistake."""
    wishes = list(wishes)
    in_flight = {namespace: unfinished(client, namespace) for namespace in {wish.namespace for wish in wishes}}
    different = {wish.destination: wish for wish in wishes}
    destinations = {name: _destination(client, wish) for name, wish in different.items()}
    prospects = []
    for wish in wishes:
        selector, nodes = destinations[wish.destination]
        vmi = find_vmi(client, wish.namespace, wish.name)
        prospects.append(Prospect(wish, vmi, selector, nodes, in_flight[wish.namespace].get(wish.name)))
    return prospects


def _destination(client: Client, wish: Wish) -> _Destination:
    if wish.target_node:
        return _node(client, wish.target_node)
    query = {"labelSelector": wish.destination}
    page = client.get(collection_path("v1", None, "nodes"), f"list nodes with the labels {wish.destination}", **query)
    return wish.added_node_selector, frozenset(node["metadata"]["name"] for node in page["items"])


def _node(client: Client, name: str) -> _Destination:
    """A pod is pinned to a node by its label, which need not be the node's name."""
    node = find(client, object_path("v1", None, "nodes", name), f"read node {name}")
    if node is None:
        return {}, frozenset()
    hostname = (node["metadata"].get("labels") or {}).get(_HOSTNAME)
    return {_HOSTNAME: hostname} if hostname else {}, frozenset({name})
