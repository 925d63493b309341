# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every task of a run names the run, the start that holds it and the cluster, and does nothing once they are others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority
from unit.playbooks.playing import play
from unit.plugins.support.fake_api import Object, refusal, serving
from unit.plugins.support.migrating_api import KUBEVIRT
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, RunApi, busy_run
from unit.plugins.support.templates import evaluate

pytestmark = pytest.mark.playbook

ROOT = Path(__file__).parents[3]
OWN = "virtops.kubevirt."
FILES = [
    path
    for role in ("plan_maintenance", "drain", "uncordon", "rebalance")
    for path in sorted(ROOT.glob(f"roles/{role}/tasks/*.yml"))
]
OPTIONS = {"virtops.kubevirt._run": {"run", "invocation"}, "virtops.kubevirt._run.cluster": {"cluster_uid"}}
FAST = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
        ]
    }
}


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """Those in blocks as well."""
    for task in found or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part))


def options(module: str) -> set[str]:
    """Those by which a module knows what it works for."""
    text = import_module(f"ansible_collections.virtops.kubevirt.plugins.modules.{module}").DOCUMENTATION
    fragments = yaml.safe_load(text).get("extends_documentation_fragment", [])
    return {option for fragment in fragments for option in OPTIONS.get(fragment, ())}


def written(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tasks of a file of tasks or of plays."""
    items = yaml.safe_load(path.read_text())
    for item in items:
        for task in tasks([item] if "hosts" not in item else item.get("tasks")):
            yield f"{path.relative_to(ROOT)}: {task['name']}", task


def of_a_run() -> list[Any]:
    """Module, arguments and options of each task that could do something for a run."""
    found = []
    for path in (*FILES, *(ROOT / f"playbooks/{name}.yml" for name in ("rolling_maintenance", "abort"))):
        for title, task in written(path):
            for module, arguments in ((key.removeprefix(OWN), task[key]) for key in task if key.startswith(OWN)):
                # Who takes the run is told by it which cluster it is.
                takes = module == "maintenance_run" and "state" not in arguments
                if not takes and (wanted := options(module)):
                    found.append(pytest.param(arguments, wanted, id=title))
    return found


def test_there_are_some() -> None:
    assert len(of_a_run()) > 8


@pytest.mark.parametrize(("arguments", "wanted"), of_a_run())
def test_a_task_of_a_run_says_for_which(arguments: dict[str, Any], wanted: set[str]) -> None:
    assert wanted <= set(arguments)
    assert all(name in arguments[name] for name in wanted)


def of_no_run() -> list[Any]:
    """The arguments of each task of role live_migrate, which never belongs to a run, that can tell clusters apart."""
    return [
        pytest.param(task[key], id=title)
        for path in sorted(ROOT.glob("roles/live_migrate/tasks/*.yml"))
        for title, task in written(path)
        for key in task
        if key.startswith(OWN) and "cluster_uid" in options(key.removeprefix(OWN))
    ]


@pytest.mark.parametrize("arguments", of_no_run())
def test_a_task_of_no_run_says_in_which_cluster(arguments: dict[str, Any]) -> None:
    assert "cluster_uid" in arguments.get("cluster_uid", "")


@pytest.mark.parametrize(
    ("role", "given", "files"),
    [
        ("plan_maintenance", {"run": "kernel"}, ["snapshot", "path"]),
        ("drain", {"owner": "kernel"}, ["snapshot"]),
        ("live_migrate", {}, ["snapshot"]),
    ],
)
def test_clusters_with_runs_of_one_name_share_no_file(
    tmp_path: Path, role: str, given: dict[str, str], files: list[str]
) -> None:
    """On one controller: each would take what the other has read, and one that changes under it, for its own."""
    defaults = yaml.safe_load((ROOT / f"roles/{role}/defaults/main.yml").read_text())
    own = yaml.safe_load((ROOT / f"roles/{role}/vars/main.yml").read_text())
    blank = {name.removeprefix(f"{role}_"): value for name, value in defaults.items() if value == ""}
    found = []
    for uid in ("3f2b91c4-77aa", "d05e6b18-01cc"):
        answer = {f"_{role}_rights": {"cluster_uid": uid}}
        variables = {**own, **answer, f"_{role}_variables": {"given": {**blank, **given}}}
        paths = evaluate([f"_{role}_{name}" for name in files], variables, tmp_path)
        assert [path for path in paths if uid[:8] not in Path(path).name] == []
        found += paths
    assert len(set(found)) == 2 * len(files)


def handed_over() -> list[Any]:
    """What rolling_maintenance and the README's playbook give to role rebalance."""
    last = yaml.safe_load((ROOT / "playbooks/rolling_maintenance.yml").read_text())[-1]
    (task,) = (task for task in tasks(last["tasks"]) if "ansible.builtin.include_role" in task)
    section = (ROOT / "README.md").read_text().partition("### The same as your own playbook")[2]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert example
    (role,) = yaml.safe_load(example[1])[-1]["roles"]
    return [pytest.param(task.get("vars"), id="rolling_maintenance"), pytest.param(role.get("vars"), id="readme")]


@pytest.mark.parametrize("given", handed_over())
def test_rebalancing_belongs_to_the_run(given: dict[str, str]) -> None:
    assert given == {
        f"rebalance_{name}": f"{{{{ plan_maintenance_plan.{name} }}}}" for name in ("run", "invocation", "cluster_uid")
    }


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunApi]:
    """Invocation a1 holds run `kernel`; VMI db on n1 would rather be on n2."""
    authority, fake = Authority(tmp_path), busy_run()
    fake.add_vmi("db", affinity=FAST)
    fake.node("n2")["metadata"]["labels"]["fast"] = "yes"
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        write_kubeconfig(tmp_path, fake, authority)
        yield fake


def rebalance(folder: Path, options: tuple[str, ...] = (), **given: str) -> tuple[str, int]:
    run = {"rebalance_run": "kernel", "rebalance_invocation": "a1", "rebalance_cluster_uid": CLUSTER}
    role = {"role": "virtops.kubevirt.rebalance", "vars": {**run, **given}}
    content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "roles": [role]}])
    return play(folder, content, *options, kubeconfig=folder / "files/cluster.kubeconfig")


def changes(api: RunApi) -> list[Object]:
    """What was written beside Leases."""
    return [request.body for request in api.writes() if "/leases" not in request.path]


def test_who_holds_the_run_rebalances(tmp_path: Path, api: RunApi) -> None:
    told, status = rebalance(tmp_path)
    assert (status, len(changes(api))) == (0, 1), told


def test_a_rebalancing_is_done_as_it_is_told(tmp_path: Path, api: RunApi) -> None:
    told, _status = rebalance(tmp_path)
    (migration,) = changes(api)
    assert migration["spec"] == {"vmiName": "db", "addedNodeSelector": {"kubernetes.io/hostname": "n2"}}
    assert "1. VM shop/db: n1 -> n2. Its preferred rules are met better there." in told


def test_check_mode_rebalances_nothing(tmp_path: Path, api: RunApi) -> None:
    told, status = rebalance(tmp_path, options=("--check",))
    assert (status, [request.query for request in api.writes()]) == (
        0,
        [{"fieldValidation": "Strict", "dryRun": "All"}],
    ), told


def test_who_has_lost_the_run_does_not(tmp_path: Path, api: RunApi) -> None:
    api.hold_run("b2", seconds=10**9)
    told, status = rebalance(tmp_path)
    assert (status, "it is held by invocation b2" in told, changes(api)) == (2, True, []), told


def test_nor_is_another_cluster_rebalanced(tmp_path: Path, api: RunApi) -> None:
    told, status = rebalance(tmp_path, rebalance_cluster_uid="uid-of-before")
    assert (status, f"its uid is {CLUSTER}, not uid-of-before" in told, changes(api)) == (2, True, []), told


def restore(folder: Path) -> tuple[str, int]:
    """The task of role plan_maintenance that starts what an earlier start of the run has stopped for n1."""
    (task,) = (
        task
        for task in yaml.safe_load((ROOT / "roles/plan_maintenance/tasks/hold.yml").read_text())
        if "virtops.kubevirt.node_drain" in task
    )
    given = {
        "_plan_maintenance_given": {"run": "kernel"},
        "_plan_maintenance_invocation": "a1",
        "_plan_maintenance_held": {"cluster_uid": CLUSTER, "maintained": ["n1"]},
    }
    content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": given, "tasks": [task]}])
    return play(folder, content, kubeconfig=folder / "files/cluster.kubeconfig")


def test_what_does_not_start_keeps_no_run_from_going_on(tmp_path: Path, api: RunApi) -> None:
    api.faults[f"{KUBEVIRT}/virtualmachines"] = lambda _request: refusal(403, "Forbidden", "no rights")
    told, status = restore(tmp_path)
    assert (status, "failed=0" in told) == (0, True), told


def test_a_run_that_is_lost_meanwhile_does_not_go_on(tmp_path: Path, api: RunApi) -> None:
    api.hold_run("b2", seconds=10**9)
    told, status = restore(tmp_path)
    assert (status, "it is held by invocation b2" in told, changes(api)) == (2, True, []), told


def test_what_has_started_elsewhere_is_told(tmp_path: Path) -> None:
    """By role plan_maintenance, of the first of two nodes; the other one failed before it had started any."""
    tasks = yaml.safe_load((ROOT / "roles/plan_maintenance/tasks/hold.yml").read_text())
    astray = {
        "namespace": "shop",
        "name": "db",
        "planned": "comes back on n1",
        "done": "came back on n2",
        "why": "of it",
    }
    known = {"_plan_maintenance_restored": {"results": [{"deviations": [astray]}, {"error": {}}]}}
    told = [task for task in tasks if "not as planned" in str(task)]
    content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": known, "tasks": told}])
    said, status = play(tmp_path, content)
    assert (status, "not as planned: VM shop/db comes back on n1; instead: came back on n2, as of it" in said) == (
        0,
        True,
    )
