# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install KubeVirt into a testbed's API server: what virt-operator would do in a real cluster.

The objects come from KubeVirt's own packages (binaries/kubevirt/manifests). They are changed only where the testbed's
virt-api listens on loopback instead of behind a Service.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from testbed.api import Api, Object, object_path
from testbed.build import binary
from testbed.pki import encoded
from testbed.waiting import wait_for

NAMESPACE = "kubevirt"
# virt-api answers for these once its webhooks are installed, so they come last.
WEBHOOKS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
# The pods of these are simulated like all pods; the real virt-api and virt-controller run beside the cluster.
WORKLOADS = frozenset({"DaemonSet", "Deployment", "PodDisruptionBudget"})
# Without Multus no network is attached, but virt-controller looks at the definitions of networks all the same.
NETWORKS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
    "spec": {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": {
            "kind": "NetworkAttachmentDefinition",
            "plural": "network-attachment-definitions",
            "singular": "network-attachment-definition",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"config": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}


def manifests() -> list[Object]:
    """Everything virt-operator installs, as KubeVirt's own code makes it."""
    said = subprocess.run([binary("manifests")], capture_output=True, check=True).stdout
    items: list[Object] = json.loads(said)["items"]
    return [without_empty_status(item) for item in items]


def without_empty_status(obj: Object) -> Object:
    """Go's encoder prints `status: {}` and nulls, which server-side apply would claim or refuse."""
    return {key: value for key, value in obj.items() if key != "status"} | {
        "metadata": {key: value for key, value in obj["metadata"].items() if value is not None}
    }


def apply_all(api: Api, objects: Iterable[Object]) -> None:
    """Apply objects side by side; the first refusal is raised."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(api.apply, objects))


def install_definitions(api: Api, objects: list[Object]) -> None:
    """The CRDs and that of Multus, then wait until the API server serves them."""
    crds = [NETWORKS, *(item for item in objects if item["kind"] == "CustomResourceDefinition")]
    apply_all(api, crds)
    wait_for("KubeVirt's kinds to be served", lambda: all(established(api.get(object_path(crd))) for crd in crds))


def established(crd: Object) -> bool:
    # The API server stores null until the first condition is there.
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def install_configuration(api: Api, ca: Path, virt_api_port: int) -> None:
    """Namespace, CA bundle, Service and KubeVirt object: what virt-api and virt-controller look for when they start."""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kubevirt-ca", "namespace": NAMESPACE},
            "data": {"ca-bundle": ca.read_text()},
        }
    )
    api.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "virt-api", "namespace": NAMESPACE},
            "spec": {
                "type": "ExternalName",
                "externalName": "localhost",
                "ports": [{"name": "https", "port": virt_api_port}],
            },
        }
    )
    kubevirt: Object = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": NAMESPACE},
    }
    api.apply({**kubevirt, "spec": {}})
    # Without a phase KubeVirt ignores the object's configuration; virt-operator would set it.
    status = {
        "phase": "Deployed",
        "defaultArchitecture": "amd64",
        "observedKubeVirtVersion": "v1.8.4",
        "targetKubeVirtVersion": "v1.8.4",
        "operatorVersion": "v1.8.4",
    }
    api.apply({**kubevirt, "status": status}, subresource="status")


def install_access(api: Api, objects: list[Object]) -> None:
    """ServiceAccounts, roles and the priority class of KubeVirt's components."""
    others = WEBHOOKS | WORKLOADS | {"CustomResourceDefinition", "APIService"}
    apply_all(api, [item for item in objects if item["kind"] not in others])


def install_webhooks(api: Api, objects: list[Object], ca: Path, virt_api_port: int) -> None:
    """Admission webhooks and the subresource API, both answered by the testbed's virt-api."""
    bundle = encoded(ca)
    for item in objects:
        if item["kind"] in WEBHOOKS:
            for webhook in item["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": f"https://127.0.0.1:{virt_api_port}{path}", "caBundle": bundle}
            api.apply(item)
        elif item["kind"] == "APIService":
            item["spec"]["service"]["port"] = virt_api_port
            api.apply({**item, "spec": {**item["spec"], "caBundle": bundle}})
    for item in objects:
        if item["kind"] == "APIService":
            wait_for(f"API service {item['metadata']['name']}", served(api, object_path(item)))


def served(api: Api, path: str) -> Callable[[], bool]:
    def check() -> bool:
        conditions: list[dict[str, Any]] = api.get(path).get("status", {}).get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions)

    return check


def install_workloads(api: Api, objects: list[Object]) -> None:
    """virt-handler's DaemonSet and the virt-api and virt-controller Deployments, with their PodDisruptionBudgets."""
    for item in objects:
        if item["kind"] in WORKLOADS:
            # Created, not applied: virt-api's own ports have the same number twice, which apply refuses.
            api.create(object_path(item).rsplit("/", 1)[0], item)
