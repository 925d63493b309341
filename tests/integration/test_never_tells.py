# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a whole run prints, writes and remembers of guests to whom somebody has confided a secret."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_replicaset import main as vmi_replicaset

from integration import playbooks
from integration.draining import Yard, confided
from unit.plugins.support.modules import ModuleRunner

NODES = ("untold-0", "untold-1")
SOURCE = NODES[0]
SECRET = "canary-6b1f"  # looked for, and never found

pytestmark = pytest.mark.gate


def test_never_shows_a_secret_of_a_replica_set(run: ModuleRunner, yard: Yard, tmp_path: Path) -> None:
    """Written by us, changed, and moved by a whole run that is as talkative as can be; it keeps what it remembers."""
    kubeconfig = str(yard.testbed.kubeconfig)
    plan, snapshot = tmp_path / "plan.json", tmp_path / "snapshot.json"
    hook, playbook = tmp_path / "hook.yml", tmp_path / "run.yml"
    hook.write_text(yaml.safe_dump([{"ansible.builtin.debug": {"msg": "maintained"}}]))
    playbook.write_text("- import_playbook: virtops.kubevirt.rolling_maintenance\n")
    settings = {
        "rolling_maintenance_kubeconfig": kubeconfig,
        "rolling_maintenance_tasks": str(hook),
        "rolling_maintenance_rebalance": False,
        "rolling_maintenance_keep_record": True,
        "plan_maintenance_run": "never-told",
        "plan_maintenance_nodes": [SOURCE],
        "plan_maintenance_path": str(plan),
        "plan_maintenance_snapshot": str(snapshot),
        "uncordon_wait_sleep": 1,
    }
    store = RunStore(connect_by({"kubeconfig": kubeconfig}, 10), "never-told", "medik8s-leases")
    with yard.emptied_afterwards():
        write = partial(run, vmi_replicaset, kubeconfig=kubeconfig, namespace=yard.namespace, name="told", diff=True)
        shown = [write(template=confided("told", SOURCE, SECRET), unplaceable="ignore")]
        done = playbooks.run(playbook, "-vvv", "--diff", "-e", json.dumps(settings))
        documents = {name: store.get(name) for name in store.names()}
        store.delete_all()
        shown.append(write(template=confided("told", SOURCE, f"{SECRET}-2"), unplaceable="ignore", wait=False))
    assert [result["changed"] for result in shown] == [True, True], shown
    assert "(hidden, changed)" in str(shown[-1]["diff"]["after"])
    assert (done.returncode, f"{yard.namespace}/told" in done.stdout) == (0, True), done.stdout + done.stderr
    assert SECRET not in json.dumps(shown) + done.stdout + done.stderr
    assert "plan" in documents
    assert [name for name, found in documents.items() if found and SECRET.encode() in found.content] == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {plan, snapshot} <= set(written)
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
