# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node of a host that is drained is the one that is given back, and what says otherwise is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

TWO_NAMES = "uncordon_node of web-1 is %s, and drain_node is %s: leave uncordon_node out"


def told(folder: Path, role: str, *hosts: str, play_vars: dict[str, str] | None = None, **variables: Any) -> str:
    """What a role says of hosts of an inventory. No cluster answers. play_vars: variables of the play."""
    inventory = folder / "hosts.ini"
    inventory.write_text("\n".join(hosts) + "\n")
    include = {"ansible.builtin.include_role": {"name": f"virtops.kubevirt.{role}"}, "vars": variables}
    # No API server that is away is waited for.
    given = {"ansible_connection": "local", f"{role}_owner": "us", "uncordon_wait_timeout": 0, **(play_vars or {})}
    content = {"hosts": "all", "gather_facts": False, "vars": given, "tasks": [include]}
    said, status = play(folder, yaml.safe_dump([content]), "-i", str(inventory))
    assert status != 0, said
    return " ".join(said.split())


@pytest.mark.parametrize("role", ["drain", "uncordon"])
def test_a_host_with_two_names_is_neither_drained_nor_given_back(tmp_path: Path, role: str) -> None:
    said = told(tmp_path, role, "web-1 drain_node=n1 uncordon_node=n2")
    assert TWO_NAMES % ("n2", "n1") in said
    assert "See that all that is to be done is allowed" not in said


def test_a_drain_by_the_hosts_own_name_is_given_back_by_it(tmp_path: Path) -> None:
    assert TWO_NAMES % ("n2", "web-1") in told(tmp_path, "drain", "web-1 uncordon_node=n2")


def test_what_a_task_gives_back_is_what_the_host_has(tmp_path: Path) -> None:
    assert TWO_NAMES % ("n3", "n1") in told(tmp_path, "uncordon", "web-1 drain_node=n1", uncordon_node="n3")


def test_who_takes_a_node_is_the_one_that_gives_it_back(tmp_path: Path) -> None:
    """Else one hears of it when the node has been maintained."""
    said = told(tmp_path, "drain", "web-1 uncordon_owner=them")
    assert 'uncordon_owner to the same. Of web-1 they are "us" and "them".' in said
    assert "See that all that is to be done is allowed" not in said


def test_owners_of_a_play_are_those_that_it_has_for_both(tmp_path: Path) -> None:
    """Its variables stand before the inventory's also where one is made of them."""
    both = 'uncordon_owner="{{ patch }}" patch=them'
    said = told(tmp_path, "drain", f"web-1 {both}", play_vars={"patch": "us"})
    assert "uncordon_owner to the same" not in said
    assert "See that all that is to be done is allowed" in said


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("role", "host", "variables"),
    [
        ("drain", "web-1 drain_node=n1 uncordon_node=n1", {}),
        ("drain", "web-1 drain_owner=7 uncordon_owner=7", {"drain_owner": 7}),
        ("drain", "web-1 drain_node=n1 uncordon_node=", {}),
        ("drain", "7 drain_node=7 uncordon_node=7", {}),
        ("uncordon", "web-1 drain_node=n1", {}),
        ("uncordon", "web-1 drain_node=7", {}),
        ("uncordon", "web-1 drain_node=", {}),
        ("uncordon", "web-1 drain_node=n1 uncordon_node=n1", {}),
        ("uncordon", "web-1", {"uncordon_node": "n3"}),
        ("drain", "web-1", {"drain_node": "n3"}),
    ],
)
def test_one_name_is_enough(tmp_path: Path, role: str, host: str, variables: dict[str, Any]) -> None:
    said = told(tmp_path, role, host, **variables)
    assert "leave uncordon_node out" not in said
    assert "See that all that is to be done is allowed" in said
