# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each mistake of a user gets one clear error from a real cluster; the cases stand in bad_input/*.yml.

All are made in one run of ansible-playbook, which goes on after each. What waits for minutes has one beside that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.bad_input.scene import Scene, set_up
from integration.playbooks import keep, run_tasks
from testbed.handle import RunningTestbed

FOLDER = Path(__file__).parent / "bad_input"
CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for path in sorted(FOLDER.glob("*.yml")) for case in yaml.safe_load(path.read_text())
}


@pytest.fixture(scope="module")
def scene(testbed: RunningTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with set_up(testbed, tmp_path_factory.mktemp("bad-input")) as scene:
        yield scene


@pytest.fixture(scope="module")
def errors(scene: Scene) -> Mapping[str, Any]:
    """What each case's task failed with, by name."""
    waiting = [name for name, case in CASES.items() if case.get("waits")]
    runs = [[name for name in CASES if name not in waiting], *([name] for name in waiting)]
    with ThreadPoolExecutor(len(runs)) as pool:
        found = list(pool.map(partial(_made, scene), range(len(runs)), runs))
    return {name: result for results in found for name, result in results.items() if result.get("failed")}


def _made(scene: Scene, run: int, names: Sequence[str]) -> dict[str, Any]:
    """What the tasks of cases return. Written at the end: a file each takes longer than most tasks."""
    tasks = [_mistake(f"error_{number}", CASES[name]["task"]) for number, name in enumerate(names)]
    ended = ", ".join(f"error_{number} | default({{}})" for number in range(len(tasks)))
    kept, playbook = scene.scratch / f"errors-{run}.json", scene.scratch / f"mistakes-{run}.yml"
    run_tasks(playbook, scene.kubeconfig, [*tasks, keep(f"[{ended}]", kept)], scene.variables)
    return dict(zip(names, json.loads(kept.read_text()), strict=True))


def _mistake(name: str, task: dict[str, Any]) -> dict[str, Any]:
    """The task, after which the play goes on, with its result in a variable. What has tasks of its own is rescued."""
    if {"block", "ansible.builtin.include_role"}.isdisjoint(task):
        return {**task, "register": name, "ignore_errors": True}
    return {"block": [task], "rescue": [{"ansible.builtin.set_fact": {name: "{{ ansible_failed_result }}"}}]}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error(errors: Mapping[str, Any], scene: Scene, name: str) -> None:
    assert name in errors, "no error at all"
    message = errors[name]["msg"]
    for words in CASES[name]["says"]:
        assert scene.filled_in(str(words)) in message
    assert "Traceback" not in json.dumps(errors[name])
    assert "\n" not in message.strip()
    # Ansible's own words on arguments are no sentences.
    assert message.strip().endswith((".", "?")) or "parameters are" in message


@pytest.mark.gate
def test_every_part_that_takes_input_is_tried() -> None:
    plugins = FOLDER.parents[2] / "plugins"
    tried = "\n".join(path.read_text() for path in FOLDER.glob("*.yml"))
    names = {path.stem for kind in ("modules", "filter", "test") for path in (plugins / kind).glob("*.py")} - {
        "__init__"
    }
    assert [name for name in sorted(names) if f"virtops.kubevirt.{name}" not in tried] == []
