# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the Kubernetes API. One object and all objects of a kind are two functions on purpose.

A path whose last part is empty is that of the whole collection, and to delete it deletes everything in it. So no part
is ever left out because it is empty, and a name that would make another path is refused.
"""

from __future__ import annotations

from urllib.parse import quote

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import name_problem


def collection_path(api_version: str, namespace: str | None, resource: str) -> str:
    """All objects of a resource, in a namespace or (None) in the whole cluster. Raises InvalidRequest."""
    prefix = f"/{'apis' if '/' in api_version else 'api'}/{api_version}"
    place = "" if namespace is None else f"/namespaces/{_part('namespaces', namespace)}"
    return f"{prefix}{place}/{resource}"


def object_path(api_version: str, namespace: str | None, resource: str, name: str) -> str:
    """One object; `namespace` is None for a kind without. Raises InvalidRequest."""
    return f"{collection_path(api_version, namespace, resource)}/{_part(resource, name)}"


def _part(of: str, name: str) -> str:
    problem = name_problem(name)
    if problem:
        raise InvalidRequest("ask the Kubernetes API", [f"the name of one of the {of} {problem}"], "Correct the task.")
    return quote(name, safe="")
