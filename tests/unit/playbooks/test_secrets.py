# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests are told in confidence stands nowhere in what a run prints, writes and remembers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore

from testbed.pki import Authority
from unit.playbooks.playing import play
from unit.plugins.support import confidential
from unit.plugins.support.draining_api import vm_path
from unit.plugins.support.fake_api import serving
from unit.plugins.support.modules import isolate
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import RunApi, busy_run

pytestmark = pytest.mark.playbook

CANARY = "canary-6b1f"
GIVEN = {
    "plan_maintenance_run": "canary",
    "plan_maintenance_nodes": ["n1"],
    "plan_maintenance_policies": [{"policy": "stop"}],
    "plan_maintenance_path": "plan.json",
}
PLAYS = [
    {"hosts": "localhost", "gather_facts": False, "roles": ["virtops.kubevirt.plan_maintenance"]},
    {"hosts": "maintenance", "gather_facts": False, "roles": ["virtops.kubevirt.drain"]},
]


def guarded() -> RunApi:
    """VMI db, which can be migrated, and VM pet, which cannot, know the secret."""
    fake = busy_run()
    for name in ("db", "pet"):
        fake.add_vm(name, migratable=name == "db")
        vmi = next(item for path, item in fake.objects.items() if path.endswith(f"/virtualmachineinstances/{name}"))
        template = fake.objects[vm_path(name)]["spec"]["template"]
        for holder in (vmi, template):
            holder.setdefault("metadata", {})["annotations"] = confidential.notes(CANARY)
            holder["spec"] |= confidential.spec(CANARY)
            holder["spec"]["domain"] |= confidential.domain(CANARY)
    for name in ("n1", "n2", "n3"):
        fake.node(name)["metadata"]["labels"]["kubevirt.io/sev"] = "true"
        fake.node(name)["status"]["allocatable"]["devices.kubevirt.io/sev"] = "10"
    return fake


def test_a_run_shows_and_keeps_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch, tmp_path)
    authority, api = Authority(tmp_path), guarded()
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, api, authority)
        kubeconfig = tmp_path / "files/cluster.kubeconfig"
        options = ("-vvv", "--diff", "-e", json.dumps(GIVEN))
        told, status = play(tmp_path, yaml.safe_dump(PLAYS), *options, kubeconfig=kubeconfig, begun_in=tmp_path)
        store = RunStore(connect_by({"kubeconfig": str(kubeconfig)}, 5), "canary", "medik8s-leases")
        remembered = {name: store.get(name) for name in store.names()}
    assert (status, "db: n1 -> " in told, "pet" in told) == (0, True, True), told
    assert CANARY not in told
    assert {"plan"} <= set(remembered)
    assert [name for name, document in remembered.items() if document and CANARY.encode() in document.content] == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"plan.json", "plan.txt"} <= {path.name for path in written}
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []
    # As what a run writes on objects, beside the VMs themselves.
    assert CANARY not in str([request.body for request in api.writes()])
