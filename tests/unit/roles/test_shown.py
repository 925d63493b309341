# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role shows of a plan: on one screen what decides, and with -v or --diff all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._report.overview import MOST_LINES
from ansible_collections.virtops.kubevirt.plugins.modules import maintenance_plan

from unit.playbooks.playing import play
from unit.plugins.module_utils._planner.scene import FIXED, Scene, node
from unit.plugins.modules.test_maintenance_plan import Files
from unit.plugins.support.modules import ModuleRunner, isolate

pytestmark = pytest.mark.playbook

ROLE = Path(__file__).parents[3] / "roles/plan_maintenance"
BRIEFLY, WHOLE = "Say what is about to happen", "Say all of it to who wants to know"
Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Make:
    isolate(monkeypatch, tmp_path)
    return partial(ModuleRunner(capsys), maintenance_plan.main, run="patch", option_prefix="plan_maintenance_")


def cluster(nodes: int, vms: int) -> Scene:
    """Each node has so many VMs; each tenth has one that cannot be migrated, too, and a pod that nothing replaces."""
    names = [f"n{number:02}" for number in range(nodes)]
    scene = Scene(*map(node, (*names, "spare1", "spare2")))
    for number, name in enumerate(names):
        for count in range(vms):
            scene.vm(f"web-{name}-{count}", name, "128Mi")
        if number % 10 == 1:
            scene.vm(f"gpu-{name}", name, status=FIXED)
            scene.pod(f"bare-{name}", name, owner="")
    return scene


def shown(folder: Path, made: dict[str, Any], *options: str) -> dict[str, list[str]]:
    """The lines of each task that tells the plan, by its name; those that it passes over are not there."""
    tasks = [task for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text()) if task["name"] in (BRIEFLY, WHOLE)]
    given = {"_plan_maintenance_variables": {"given": {"run": "patch", "file": ""}}, "_plan_maintenance_made": made}
    files = [str(ROLE / "vars/main.yml")]
    content = {"hosts": "localhost", "gather_facts": False, "vars": given, "vars_files": files, "tasks": tasks}
    told, status = play(folder, yaml.safe_dump([content]), *options)
    assert status == 0, told
    found = {}
    for name in (BRIEFLY, WHOLE):
        said = told.partition(f"TASK [{name}]")[2].partition("\n")[2]
        if said.startswith("ok:"):
            found[name] = json.JSONDecoder().raw_decode(said, said.index("{"))[0]["msg"]
    return found


@pytest.mark.parametrize(("nodes", "batch", "screen"), [(6, 1, 30), (60, 3, MOST_LINES)])
def test_a_screen_tells_what_decides_and_v_and_diff_tell_all(
    make: Make, tmp_path: Path, nodes: int, batch: int, screen: int
) -> None:
    scene = cluster(nodes, 6)
    names = [str(item["metadata"]["name"]) for item in scene.lists["nodes"]][:nodes]
    made = make(**Files(tmp_path).see(scene).given, nodes=names, batch=batch)
    briefly = shown(tmp_path, made)
    assert list(briefly) == [BRIEFLY]
    lines = briefly[BRIEFLY]
    assert len(lines) <= screen
    kept = nodes // 10 or 1
    begins = [f"Run patch: {nodes} of {nodes} nodes", "As things are, ", f"  {kept} VM", "batch ", "In all: "]
    places = [next(at for at, line in enumerate(lines) if line.startswith(begin)) for begin in begins]
    assert (places[:3], places) == ([0, 1, 2], sorted(places))
    against = "".join(lines[2 : places[3]])
    assert [why for why in ("it uses a device of its node", "nothing would replace it") if why not in against] == []
    assert len(lines[places[3] + 1 : places[4]]) == nodes // batch
    for option in ("-v", "--diff"):
        told = shown(tmp_path, made, option)
        assert told[BRIEFLY] == lines
        whole = told[WHOLE]
        assert whole == Path(made["text_path"]).read_text().splitlines()
        assert [name for name in names if not any(f"shop/web-{name}-5 -> " in line for line in whole)] == []


def test_what_fits_the_screen_is_told_once(make: Make, tmp_path: Path) -> None:
    scene = cluster(2, 2)
    made = make(**Files(tmp_path).see(scene).given, nodes=["n00", "n01"])
    for options in ([], ["-v"]):
        told = shown(tmp_path, made, *options)
        assert list(told) == [BRIEFLY]
        assert any("shop/web-n01-1 -> " in line for line in told[BRIEFLY])
