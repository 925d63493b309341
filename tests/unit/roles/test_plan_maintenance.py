# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role makes of hosts and of a plan: names of nodes, batches of hosts, and what stands against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._module import plan_task

from unit.playbooks.playing import play
from unit.plugins.support.templates import evaluate

pytestmark = pytest.mark.playbook

ROLE = Path(__file__).parents[3] / "roles/plan_maintenance"
INVENTORY: dict[str, Any] = {
    "workers": {
        "hosts": {
            "web-1": {"drain_node": "{{ inventory_hostname }}.example.org"},
            "web-2": {"drain_node": "n2"},
            "n3": {},
        }
    }
}
# That one node of it is drained, and another one given back.
LOST = {"drain_node": "n5", "uncordon_node": "n6"}


def checked(folder: Path, **variables: Any) -> tuple[dict[str, str], str]:
    """What the cluster calls each host, by the role's checks; and the error that they end with, if they do."""
    inventory, playbook, answer = folder / "hosts.yml", folder / "play.yml", folder / "names.json"
    inventory.write_text(yaml.safe_dump(INVENTORY, sort_keys=False))
    tasks = [
        {"ansible.builtin.include_role": {"name": str(ROLE), "tasks_from": "check"}},
        {
            "ansible.builtin.copy": {
                "dest": str(answer),
                "mode": "0600",
                "content": "{{ _plan_maintenance_names | to_json }}",
            }
        },
    ]
    given = {"plan_maintenance_run": "patch", **variables}
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": given, "tasks": tasks}]))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            *("-i", inventory, "-e", f"ansible_python_interpreter={sys.executable}", playbook),
        ],
        env={
            **environment,
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"],
            "ANSIBLE_LOCALHOST_WARNING": "false",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout + done.stderr
    assert "WARN" not in told, told
    assert "DEPRECATION" not in told, told
    assert (done.returncode == 0) is answer.exists(), told
    return (json.loads(answer.read_text()), "") if answer.exists() else ({}, " ".join(told.split()))


def test_names_of_nodes_are_the_hosts_own(tmp_path: Path) -> None:
    names, _error = checked(tmp_path, plan_maintenance_nodes="new,workers", plan_maintenance_node_names={"new": "n0"})
    assert list(names.items()) == [("new", "n0"), ("web-1", "web-1.example.org"), ("web-2", "n2"), ("n3", "n3")]


def test_with_a_plan_all_hosts_that_have_a_name_are_known(tmp_path: Path) -> None:
    names, _error = checked(tmp_path, plan_maintenance_file="plan.json", plan_maintenance_node_names={"new": "n0"})
    assert names == {"new": "n0", "web-1": "web-1.example.org", "web-2": "n2"}


def test_a_plan_tells_who_comes_first(tmp_path: Path) -> None:
    said = {"plan_maintenance_file": "plan.json", "plan_maintenance_batch_constraints": {"first": ["n3"]}}
    assert checked(tmp_path, **said)[1] == ""


def test_names_may_be_said_twice_if_they_agree(tmp_path: Path) -> None:
    said = {"plan_maintenance_nodes": ["web-2"], "plan_maintenance_node_names": {"web-2": "n2", "web-1": "unasked"}}
    assert checked(tmp_path, **said)[0] == {"web-2": "n2"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"plan_maintenance_nodes": ["web-2"], "plan_maintenance_node_names": {"web-2": "n9"}},
            "drain_node and plan_maintenance_node_names do not agree on what the cluster calls web-2: keep drain_node",
        ),
        (
            {"plan_maintenance_nodes": ["web-2", "n2"]},
            "These hosts have the same name in Kubernetes as another one: web-2.",
        ),
        ({}, "plan_maintenance_nodes is []"),
        ({"plan_maintenance_nodes": ["n3"], "plan_maintenance_sha256": "a"}, "give its file as plan_maintenance_file"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    assert words in checked(tmp_path, **given)[1]


@pytest.mark.parametrize("given", [{"nodes": ["web-2", "lost"]}, {"file": "plan.json"}])
def test_a_host_that_would_not_be_given_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.setitem(
        INVENTORY, "others", {"hosts": {"lost": LOST, "kept": {"drain_node": "n7", "uncordon_node": "n7"}}}
    )
    _names, error = checked(tmp_path, **{f"plan_maintenance_{name}": value for name, value in given.items()})
    assert "uncordon_node is not the node that is drained of lost: leave it out" in error


@pytest.mark.parametrize(("facts", "refused"), [({"uncordon_done": True}, True), ({"drain_node": "n1"}, False)])
def test_a_run_takes_no_host_for_done_that_another_one_has_given_back(
    tmp_path: Path, facts: dict[str, Any], refused: bool
) -> None:
    """Of the same playbook: its batches would not wait for that host if it failed."""
    name = "Refuse hosts that were given back in the same playbook"
    (task,) = (task for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text()) if task["name"] == name)
    made = {"batches": [["n1"], ["n2"]], "done": []}
    given = {"_plan_maintenance_variables": {"given": {"run": "kernel"}}, "_plan_maintenance_made": made}
    files = [str(ROLE / "vars/main.yml")]
    host = {"ansible.builtin.add_host": {"name": "n1", **facts}}
    content = {"hosts": "localhost", "gather_facts": False, "vars_files": files, "tasks": [host, task]}
    content["vars"] = {**given, "_plan_maintenance_names": {}}
    told, status = play(tmp_path, yaml.safe_dump([content]))
    assert (status == 2, "Run kernel is to maintain n1, which" in told) == (refused, refused), told


def asked_by_default() -> dict[str, Any]:
    """What a plan is asked for, which has no defaults but in the argument spec."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    options = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["variables"]["options"]
    return {name: option["default"] for name, option in options.items() if "default" in option and name not in defaults}


def test_what_the_role_does_not_pass_on_is_the_same_by_default_for_the_module() -> None:
    asked = {name.removeprefix("plan_maintenance_"): value for name, value in asked_by_default().items()}
    module = {name: option.get("default") for name, option in plan_task.spec().items()}
    assert asked == {**{name: module[name] for name in asked}, "batch_constraints": {}}
    assert {"batch", "force", "policies"} <= asked.keys()


def role_variables(**given: Any) -> dict[str, Any]:
    """As they are when the role has taken what it was given, and its defaults for the rest."""
    own = {f"plan_maintenance_{name}": value for name, value in given.items() if not name.startswith("_")}
    defaults: dict[str, Any] = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    merged = {**asked_by_default(), **defaults, "plan_maintenance_run": "patch", **own}
    taken = {name.removeprefix("plan_maintenance_"): "{{ " + name + " }}" for name in merged}
    inner = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    private = {name: value for name, value in given.items() if name.startswith("_")}
    return {**merged, **inner, "_plan_maintenance_variables": {"given": taken}, **private}


def test_a_plan_of_nodes_becomes_batches_of_hosts(tmp_path: Path) -> None:
    made = {"batches": [["n1", "n2"], ["n3"]], "done": ["n4"], "differences": ["VM a goes to b"], "blocked": []}
    variables = role_variables(
        _plan_maintenance_made=made,
        _plan_maintenance_names={"web-1": "n1", "n3": "n3", "web-4": "n4"},
        snapshot="/tmp/shot.json",
    )
    wanted = ["_plan_maintenance_batches", "_plan_maintenance_host_of['n4']", "_plan_maintenance_changes"]
    batches, done, changes, path = evaluate([*wanted, "_plan_maintenance_path"], variables, tmp_path)
    assert (batches, done) == ([["web-1", "n2"], ["n3"]], "web-4")
    assert changes == [], "outside check mode nobody asks"
    assert path == "/tmp/shot-plan.json"


def test_a_forecast_tells_what_is_different_on_one_screen(tmp_path: Path) -> None:
    lines = [f"VM {number} goes to b" for number in range(22)]
    for found, told in ((lines, [*lines[:20], "and 2 more, which -v shows"]), (lines[:20], lines[:20]), ([], [])):
        made = {"differences": found, "done": []}
        variables = role_variables(_plan_maintenance_made=made, _plan_maintenance_foretold=True)
        (changes,) = evaluate(["_plan_maintenance_changes"], variables, tmp_path)
        assert changes == (["Different from what was planned before:", *told] if told else [])


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "No part of it is found that could be carried out."),
        (
            ["n1", "n3"],
            "These could be maintained without the others: web-1, n3. Leave the others out, or clear what stands "
            "against them.",
        ),
        (
            [f"w{number}" for number in range(23)],
            "These could be maintained without the others: "
            f"{', '.join(f'w{number}' for number in range(20))} and 3 more. "
            "Leave the others out, or clear what stands against them.",
        ),
    ],
)
def test_what_can_be_done_is_said_in_the_words_of_the_inventory(tmp_path: Path, nodes: list[str], words: str) -> None:
    made = {"batches": [[*nodes, "n2"]], "done": [], "possible": nodes}
    variables = role_variables(_plan_maintenance_made=made, _plan_maintenance_names={"web-1": "n1"})
    assert evaluate(["_plan_maintenance_possible"], variables, tmp_path) == [words]


def test_hosts_that_come_first_and_last_are_nodes_to_a_plan(tmp_path: Path) -> None:
    """With a plan that was approved a host may have no other name."""
    variables = role_variables(
        _plan_maintenance_names={"web-1": "n1"},
        batch_constraints={"first": ["web-1"], "last": ["n3"], "apart": ["zone"]},
    )
    (found,) = evaluate(["_plan_maintenance_constraints"], variables, tmp_path)
    assert found == {"first": ["n1"], "last": ["n3"], "apart": ["zone"]}


def test_only_what_lasts_stands_against_a_plan(tmp_path: Path) -> None:
    obstacles = [{"passing": number == 0, "message": f"{number}."} for number in range(13)]
    (told,) = evaluate(
        ["_plan_maintenance_obstacles"], role_variables(_plan_maintenance_made={"obstacles": obstacles}), tmp_path
    )
    assert told == [*(f"{number}." for number in range(1, 11)), "More stands against it, see above."]


def obstacles(count: int, *, different: bool = False) -> list[dict[str, Any]]:
    """Of VMs with long names, one of each on a node: of all of them together, or one for each."""
    vm = f"{'department-' * 4}/{'database-' * 5}1"
    names = ", ".join([vm] * 3) + f" and {count - 3} more"
    why = "no node can take it: 0/66 nodes are available: 66 Insufficient memory; have them stopped by a policy"
    messages = [f"{count} VMs cannot leave ({names}): {why} {number}." for number in range(count if different else 1)]
    return [{"passing": False, "message": message} for message in messages]


@pytest.mark.parametrize(("different", "possible"), [(False, 0), (True, 0), (True, 59)])
def test_the_error_of_a_large_run_stays_on_one_screen(tmp_path: Path, different: bool, possible: int) -> None:
    """Of 60 nodes of which none, or hardly any, can be emptied, for one reason or for as many."""
    nodes = [f"worker-{number:02}.of-a-cluster.example.org" for number in range(60)]
    made = {"batches": [nodes], "done": [], "possible": nodes[:possible], "verdict": "infeasible", "resumed": False}
    made["obstacles"] = found = obstacles(60, different=different)
    told, status = refused(tmp_path, made, [])
    error = told[told.index("fatal: ") : told.index("PLAY RECAP")]
    assert (status, len(error) < 3000) == (2, True), error
    assert found[0]["message"] in error
    assert ("More stands against it, see above." in error) is different


@pytest.mark.parametrize(
    ("documents", "resumed", "kept", "release"),
    [
        ([], False, "False", "debug"),
        (["plan"], False, "False", "debug"),
        (["plan"], True, "True", "debug"),
        (["report"], False, "True", "debug"),
        (["plan", "record-n1"], False, "True", "debug"),
        ([], False, "False", "fail"),
    ],
)
def test_a_run_that_is_refused_forgets_nothing_but_its_own_plan(
    tmp_path: Path, documents: list[str], resumed: bool, kept: str, release: str
) -> None:
    """What earlier starts under its name have left stays. Whatever comes of that, the refusal is the error."""
    made: dict[str, Any] = {"batches": [["n1"]], "done": [], "possible": [], "verdict": "infeasible"}
    made |= {"resumed": resumed, "obstacles": obstacles(1)}
    told, status = refused(tmp_path, made, documents, release)
    assert (status, "failed=1" in told, told.count("fatal: ")) == (2, True, 1), told
    assert "cannot be carried out" in told[told.index("fatal: ") :].splitlines()[0]
    assert (f"released, keeps {kept}" in told) is (release == "debug")


def refused(folder: Path, made: dict[str, Any], documents: list[str], release: str = "debug") -> tuple[str, int]:
    """What the role tells of a plan that cannot be carried out, and its status.

    documents: what there was of the run. release: what is done in place of letting go of it.
    """
    name = "Stop if a batch cannot be emptied"
    (stop,) = (task for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text()) if task["name"] == name)
    asked = stop["always"][0].pop("virtops.kubevirt.maintenance_run")
    stop["always"][0][f"ansible.builtin.{release}"] = {"msg": f"released, keeps {asked['keep_record']}"}
    given = {
        "_plan_maintenance_variables": {"given": {"run": "kernel", "infeasible": "fail"}},
        "_plan_maintenance_made": made,
        "_plan_maintenance_held": {"documents": documents},
        "_plan_maintenance_names": {},
    }
    files = [str(ROLE / "vars/main.yml")]
    content = {"hosts": "localhost", "gather_facts": False, "vars": given, "vars_files": files, "tasks": [stop]}
    return play(folder, yaml.safe_dump([content]))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("check", "approved", "path", "snapshot"),
    [
        (False, "", "/plans/run.json", "/tmp/shot.json"),
        (True, "", "/tmp/shot-check.json", "/tmp/shot-check-snapshot.json"),
        (False, "/plans/run.json", "/tmp/shot-rest.json", "/tmp/shot.json"),
        (True, "/plans/run.json", "/tmp/shot-check.json", "/tmp/shot-check-snapshot.json"),
    ],
)
def test_neither_a_forecast_nor_what_is_left_replaces_a_plan(
    tmp_path: Path, check: bool, approved: str, path: str, snapshot: str
) -> None:
    variables = role_variables(
        file=approved,
        path="/plans/run.json",
        snapshot="/tmp/shot.json",
    )
    mode = ("ansible_check_mode", str(check))
    given = {name: value.replace(*mode) if isinstance(value, str) else value for name, value in variables.items()}
    assert evaluate(["_plan_maintenance_path", "_plan_maintenance_snapshot"], given, tmp_path) == [path, snapshot]
