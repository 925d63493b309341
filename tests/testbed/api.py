# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small synchronous client of the Kubernetes API for bringing testbeds up and for tests.

Objects are plain dictionaries as the API server gives them; nothing is converted to typed models.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

Object = dict[str, Any]

FIELD_MANAGER = "testbed"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
# Plurals that are not the lower-case kind plus "s".
IRREGULAR_PLURALS = {
    "NetworkAttachmentDefinition": "network-attachment-definitions",
    "NetworkPolicy": "networkpolicies",
    "MigrationPolicy": "migrationpolicies",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
    "Endpoints": "endpoints",
}
CLUSTER_SCOPED = frozenset(
    {
        "APIService",
        "CSIDriver",
        "CSINode",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MigrationPolicy",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "RuntimeClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VirtualMachineClusterInstancetype",
        "VirtualMachineClusterPreference",
    }
)


class ApiError(Exception):
    """The API server said no: HTTP status, reason and message are the server's own."""

    def __init__(self, method: str, path: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


def plural(kind: str) -> str:
    return IRREGULAR_PLURALS.get(kind, kind.lower() + "s")


def resource_path(api_version: str, resource: str, namespace: str | None = None, name: str | None = None) -> str:
    """URL path of a collection, or of one object when `name` is given; `resource` is the plural."""
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{resource}" + (f"/{name}" if name else "")


def object_path(obj: Mapping[str, Any]) -> str:
    """URL path of an object from its own apiVersion, kind and metadata; namespace `default` where none is given."""
    metadata = obj["metadata"]
    namespace = None if obj["kind"] in CLUSTER_SCOPED else metadata.get("namespace", "default")
    return resource_path(obj["apiVersion"], plural(obj["kind"]), namespace, metadata["name"])


def ssl_context(kubeconfig: Mapping[str, Any]) -> ssl.SSLContext:
    """TLS context with the CA and client certificate of the kubeconfig's first cluster and user."""
    cluster = kubeconfig["clusters"][0]["cluster"]
    user = kubeconfig["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if "client-certificate-data" in user:
        # ssl reads a certificate chain from files only.
        with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
            pem.write(base64.b64decode(user["client-certificate-data"]))
            pem.write(base64.b64decode(user["client-key-data"]))
            pem.flush()
            context.load_cert_chain(pem.name)
    return context


def connection(kubeconfig: Path, impersonate: str | None = None) -> dict[str, Any]:
    """Keyword arguments for `httpx.Client` or `httpx.AsyncClient` that reach the kubeconfig's cluster."""
    config = yaml.safe_load(kubeconfig.read_text())
    headers = {"Accept": "application/json"}
    if impersonate:
        headers["Impersonate-User"] = impersonate
    token = config["users"][0]["user"].get("token")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return {
        "base_url": config["clusters"][0]["cluster"]["server"],
        "verify": ssl_context(config),
        "headers": headers,
        # Testbeds listen on loopback: a proxy from the environment must not see their traffic.
        "trust_env": False,
    }


def checked(response: httpx.Response) -> Object:
    """The decoded body of a response, or ApiError in the server's words."""
    if response.is_success:
        content: Object = response.json() if response.content[:1] in (b"{", b"[") else {"text": response.text}
        return content
    try:
        status = response.json()
    except ValueError:
        status = {"message": response.text.strip()}
    raise ApiError(
        response.request.method,
        response.request.url.path,
        response.status_code,
        status.get("reason", response.reason_phrase),
        status.get("message", ""),
    )


class Api:
    """One user's connection to one cluster. Thread-safe (httpx clients are)."""

    def __init__(self, kubeconfig: Path | str, impersonate: str | None = None, timeout: float = 30) -> None:
        self.kubeconfig = Path(kubeconfig)
        self.http = httpx.Client(**connection(self.kubeconfig, impersonate), timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def get(self, path: str, **params: str | int) -> Object:
        return checked(self.http.get(path, params=params))

    def items(self, path: str, **params: str | int) -> list[Object]:
        """All objects of a collection, read in pages of 500."""
        found: list[Object] = []
        params = {"limit": 500, **params}
        while True:
            page = self.get(path, **params)
            found += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return found
            params["continue"] = token

    def create(self, path: str, obj: Mapping[str, Any], **params: str) -> Object:
        return checked(self.http.post(path, json=obj, params=params))

    def replace(self, path: str, obj: Mapping[str, Any], **params: str) -> Object:
        return checked(self.http.put(path, json=obj, params=params))

    def apply(self, obj: Mapping[str, Any], subresource: str = "") -> Object:
        """Server-side apply, so that repeating it is harmless; with a subresource, to that (e.g. `status`)."""
        path = object_path(obj) + (f"/{subresource}" if subresource else "")
        return checked(
            self.http.patch(
                path,
                content=json.dumps(obj),
                params={"fieldManager": FIELD_MANAGER, "force": "true"},
                # JSON is YAML, and apply takes the YAML type only.
                headers={"Content-Type": "application/apply-patch+yaml"},
            )
        )

    def patch(self, path: str, body: Any, kind: str = "merge") -> Object:
        return checked(
            self.http.patch(path, content=json.dumps(body), headers={"Content-Type": PATCH_TYPES[kind]}),
        )

    def delete(self, path: str, **params: str | int) -> Object:
        return checked(self.http.delete(path, params=params))

    def watch(self, path: str, timeout: float, **params: str | int) -> Iterator[Object]:
        """Events of a collection from its present state on, until `timeout` seconds have passed."""
        listed = self.get(path, **params)
        for item in listed["items"]:
            yield {"type": "ADDED", "object": item}
        yield from self.changes(path, listed["metadata"]["resourceVersion"], timeout, **params)

    def changes(self, path: str, version: str, timeout: float, **params: str | int) -> Iterator[Object]:
        """Events of a collection since a resource version, until `timeout` seconds have passed."""
        query = {
            **params,
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": max(1, round(timeout)),
        }
        with self.http.stream("GET", path, params=query, timeout=httpx.Timeout(30, read=timeout + 10)) as response:
            for line in response.iter_lines():
                yield json.loads(line)
