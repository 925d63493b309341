# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in which much can be done wrong: the application customapp, and what stands in its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import write
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import holder_identity, run_lease_name
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import document, encode_all
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

from integration.clusters import KUBEVIRT, VMIS, cordoned, delete, loaded, vmi_on
from integration.simulator.lab import new_vmi
from testbed.access import service_account_kubeconfig
from testbed.api import Api, Object, object_path, resource_path
from testbed.handle import RunningTestbed
from testbed.pki import Authority, encoded
from testbed.scenarios import files
from testbed.waiting import wait_for

NAMESPACE = "customapp"
PICKY, STUCK = "picky", "stuck"
READER: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "bad-input-reader"},
    "rules": [{"apiGroups": ["", "kubevirt.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
}
ANOTHER_RUN: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "node-kni-worker5", "namespace": "medik8s-leases"},
    "spec": {"holderIdentity": "them", "leaseDurationSeconds": 3600},
}
ANOTHER_INVOCATION: Object = {
    **ANOTHER_RUN,
    "metadata": {"name": run_lease_name("taken"), "namespace": "medik8s-leases"},
    "spec": {"holderIdentity": holder_identity("taken", "elsewhere"), "leaseDurationSeconds": 3600},
}
# Lists with a node whose memory is no amount, as only somebody who edits a snapshot can write it.
ODD = {
    "nodes": encode_all([{"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"memory": "much"}}}]),
    **{name: encode_all([]) for name in BY_NAME if name != "nodes"},
}
POD: Object = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "resources": {}}]},
}


@dataclass(frozen=True)
class Scene:
    """`variables`: what the cases may use by name."""

    scratch: Path
    kubeconfig: Path
    variables: dict[str, Any]

    def filled_in(self, text: str) -> str:
        for name, value in self.variables.items():
            text = text.replace(f"{{{{ {name} }}}}", str(value))
        return text


@contextmanager
def set_up(testbed: RunningTestbed, scratch: Path) -> Iterator[Scene]:
    api = testbed.api
    with loaded(api, files.read(files.FOLDER / "customapp.yaml")), _obstacles(api), cordoned(api, "kni-worker6"):
        (scratch / "cut.json").write_text('{"snapshot": {"schema_version": 1, "tak')
        (scratch / "cut.json").chmod(0o600)
        write(scratch / "odd.json", document(ODD, cluster=Cluster("u", "v1", "v1"), taken_at="2026-01-01T00:00:00Z"))
        movable = vmi_on(api, NAMESPACE, "kni-worker", "blackbox")
        variables = {
            "scratch": str(scratch),
            "dead_kubeconfig": str(_changed(testbed.kubeconfig, scratch, "dead", {"server": "https://127.0.0.1:1"})),
            "distrustful_kubeconfig": str(_changed(testbed.kubeconfig, scratch, "distrustful", _other_trust(scratch))),
            "limited_kubeconfig": str(service_account_kubeconfig(testbed.home, "bad-input/nobody")),
            "reader_kubeconfig": str(service_account_kubeconfig(testbed.home, "bad-input/reader")),
            "movable": movable["metadata"]["name"],
            "elsewhere": "kni-worker3",
            "picky": PICKY,
            "stuck": STUCK,
            "pod": POD,
        }
        yield Scene(scratch, testbed.kubeconfig, variables)


@contextmanager
def _obstacles(api: Api) -> Iterator[None]:
    picky = new_vmi(NAMESPACE, PICKY, "64Mi", nodeSelector={"performance": "low"})
    # Not on kni-worker, which a case asks for: who is there already need not be able to migrate.
    stuck = new_vmi(NAMESPACE, STUCK, "64Mi", nodeSelector={"kubernetes.io/hostname": "kni-worker2"})
    stuck["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "bridge": {}}]
    binding = {
        "apiVersion": READER["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": READER["metadata"],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bad-input-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "bad-input"}],
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "medik8s-leases"}}
    path = resource_path("v1", "nodes", name="kni-worker")
    label = "performance"
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    leases = [{**lease, "spec": {**lease["spec"], "renewTime": now}} for lease in (ANOTHER_RUN, ANOTHER_INVOCATION)]
    objects = [READER, binding, *leases, picky, stuck]
    api.patch(path, {"metadata": {"labels": {label: "low"}}})
    for obj in (namespace, *objects):
        api.apply(obj)
    try:
        wait_for("the obstacles to run", lambda: all(_migratable(api, name) for name in (PICKY, STUCK)))
        yield
    finally:
        for obj in objects:
            delete(api, object_path(obj))
        api.patch(path, {"metadata": {"labels": {label: None}}})


def _migratable(api: Api, name: str) -> bool:
    status = api.get(resource_path(KUBEVIRT, VMIS, NAMESPACE, name))["status"]
    return any(condition["type"] == "LiveMigratable" for condition in status.get("conditions", ()))


def _other_trust(scratch: Path) -> dict[str, str]:
    folder = scratch / "authority"
    folder.mkdir()
    return {"certificate-authority-data": encoded(Authority(folder).cert)}


def _changed(kubeconfig: Path, scratch: Path, name: str, cluster: dict[str, str]) -> Path:
    """A kubeconfig that says something else of the cluster."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["clusters"][0]["cluster"] |= cluster
    path = scratch / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    path.chmod(0o600)
    return path
