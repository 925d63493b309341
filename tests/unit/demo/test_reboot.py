# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reboot of the demonstration, which README offers to whoever has started a testbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from unit.playbooks.playing import play

TESTS = Path(__file__).parents[2]
REBOOT = TESTS / "demo/reboot.yml"


@pytest.mark.parametrize("named", [None, ["/opt/testbed", "--name", "demo"]])
def test_a_node_is_rebooted_by_the_testbed_that_is_given_or_else_the_one_beside_it(
    tmp_path: Path, named: list[str] | None
) -> None:
    tasks = [{"ansible.builtin.include_tasks": str(REBOOT)}]
    content = yaml.safe_dump([{"hosts": "n1", "gather_facts": False, "tasks": tasks}])
    given = [] if named is None else ["-e", json.dumps({"testbed_command": named})]
    told, status = play(tmp_path, content, "-i", "n1,", "--check", "-v", *given, begun_in=tmp_path)
    assert status == 0, told
    command = [*(named or [str(TESTS / "testbed/testbed")]), "inject", "node-reboot", "--node", "n1"]
    assert json.dumps(command)[1:-1] in told
