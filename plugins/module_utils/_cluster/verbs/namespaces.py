# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create an object in a namespace that may be missing."""

from __future__ import annotations

from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


def create_in(
    client: Client, namespace: str, path: str, attempted: str, body: JsonObject, *, dry_run: bool, **query: str
) -> JsonObject:
    """The object as the server keeps it; `path`: of its collection. `query`: of the writes. Raises Failure."""
    try:
        created: JsonObject = client.create(path, attempted, body, **query)
    except Failure as error:
        if not error.gone:
            raise
        _create(client, namespace, query)
        # In a dry run the namespace is still missing, and all that can be checked has been.
        created = body if dry_run else client.create(path, attempted, body, **query)
    return created


def _create(client: Client, name: str, query: dict[str, str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    try:
        client.create("/api/v1/namespaces", f"create namespace {name}", namespace, **query)
    except Failure as error:
        if error.status != HTTPStatus.CONFLICT:  # somebody else was quicker
            raise
