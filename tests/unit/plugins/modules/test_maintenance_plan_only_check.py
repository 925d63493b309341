# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With only_check what a task asks for is refused as without it, by few looks at the cluster, and nothing else done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME
from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from testbed.pki import Authority
from unit.plugins.support.draining_api import fill
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NODES
from unit.plugins.support.run_api import RunApi, running


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    """VM db on n1, and two other nodes."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fill(fake, "n1", "n2", "n3")
        fake.add_vmi("db")
        yield fake


@pytest.fixture
def check(run_module: ModuleRunner, connection: dict[str, Any], tmp_path: Path) -> Any:
    """As role plan_maintenance has it checked."""
    run = {"run": "kernel", "resume": True, "path": str(tmp_path / "rest.json"), "only_check": True}
    return lambda **given: run_module(main, **{**connection, **run, **given})


@pytest.fixture
def plan(run_module: ModuleRunner, connection: dict[str, Any], tmp_path: Path, api: RunApi) -> str:
    """The file of one that was approved."""
    path = str(tmp_path / "plan.json")
    run_module(main, **connection, run="kernel", nodes=["n1", "n2"], path=path)
    api.requests.clear()
    return path


def looked_at(api: RunApi) -> set[str]:
    """The lists that were read."""
    paths = {kind.path: name for name, kind in BY_NAME.items()}
    return {paths[request.path] for request in api.requests if request.path in paths}


def test_a_plan_is_right_by_few_looks_at_the_cluster(check: Any, api: RunApi, plan: str, tmp_path: Path) -> None:
    result = check(plan=plan, nodes=["n2", "n1"])
    assert (result["changed"], "batches" in result) == (False, False)
    assert looked_at(api) == {"kubevirts", "namespaces", "nodes"}
    assert (api.writes(), (tmp_path / "rest.json").exists()) == ([], False)


def test_so_are_names_of_nodes(check: Any, api: RunApi, tmp_path: Path) -> None:
    assert not check(nodes=["n1", "n2"], batch=2)["changed"]
    assert looked_at(api) == {"kubevirts", "namespaces", "nodes"}
    assert (api.writes(), (tmp_path / "rest.json").exists()) == ([], False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes": ["n1", "n22"]}, "there is no node n22 (do you mean n2?)"),
        ({"nodes": ["n1", "n1"]}, "node n1 is named twice"),
        ({"nodes": ["n1", "n2"], "batch": 3}, "batch is 3, but the run has 2 nodes"),
        ({"nodes": ["n1"], "targets": {"shop/bd": "n2"}}, "no VirtualMachineInstance shop/bd (do you mean shop/db?)"),
        ({"nodes": ["n1"], "policies": [{"policy": "stop", "expression": "a ||"}]}, "policies[0] has the malformed"),
        ({"nodes": ["n1"], "path": "/"}, "Is a directory"),
        ({"nodes": ["n1"], "path": "/none/plan.json"}, "No such file or directory"),
        ({"plan": "{plan}", "nodes": ["n1"]}, "nodes does not stand for n2, which the plan maintains"),
        ({"plan": "{plan}", "room": 3}, "room is 3, and the plan has 0"),
        ({"plan": "{plan}", "sha256": "0" * 64}, "the plan is not the one that was meant"),
    ],
)
def test_what_is_refused_without_it_is_refused(
    check: Any, api: RunApi, plan: str, given: dict[str, Any], words: str
) -> None:
    meant = {name: value.format(plan=plan) if name == "plan" else value for name, value in given.items()}
    assert words in check(**meant)["msg"]
    assert words in check(**meant, only_check=False)["msg"]
    assert api.writes() == []


def test_a_target_is_known_by_its_vm(check: Any, api: RunApi) -> None:
    assert not check(nodes=["n1"], targets={"shop/db": "n2"})["changed"]
    assert looked_at(api) == {"kubevirts", "namespaces", "nodes", "vmis"}


@pytest.mark.parametrize("approved", [False, True])
def test_a_node_that_is_made_anew_keeps_no_run_from_going_on(
    check: Any, api: RunApi, plan: str, approved: bool
) -> None:
    """The cluster keeps a plan with n1. It is told after what was stopped for other nodes has been started."""
    api.hold_run("a1", seconds=10**9)
    asked = {"plan": plan} if approved else {"nodes": ["n1", "n2"]}
    check(**asked, invocation="a1", only_check=False)
    del api.objects[f"{NODES}/n1"]
    api.requests.clear()
    assert "msg" not in check(**asked)
    assert "node n1" in check(**asked, only_check=False)["msg"]
    assert "there is no node n33 (do you mean n3?)." in check(nodes=["n1", "n2", "n33"])["msg"]
    assert "node n1" in check(**asked, resume=False, path=None if approved else plan)["msg"]
    assert api.writes() == []
