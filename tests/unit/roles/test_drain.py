# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a batch of a planned run may begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

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
