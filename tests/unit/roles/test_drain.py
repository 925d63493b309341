# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of a planned run may begin, asked as the role asks, and what is remembered of a node before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority
from unit.playbooks.playing import play
from unit.plugins.support.fake_api import Request, serving
from unit.plugins.support.migrating_api import migrations_path
from unit.plugins.support.object_api import NAMESPACES, NODES
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, RunApi, busy_run

pytestmark = pytest.mark.playbook

ROLE = Path(__file__).parents[3] / "roles/drain"
BATCHES = [["n1"], ["n2", "n3"]]


def gate(folder: Path, hosts: str, *done: str) -> tuple[str, int]:
    """The role's gate, for a play of some hosts; what it tells, and the play after it."""
    inventory: list[dict[str, Any]] = [
        {
            "ansible.builtin.add_host": {
                "name": name,
                "groups": "nodes",
                **({"uncordon_done": True} if name in done else {}),
            }
        }
        for nodes in BATCHES
        for name in nodes
    ]
    taken = {"given": {"batches": BATCHES, "max_failed_nodes": 0, "node": "{{ inventory_hostname }}"}}
    tasks = [
        {"ansible.builtin.import_tasks": str(ROLE / "tasks/gate.yml")},
        {"ansible.builtin.debug": {"msg": "begun {{ inventory_hostname }}"}},
    ]
    plays = [
        {"hosts": "localhost", "gather_facts": False, "tasks": inventory},
        {
            "hosts": hosts,
            "gather_facts": False,
            "vars": {"_drain_variables": taken},
            "vars_files": [str(ROLE / "vars/main.yml")],
            "tasks": tasks,
        },
        {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": "the next play"}}]},
    ]
    return play(folder, yaml.safe_dump(plays))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("hosts", "done", "told", "begun", "status"),
    [
        ("n1", [], "", ["n1"], 0),
        ("n2,n3", ["n1"], "", ["n2", "n3"], 0),
        ("n2,n3", [], "n2, n3: not begun, because n1 of an earlier batch is not done.", [], 0),
        ("n2", ["n1"], "hosts are no batch of the plan, so nothing was begun: n3 of the same batch has", [], 2),
    ],
)
def test_a_batch_begins_when_it_is_its_turn(
    tmp_path: Path, hosts: str, done: list[str], told: str, begun: list[str], status: int
) -> None:
    output, code = gate(tmp_path, hosts, *done)
    words = " ".join(output.split())
    assert (told in words, code) == (True, status), output
    assert [name for name in ("n1", "n2", "n3") if f"begun {name}" in output] == begun
    assert ("the next play" in output) is (status == 0)


@pytest.mark.parametrize(("options", "boot_id"), [pytest.param([], "b2", marks=pytest.mark.slow), (["--check"], "b1")])
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
        "post_tasks": [
            {"ansible.builtin.debug": {"msg": "{{ drain_boot_id }} since {{ drain_heartbeat }} in {{ drain_cluster }}"}}
        ],
    }
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, api, authority)
        told, status = play(
            tmp_path, yaml.safe_dump([plays]), *options, kubeconfig=tmp_path / "files/cluster.kubeconfig"
        )
    assert (status, f"{boot_id} since 2026-01-01T00:01:00Z in {CLUSTER}" in told) == (0, True), told


@pytest.mark.slow
def test_a_node_of_no_run_is_drained_in_one_cluster(tmp_path: Path) -> None:
    """Another one, which answers once the node was emptied, is not taken for one in which it is empty."""
    api = busy_run()

    def replace_cluster(request: Request) -> None:
        if request.method == "PATCH":
            api.objects[f"{NAMESPACES}/kube-system"]["metadata"]["uid"] = "other"

    api.faults[f"{NODES}/n3"] = replace_cluster
    told, status = drained(tmp_path, {"owner": "kernel"}, tmp_path, api=api)
    assert (status, f"its uid is other, not {CLUSTER}" in " ".join(told.split())) == (2, True), told


def test_a_node_is_not_maintained_to_which_a_vm_has_come_since_it_was_emptied(tmp_path: Path) -> None:
    """While another one of its batch was emptied, which is after it, as Ansible does one at a time here."""
    authority, api = Authority(tmp_path), busy_run()

    def come(request: Request) -> None:
        if request.method == "POST" and "dryRun" not in request.query:
            api.add_vmi("newcomer", "n2")

    api.faults[migrations_path()] = come
    plays = {
        "hosts": "n2,n1",
        "gather_facts": False,
        "vars": {"drain_owner": "kernel"},
        "roles": ["virtops.kubevirt.drain"],
        "tasks": [{"ansible.builtin.debug": {"msg": "maintained {{ inventory_hostname }}"}}],
    }
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, api, authority)
        options = ("-i", "n2,n1", "--forks", "1")
        told, status = play(
            tmp_path, yaml.safe_dump([plays]), *options, kubeconfig=tmp_path / "files/cluster.kubeconfig"
        )
    assert (status, "maintained n1" in told, "maintained n2" in told) == (2, True, False), told
    assert "vm shop/newcomer" in told, told


def test_a_path_of_a_plan_starts_from_the_folder_in_which_it_runs(tmp_path: Path) -> None:
    begun_in = tmp_path / "begun in"
    begun_in.mkdir()
    told, status = drained(tmp_path, {"owner": "kernel", "plan": "plans/none.json"}, begun_in)
    assert (status, f"Cannot read the plan ({begun_in}/plans/none.json)" in told) == (2, True), told


@pytest.mark.slow
def test_an_owner_with_a_slash_has_files_of_its_own_in_each_cluster(tmp_path: Path) -> None:
    told, status = drained(tmp_path, {"owner": "team/disk"}, tmp_path)
    names = {path.name for path in (tmp_path / "home/tmp").glob("*.json")}
    own = f"virtops.kubevirt-team%2Fdisk-{CLUSTER[:8]}"
    assert (status, names) == (0, {f"{own}.json", f"{own}-plan.json"}), told


@pytest.mark.slow
def test_the_folder_of_a_snapshot_is_made(tmp_path: Path) -> None:
    """Where Ansible has its own files elsewhere."""
    (tmp_path / "ansible.cfg").write_text(f"[defaults]\nlocal_tmp={tmp_path}/local\n[connection]\npipelining=True\n")
    told, status = drained(tmp_path, {"owner": "kernel"}, tmp_path)
    assert (status, (tmp_path / f"home/tmp/virtops.kubevirt-kernel-{CLUSTER[:8]}.json").is_file()) == (0, True), told


def test_check_mode_leaves_the_snapshot_of_a_drain_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text("theirs")
    told, status = drained(tmp_path, {"owner": "kernel", "snapshot": "theirs.json"}, tmp_path, "--check")
    assert (status, (tmp_path / "theirs.json").read_text()) == (0, "theirs"), told
    assert (tmp_path / "theirs-check-snapshot.json").is_file()


def drained(
    folder: Path, given: dict[str, Any], begun_in: Path, *options: str, api: RunApi | None = None
) -> tuple[str, int]:
    """What the role tells of an empty node outside of a run, and its status."""
    authority, api = Authority(folder), api or busy_run()
    role = {"role": "virtops.kubevirt.drain", "vars": {f"drain_{name}": value for name, value in given.items()}}
    play_of_role = {"hosts": "localhost", "gather_facts": False, "vars": {"drain_node": "n3"}, "roles": [role]}
    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(folder, api, authority)
        kubeconfig = folder / "files/cluster.kubeconfig"
        content = yaml.safe_dump([play_of_role])
        return play(folder, content, *options, kubeconfig=kubeconfig, begun_in=begun_in)
