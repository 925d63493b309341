# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that was approved can be read whole also where only its file has come."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.maintenance_plan import main

from testbed.pki import Authority
from unit.plugins.module_utils._planner.scene import Scene, node
from unit.plugins.modules.test_maintenance_plan import Files
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.run_api import RunApi, running

POINTER = "Each virtual machine and pod, its node and the reasons: "


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Of a cluster with so many VMs that a plan fills more than a screen."""
    scene = Scene(*map(node, ("n1", "n2", "n3", "n4", "n5")))
    for number in range(36):
        scene.vm(f"web-{number}", f"n{number % 3 + 1}", "64Mi")
    return Files(tmp_path).see(scene)


@pytest.fixture
def take(run_module: ModuleRunner, connection: dict[str, Any], files: Files) -> Any:
    """The plan that was approved, as a run does; its text is where it was made."""
    given: dict[str, Any] = {**files.given, "run": "patch"}
    run_module(main, **given, nodes=["n1", "n2", "n3"])
    approved = files.plan.rename(files.plan.with_name("approved.json"))
    files.plan.with_suffix(".txt").rename(files.plan.with_name("made.txt"))
    given |= {"path": str(files.plan.with_name("rest.json")), "plan": str(approved), "resume": True}
    return partial(run_module, main, **connection, **given)


def test_a_run_tells_where_all_of_an_approved_plan_can_be_read(take: Any, files: Files) -> None:
    taken, made = take(), files.plan.with_name("made.txt").read_text()
    text = files.plan.with_name("rest.txt")
    assert (taken["text_path"], taken["lines"][-1]) == (str(text), f"{POINTER}{text}")
    assert text.read_text() == made
    assert taken["plan_path"] == str(files.plan.with_name("approved.json"))
    assert not files.plan.with_name("rest.json").exists()


def test_a_text_that_has_come_with_it_is_the_one(take: Any, files: Files) -> None:
    own = files.plan.with_name("made.txt").rename(files.plan.with_name("approved.txt"))
    assert take()["text_path"] == str(own)
    assert not files.plan.with_name("rest.txt").exists()


def test_check_mode_writes_no_text_of_it(take: Any, files: Files) -> None:
    taken = take(check=True)
    assert (taken["text_path"], POINTER in taken["lines"][-1]) == (str(files.plan.with_name("rest.txt")), False)
    assert not files.plan.with_name("rest.txt").exists()
