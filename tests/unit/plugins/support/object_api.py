# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of fake_api.py with single objects in it that can be created, changed and deleted.

As a real one does, it refuses a write on an outdated resourceVersion, keeps nothing of a dry run, and notes who set
which field of a spec.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, Kind

from unit.plugins.support.fake_api import Answer, FakeApi, Object, Request, refusal

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"


@dataclass
class ObjectApi(FakeApi):
    """`objects`: by URL path. The list of nodes holds the objects below its path."""

    objects: dict[str, Object] = field(default_factory=dict)
    _versions: itertools.count[int] = field(default_factory=lambda: itertools.count(2))

    def add_node(self, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Object:
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels or {}}
        node: Object = {"kind": "Node", "metadata": metadata, "spec": {}, "status": {}, **fields}
        self.objects[f"{NODES}/{name}"] = node
        return node

    def node(self, name: str) -> Any:
        return self.objects[f"{NODES}/{name}"]

    def writes(self) -> list[Request]:
        """The requests so far that were to change something, in their order."""
        return [request for request in self.requests if request.method != "GET" and "reviews" not in request.path]

    def _list(self, request: Request) -> Answer:
        act = {
            "GET": self._get,
            "POST": self._create,
            "PATCH": self._change,
            "PUT": self._change,
            "DELETE": self._delete,
        }.get(request.method)
        known = request.path in self.objects or request.method == "POST"
        if act and known:
            return act(request)
        return super()._list(request)

    def _found(self, kind: Kind, request: Request) -> list[Object]:
        if kind is not BY_NAME["nodes"]:
            return super()._found(kind, request)
        name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
        nodes = (item for path, item in list(self.objects.items()) if path.startswith(f"{NODES}/"))
        return [node for node in nodes if name in ("", node["metadata"]["name"])]

    def _get(self, request: Request) -> Answer:
        return Answer(200, self.objects[request.path])

    def _create(self, request: Request) -> Answer:
        namespace, slash, _kind = request.path.partition("/namespaces/")[2].partition("/")
        if slash and f"{NAMESPACES}/{namespace}" not in self.objects:
            return refusal(404, "NotFound", f'namespaces "{namespace}" not found')
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return refusal(409, "AlreadyExists", "it already exists")
        new = copy.deepcopy(request.body)
        new["metadata"].setdefault("uid", f"uid-of-{next(self._versions)}")
        return self._store(path, request, {"metadata": {}}, new, 201)

    def _change(self, request: Request) -> Answer:
        old = self.objects[request.path]
        expected = request.body.get("metadata", {}).get("resourceVersion", old["metadata"]["resourceVersion"])
        if expected != old["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict", "the object has been modified")
        new = merge(old, request.body) if request.method == "PATCH" else _kept(old, request.body)
        return self._store(request.path, request, old, new, 200)

    def _delete(self, request: Request) -> Answer:
        old = self.objects[request.path]
        expected = request.body.get("preconditions", {})
        if any(old["metadata"].get(name) != value for name, value in expected.items()):
            return refusal(409, "Conflict", "the precondition failed")
        # Options in the body make the server pass over those in the query.
        if "dryRun" not in (request.body or request.query):
            del self.objects[request.path]
        return Answer(200, old)

    def _store(self, path: str, request: Request, old: Object, new: Object, status: int) -> Answer:
        new = copy.deepcopy(new)
        new["metadata"]["resourceVersion"] = str(next(self._versions))
        changed = {key for key, value in new.get("spec", {}).items() if old.get("spec", {}).get(key) != value}
        if changed:
            entry = managed(request.query.get("fieldManager", "unknown"), *changed)
            new["metadata"]["managedFields"] = [*new["metadata"].get("managedFields", ()), entry]
        if "dryRun" not in request.query:
            self.objects[path] = new
        return Answer(status, new)


def _kept(old: Object, new: Object) -> Object:
    """With its uid, which nobody writes."""
    own = {"uid": old["metadata"]["uid"]} if "uid" in old["metadata"] else {}
    return {**new, "metadata": {**new["metadata"], **own}}


def managed(manager: str, *fields: str, time: str = "2026-01-01T00:00:00Z") -> Object:
    """An entry of metadata.managedFields: who set these fields of the spec."""
    owned: Object = {"f:spec": {f"f:{name}": {} for name in fields}}
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": owned}


def merge(old: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    base = old if isinstance(old, dict) else {}
    kept = {key: value for key, value in base.items() if key not in patch}
    return {**kept, **{key: merge(base.get(key), value) for key, value in patch.items() if value is not None}}
