# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take a snapshot: read the cluster into a document, or only what the scheduler would look at to place a pod now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.collector import (
    paused_collector,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import cluster_uid
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.permissions import (
    explain_forbidden,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster, Header
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import (
    Document,
    document,
    header_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS, Kind

_FIND = "find KubeVirt in the cluster"
# KubeVirt's configuration, quotas and classes shape launcher pods; the others are kube-scheduler's.
_PLACING = (
    "kubevirts",
    "namespaces",
    "nodes",
    "resourcequotas",
    "limitranges",
    "priorityclasses",
    "runtimeclasses",
    "networkattachmentdefinitions",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "pods",
)
_STORAGE = (
    "pvcs",
    "pvs",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
)
_PAGE_SIZE = 500


def take(client: Client, page_size: int, kinds: Sequence[Kind] = KINDS) -> Document:
    """Read everything that placement needs, or some of it, with namespaces, which tell the cluster. Raises Failure."""
    try:
        with paused_collector():
            return _take(client, page_size, kinds)
    except Failure as error:
        if error.status != 403:
            raise
        raise explain_forbidden(client, kinds, error) from error


def _take(client: Client, page_size: int, kinds: Sequence[Kind]) -> Document:
    taken_at, version = now(), _kubernetes_version(client)
    # First and alone: a cluster without KubeVirt is told from one short request, not after its 100,000 pods.
    found = read_lists(client, [BY_NAME["kubevirts"]], page_size)
    kubevirt = _deployed(client, found["kubevirts"])
    found |= read_lists(client, [kind for kind in kinds if kind.name not in found], page_size)
    missing = [name for name, lines in found.items() if lines is None]
    _require(client, missing)
    lists = {name: lines or () for name, lines in found.items()}
    cluster = Cluster(_uid(lists["namespaces"]), version, _kubevirt_version(kubevirt))
    return document(lists, cluster=cluster, taken_at=taken_at, missing_kinds=missing)


def now() -> str:
    """As a snapshot says when it was taken."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_header(client: Client, lists: Mapping[str, Iterable[Object]], taken_at: str) -> Header:
    """Of a snapshot that would have these objects alone, by the names of its lists, which have been read already.

    What may not be read of the cluster is empty, as a task may have no other use for the right. Raises Failure.
    """
    cluster = Cluster(
        _allowed(lambda: cluster_uid(client)),
        _allowed(lambda: _kubernetes_version(client)),
        _allowed(lambda: _listed_version(client)),
    )
    return header_of(lists, cluster=cluster, taken_at=taken_at)


def _allowed(read: Callable[[], str]) -> str:
    try:
        return read()
    except Failure as error:
        if error.status in (403, 404):
            return ""
        raise


def _kubernetes_version(client: Client) -> str:
    return str(client.get("/version", "read the server's version")["gitVersion"])


def _listed_version(client: Client) -> str:
    found = client.get(BY_NAME["kubevirts"].path, "read KubeVirt's version")["items"]
    return _kubevirt_version(found[0] if found else {})


def _kubevirt_version(kubevirt: Mapping[str, Any]) -> str:
    return str((kubevirt.get("status") or {}).get("observedKubeVirtVersion") or "")


def _deployed(client: Client, lines: Sequence[bytes] | None) -> Mapping[str, Any]:
    """The KubeVirt object of a cluster in which KubeVirt runs."""
    if lines is None:
        raise Failure(
            _FIND,
            client.server,
            "the API server knows no kubevirts.kubevirt.io, so KubeVirt is not installed",
            "Install KubeVirt, or check that host, kubeconfig and context point to the right cluster.",
            reason="KubeVirtNotInstalled",
        )
    kubevirt = json.loads(lines[0]) if lines else {}
    phase = (kubevirt.get("status") or {}).get("phase")
    if phase != "Deployed":
        state = f"is in phase {phase or 'unknown'}" if lines else "does not exist"
        raise Failure(
            _FIND,
            client.server,
            f"its definitions are installed, but its KubeVirt object {state}, so KubeVirt is not deployed",
            "Create the KubeVirt object or wait until its phase is Deployed, and look into virt-operator's log.",
            reason="KubeVirtNotDeployed",
        )
    return kubevirt


def _require(client: Client, missing: Sequence[str]) -> None:
    needed = [BY_NAME[name].title for name in missing if not (BY_NAME[name].optional or BY_NAME[name].dispensable)]
    if needed:
        raise Failure(
            "read the cluster",
            client.server,
            f"the API server does not serve {', '.join(needed)}",
            "Check that the versions of Kubernetes and KubeVirt are supported.",
            status=404,
            reason="NotFound",
        )


def _uid(namespaces: Sequence[bytes]) -> str:
    """A cluster has no name of its own; its namespace kube-system lives as long as it does."""
    for line in namespaces:
        item = json.loads(line)
        if item["metadata"]["name"] == "kube-system":
            return str(item["metadata"]["uid"])
    return ""


def read_placement_lists(client: Client, *, storage: bool) -> Lists:
    """Lists by their names in a snapshot. `storage`: whether the pod has volumes of the cluster. Raises Failure."""
    kinds = [BY_NAME[name] for name in (*_PLACING, *(_STORAGE if storage else ()))]
    try:
        with paused_collector():
            lines = read_lists(client, kinds, _PAGE_SIZE)
            return {name: [json.loads(line) for line in found or ()] for name, found in lines.items()}
    except Failure as error:
        if error.status != 403:
            raise
        raise explain_forbidden(client, kinds, error) from error
