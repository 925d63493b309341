# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a planned run: nothing is rebalanced before all nodes are back, and the run is let go of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from unit.playbooks.playing import play as run

ROOT = Path(__file__).parents[3]
# Its first task, which goes no further without a cluster.
REBALANCE = "rebalance : See that all that is to be done is allowed"
LATER = "is decided when all nodes are back"


def ended(folder: Path, play: dict[str, Any], *options: str, done: Iterable[str] = ()) -> tuple[str, int]:
    """What a last play tells without a cluster, and its status. Of the run's nodes, n1 and n2, these are done."""
    facts = [{"uncordon_done": True} if name in done else {} for name in ("n1", "n2")]
    hosts = [
        {"ansible.builtin.add_host": {"name": f"n{number}", **given}} for number, given in enumerate(facts, start=1)
    ]
    plan = {"ansible.builtin.set_fact": {"plan_maintenance_batches": [["n1", "n2"]]}}
    taken = yaml.safe_load((ROOT / "playbooks/steps/check.yml").read_text())[0]
    first = {"hosts": "localhost", "gather_facts": False, "tasks": [*hosts, plan, taken]}
    return run(folder, yaml.safe_dump([first, play]), *options)


def readme() -> dict[str, Any]:
    """The last play of the README's playbook."""
    section = (ROOT / "README.md").read_text().partition("### The same as your own playbook")[2]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert example
    play: dict[str, Any] = yaml.safe_load(example[1])[-1]
    return play


def rolling() -> dict[str, Any]:
    """What follows the report in the last play of rolling_maintenance, up to letting go of the run."""
    play = yaml.safe_load((ROOT / "playbooks/rolling_maintenance.yml").read_text())[-1]
    (block,) = play["tasks"]
    return {"hosts": "localhost", "gather_facts": False, "vars": play["vars"], "tasks": block["block"][1:]}


def test_a_forecast_says_that_rebalancing_is_decided_later(tmp_path: Path) -> None:
    told, status = ended(tmp_path, rolling(), "--check", done=["n1", "n2"])
    assert (status, LATER in told, REBALANCE in told) == (0, True, False), told


def test_a_run_that_has_come_true_is_rebalanced(tmp_path: Path) -> None:
    told, _status = ended(tmp_path, rolling(), done=["n1", "n2"])
    assert (LATER in told, REBALANCE in told) == (False, True), told


def test_who_leaves_everything_where_it_is_hears_nothing_of_it(tmp_path: Path) -> None:
    told, status = ended(tmp_path, rolling(), "--check", "-e", '{"rolling_maintenance_rebalance": false}')
    assert (status, LATER in told, REBALANCE in told) == (0, False, False), told


def test_the_readme_rebalances_only_after_all_nodes(tmp_path: Path) -> None:
    told, status = ended(tmp_path, readme(), done=["n1"])
    assert (status, REBALANCE in told) == (2, False), told
    assert "Not done: n2" in told
    assert REBALANCE in ended(tmp_path, readme(), done=["n1", "n2"])[0]


def test_the_readme_lets_go_of_the_run_in_the_end() -> None:
    last = readme()["post_tasks"][-1]["virtops.kubevirt.maintenance_run"]
    assert last == {"run": "{{ plan_maintenance_plan.run }}", "state": "released"}
