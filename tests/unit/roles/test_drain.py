# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of a planned run may begin, asked as the role asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

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
        ("n2", ["n1"], "n2: these hosts are no batch of the plan, so nothing was begun. Give drain_batches as", [], 2),
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
