# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of a planned run may begin, and what is remembered of a node before its maintenance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority
from unit.playbooks.playing import play
from unit.plugins.support.fake_api import Request, serving
from unit.plugins.support.object_api import NODES
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, busy_run
from unit.plugins.support.templates import evaluate

ROLE = Path(__file__).parents[3] / "roles/drain"
BATCHES = [["n1"], ["n2", "n3"], ["n4"]]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("batch", "done", "most", "closed"),
    [
        (["n1"], [], 0, False),
        (["n2", "n3"], [], 0, True),
        (["n2", "n3"], ["n1"], 0, False),
        (["n4"], ["n1", "n3"], 0, True),
        (["n4"], ["n1", "n3"], 1, False),
        (["n4"], ["n3"], 1, True),
    ],
)
def test_a_batch_waits_for_all_before_it_but_for_those_that_may_fail(
    tmp_path: Path, batch: list[str], done: list[str], most: int, closed: bool
) -> None:
    role = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    hosts = {
        name: {"inventory_hostname": name, **({"uncordon_done": True} if name in done else {})}
        for nodes in BATCHES
        for name in nodes
    }
    taken = {"given": {"batches": BATCHES, "max_failed_nodes": most}}
    given: dict[str, Any] = {"_drain_variables": taken, "ansible_play_batch": batch}
    # `hostvars` and the names of the play's hosts are Ansible's own.
    variables = {name: str(value).replace("hostvars", "facts_of") for name, value in role.items()}
    names = {"ansible_play_batch": "play_batch"}
    for old, new in names.items():
        variables = {name: value.replace(old, new) for name, value in variables.items()}
        given = {new if name == old else name: value for name, value in given.items()}
    assert evaluate(["_drain_closed"], {**variables, **given, "facts_of": hosts}, tmp_path) == [closed]


@pytest.mark.parametrize(("options", "boot_id"), [([], "b2"), (["--check"], "b1")])
def test_the_last_look_before_the_maintenance_tells_what_a_reboot_changes(
    tmp_path: Path, options: list[str], boot_id: str
) -> None:
    """It counts where the node has rebooted while it was drained; in check mode there is only the first."""
    authority, api = Authority(tmp_path), busy_run()
    api.node("n3")["status"]["nodeInfo"] = {"bootID": "b1"}
    api.node("n3")["metadata"]["annotations"] = {"kubevirt.io/heartbeat": "2026-01-01T00:01:00Z"}

    def reboot(request: Request) -> None:
        if request.method == "PATCH" and "dryRun" not in request.query:
            api.node("n3")["status"]["nodeInfo"] = {"bootID": "b2"}

    api.faults[f"{NODES}/n3"] = reboot
    run = {"node": "n3", "run": "kernel", "owner": "kernel", "invocation": "a1", "cluster_uid": CLUSTER}
    given = {"drain_snapshot": str(tmp_path / "shot.json"), **{f"drain_{name}": value for name, value in run.items()}}
    plays = {
        "hosts": "localhost",
        "gather_facts": False,
        "roles": [{"role": "virtops.kubevirt.drain", "vars": given}],
        "post_tasks": [{"ansible.builtin.debug": {"msg": "{{ drain_boot_id }} since {{ drain_heartbeat }}"}}],
    }
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, api, authority)
        told, status = play(
            tmp_path, yaml.safe_dump([plays]), *options, kubeconfig=tmp_path / "files/cluster.kubeconfig"
        )
    assert (status, f"{boot_id} since 2026-01-01T00:01:00Z" in told) == (0, True), told
