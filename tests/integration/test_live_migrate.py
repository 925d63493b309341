# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role live_migrate asks about the migration that it would start, and that one succeeds or is never begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from integration.clusters import KUBEVIRT, MIGRATIONS, cordoned, remove_deserted
from integration.playbooks import run
from integration.simulator.lab import Lab
from testbed.api import resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for

RACKS = {"role-0": "a", "role-1": "a", "role-2": "b"}


@pytest.fixture
def lab(testbed: RunningTestbed, namespace: str) -> Iterator[Lab]:
    for name, rack in RACKS.items():
        testbed.api.create("/api/v1/nodes", fake_node(name, labels={"rack": rack, "example.com/role": "here"}))
    lab = Lab(testbed, namespace, tuple(RACKS))
    with cordoned(testbed.api, "role-1"), cordoned(testbed.api, "role-2"):
        lab.start("vm", nodeSelector={"example.com/role": "here"})
    yield lab
    testbed.drop_namespace(namespace)
    remove_deserted(testbed.api, RACKS)


def migrate(lab: Lab, folder: Path, **where: object) -> tuple[int, str]:
    """Exit code and output of a playbook with the role."""
    vmi = {"namespace": lab.namespace, "name": "vm", **where}
    role = {"role": "virtops.kubevirt.live_migrate", "vars": {"live_migrate_vmis": [vmi]}}
    defaults = {"group/virtops.kubevirt.all": {"kubeconfig": str(lab.testbed.kubeconfig)}}
    play = {"hosts": "localhost", "gather_facts": False, "module_defaults": defaults, "roles": [role]}
    playbook = folder / "play.yml"
    playbook.write_text(yaml.safe_dump([play]))
    done = run(playbook, "-e", f"live_migrate_snapshot={folder}/cluster.json")
    return done.returncode, done.stdout + done.stderr


def attempts(lab: Lab) -> int:
    return len(lab.api.items(resource_path(KUBEVIRT, MIGRATIONS, lab.namespace)))


def test_the_labels_of_the_migration_count(lab: Lab, tmp_path: Path) -> None:
    """Of the two other nodes only the cordoned one has the labels: there is a place, but not for this migration."""
    with cordoned(lab.api, "role-2"):
        code, told = migrate(lab, tmp_path, added_node_selector={"rack": "b"})
        assert code != 0
        assert "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. Make room" in told
        assert attempts(lab) == 0
        code, told = migrate(lab, tmp_path, target_node="role-2")
        assert code != 0
        assert "to role-2: node(s) were unschedulable. Make room" in told
        assert attempts(lab) == 0
    wait_for("the taint of the cordon to go", lambda: not lab.node("role-2")["spec"].get("taints"))
    code, told = migrate(lab, tmp_path, added_node_selector={"rack": "b"})
    assert (code, lab.node_of("vm")) == (0, "role-2"), told
    code, told = migrate(lab, tmp_path, added_node_selector={"rack": "b"})
    assert (code, "changed=0" in told, attempts(lab)) == (0, True, 1), told
