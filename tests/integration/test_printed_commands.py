# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the READMEs, as printed, in a new folder of a user's: their relative paths start from there.

Only the tasks are others than those that are printed, as nothing is to be rebooted.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from integration.clusters import delete
from integration.draining import TIMEOUT, Yard
from testbed.api import resource_path
from testbed.build import binary
from testbed.waiting import wait_for

NODES = ("printed-0", "printed-1")
COLLECTION = Path(__file__).parents[2]
README, PLANNING = COLLECTION / "README.md", COLLECTION / "roles/plan_maintenance/README.md"
GUIDE = COLLECTION / "docs/docsite/rst/when_something_goes_wrong.rst"
MARKS = {"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "bcn"}
# Where a path that started from the collection, or from a playbook or role of it, would lead.
PARTS = ("playbooks", "roles", "plugins", "meta")
ACCOUNTS = "virtops-kubevirt"
# What these tasks say, in check mode as well.
MAINTAINED = f'"maintained {NODES[0]}"'
TASKS = '- name: Say so\n  ansible.builtin.debug:\n    msg: "maintained {{ inventory_hostname }}"\n'

Run = Callable[..., CompletedProcess[str]]


def blocks(readme: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", readme.read_text(), re.DOTALL | re.MULTILINE)


def printed(readme: Path, *words: str) -> str:
    """The one command with these words."""
    lines = "".join(blocks(readme, "sh")).replace("\\\n", " ").splitlines()
    (found,) = [line for line in lines if all(word in line for word in words)]
    return found


def block(readme: Path, words: str) -> str:
    """The first block of YAML with these words."""
    return next(text for text in blocks(readme, "yaml") if words in text)


def of_collection() -> set[str]:
    paths = {path for part in PARTS for path in (COLLECTION / part).rglob("*") if "__pycache__" not in path.parts}
    return {str(path) for path in (*paths, *COLLECTION.iterdir()) if not path.name.startswith(".")}


@pytest.fixture
def folder(yard: Yard, tmp_path: Path) -> Iterator[Path]:
    """With what the READMEs say that is there: an inventory, tasks, a playbook that plans, a file for the plugin.

    Nothing is left of a run of the same name that has maintained the nodes.
    """
    for name in NODES:
        marks = MARKS if name == NODES[0] else dict.fromkeys(MARKS)
        labels: dict[str, str | None] = {**marks, "virtops.kubevirt/maintained": None}
        yard.testbed.api.patch(resource_path("v1", "nodes", name=name), {"metadata": {"labels": labels}})
    place, before = tmp_path / "my cluster", of_collection()
    place.mkdir()
    (place / "inventory").write_text(f"[workers]\n{NODES[0]}\n")
    (place / "new-kernel.yml").write_text(TASKS)
    (place / "plan.yml").write_text(block(PLANNING, "virtops.kubevirt.plan_maintenance"))
    (place / "cluster.virtops_nodes.yml").write_text(block(README, "plugin: virtops.kubevirt.nodes"))
    yield place
    assert of_collection() - before == set()


@pytest.fixture
def enter(yard: Yard, folder: Path) -> Run:
    """Enter a command there, and let it end well."""

    def enter(command: str, *, kubeconfig: str = str(yard.testbed.kubeconfig)) -> CompletedProcess[str]:
        foreign = ("ANSIBLE_", "K8S_", "KUBECONFIG")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        own = {
            "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"],
            "HOME": str(folder.parent / "home"),
            "K8S_AUTH_KUBECONFIG": kubeconfig,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env={**inherited, **own}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout[-6000:], done.stderr[-2000:])
        return done

    return enter


def written(folder: Path) -> set[str]:
    """Beside what was there at first."""
    given = {"inventory", "new-kernel.yml", "plan.yml", "cluster.virtops_nodes.yml"}
    return {path.name for path in folder.iterdir()} - given


def test_never_writes_elsewhere_what_the_first_commands_foretell(enter: Run, folder: Path) -> None:
    foretold = enter(printed(README, "rolling_maintenance", "-i inventory"))
    assert MAINTAINED in foretold.stdout
    graph = enter(printed(README, "ansible-inventory"))
    assert f"@zone_bcn:\n  |  |--{NODES[0]}\n" in graph.stdout
    by_zone = enter(f"{printed(README, 'zone_bcn')} --check")
    assert MAINTAINED in by_zone.stdout
    assert written(folder) == set()


def test_never_seeks_elsewhere_the_kubeconfig_that_it_has_made(enter: Run, folder: Path, yard: Yard) -> None:
    make, file = printed(README, "virtops.kubevirt.access"), folder / "maintenance.kubeconfig"
    try:
        enter(make)
        assert (written(folder), stat.S_IMODE(file.stat().st_mode)) == ({file.name}, 0o600)
        given = f"-e rolling_maintenance_kubeconfig={file.name}"
        foretold = enter(f"{printed(README, 'rolling_maintenance', '-i inventory')} {given}", kubeconfig="/none")
        assert MAINTAINED in foretold.stdout
    finally:
        enter(f"{make} -e access_state=absent")
        delete(yard.testbed.api, resource_path("v1", "namespaces", name=ACCOUNTS))
    assert written(folder) == set()


def test_never_seeks_elsewhere_the_plan_that_it_has_written(enter: Run, folder: Path, yard: Yard) -> None:
    enter(printed(PLANNING, "plan.yml"))
    plan = folder / "plan.json"
    assert stat.S_IMODE(plan.stat().st_mode) == 0o600
    there, content = written(folder), plan.read_bytes()
    digest = json.loads(content)["sha256"]
    done = enter(f"{printed(PLANNING, 'plan_maintenance_file').replace('…', digest)} -e uncordon_rebooted=false")
    assert MAINTAINED in done.stdout
    node = yard.testbed.api.get(resource_path("v1", "nodes", name=NODES[0]))
    assert node["metadata"]["labels"].get("virtops.kubevirt/maintained") == "kernel-6.12"
    assert not yard.cordoned(NODES[0])
    assert (written(folder), plan.read_bytes()) == (there, content)


def test_one_node_and_then_the_others_by_an_approved_plan(enter: Run, folder: Path, yard: Yard) -> None:
    yard.testbed.api.patch(resource_path("v1", "nodes", name=NODES[1]), {"metadata": {"labels": MARKS}})
    variables = block(README, "plan_maintenance_batch_constraints").replace("batch: 3", "batch: 2")
    (folder / "kernel.yml").write_text(variables.replace("rebooted: true", "rebooted: false"))
    (folder / "plan.yml").write_text(block(README, "virtops.kubevirt.no_limit"))
    first = enter(printed(README, "kernel.yml", "worker-1").replace("worker-1", NODES[0]))
    enter(printed(README, "plan_maintenance_path"))
    digest = json.loads((folder / "plan.json").read_bytes())["sha256"]
    assert digest in (folder / "plan.txt").read_text().splitlines()[0]
    others = enter(printed(README, "plan_maintenance_file").replace("…", digest))
    done = [[name for name in NODES if f'"maintained {name}"' in run.stdout] for run in (first, others)]
    assert done == [[NODES[0]], [NODES[1]]]


def by_hand(yard: Yard) -> list[str]:
    """The guide's commands for kubectl: those that show what there is, and those that undo it."""
    found = re.findall(r"^\.\. code-block:: shell\n\n((?:    .*\n)+)", GUIDE.read_text(), re.MULTILINE)
    there = f"export KUBECONFIG=$K8S_AUTH_KUBECONFIG PATH={binary('kubectl').parent}:$PATH\nset -e\n"
    here = [text.replace("worker-1", NODES[0]).replace("-n shop", f"-n {yard.namespace}") for text in found]
    return [there + text for text in here]


def test_what_a_run_has_left_is_undone_without_ansible(enter: Run, folder: Path, yard: Yard) -> None:
    (folder / "new-kernel.yml").write_text("- name: Break\n  ansible.builtin.fail:\n")
    policies = json.dumps({"plan_maintenance_policies": [{"policy": "stop"}]})
    run = printed(README, "rolling_maintenance", "-i inventory").replace(" --check --diff", "")
    with yard.emptied_afterwards():
        yard.start_vm("db-1", NODES[0], migratable=False, run_strategy="Always")
        shows, undoes = by_hand(yard)
        enter(f"! {run} -e '{policies}'")
        assert (yard.cordoned(NODES[0]), yard.exists("db-1")) == (True, False)
        told = enter(shows).stdout
        assert re.search(f'{NODES[0]} .*"owner": "kernel-6.12"', told), told
        assert all(name in told for name in (f"node-{NODES[0]}", "virtualmachine.kubevirt.io/db-1")), told
        told = enter(undoes).stdout
        assert '"run_strategy": "Always"' in told
        wait_for("the VM to run again", lambda: yard.exists("db-1"), TIMEOUT)
        assert not yard.cordoned(NODES[0])
        left = enter(printed(README, "virtops.kubevirt.abort")).stdout
        assert "failed=0" in left
        assert not any("virtops" in key for key in yard.vm("db-1")["metadata"].get("annotations", {}))
