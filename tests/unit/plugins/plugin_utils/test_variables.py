# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each name that begins as a role's does is one that the role knows, or is refused with the nearest one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._variables import Owner, check_names, role, taken

ROLES = {folder.name: folder for folder in sorted((Path(__file__).parents[4] / "roles").iterdir())}
OWNER = Owner(
    "role drain",
    "drain_",
    {
        "drain_policies": {"type": "list", "elements": "dict"},
        "drain_owner": {"required": True},
        "drain_wait": {"type": "int"},
    },
    frozenset({"drain_result"}),
)


def problems(*names: str, others: Sequence[Owner] = (), **hosts: list[str]) -> list[str]:
    """What is wrong with these names of a host n1, and those of further hosts."""
    try:
        check_names(OWNER, others, {"n1": ["drain_owner", *names], **hosts})
    except InvalidRequest as error:
        return error.problems
    return []


@pytest.mark.parametrize("name", ROLES)
def test_a_role_knows_its_variables_and_facts_and_guesses_the_others(name: str) -> None:
    owner = role(ROLES[name])
    assert owner.options
    assert owner.mistaken([*owner.options, *owner.others, "unrelated", f"_{name}_own", f"{name}less"]) == []
    for option in owner.options:
        misspelt = option[:-1] + "_" + option[-1]
        assert owner.mistaken([misspelt]) == [misspelt]
        assert owner.nearest(misspelt) == option


def test_facts_of_a_role_are_known_also_from_blocks() -> None:
    assert {"drain_result", "drain_boot_id"} <= role(ROLES["drain"]).others
    assert {"plan_maintenance_batches", "plan_maintenance_plan"} <= role(ROLES["plan_maintenance"]).others


def test_all_that_is_misspelt_is_told_with_where_it_is() -> None:
    found = problems(
        "drain_polices", "drain_zzz", "drain_result", n2=["drain_polices"], n3=["drain_polices"], n4=["drain_polices"]
    )
    assert found == [
        "role drain has no variable drain_polices (do you mean drain_policies?),"
        " which each of n1, n2, n3 and 1 more hosts has",
        "role drain has no variable drain_zzz, which host n1 has",
    ]


def test_roles_that_follow_are_looked_through_too() -> None:
    other = Owner("role uncordon", "uncordon_", {"uncordon_owner": {}}, frozenset())
    assert problems("uncordon_ownr") == []
    assert problems("uncordon_ownr", others=[other]) == [
        "role uncordon has no variable uncordon_ownr (do you mean uncordon_owner?), which host n1 has"
    ]


def test_what_is_missing_is_told_with_what_is_misspelt() -> None:
    with pytest.raises(InvalidRequest) as raised:
        check_names(OWNER, (), {"n1": ["drain_ownr"]})
    assert [problem.split(",")[0] for problem in raised.value.problems] == [
        "role drain has no variable drain_ownr (do you mean drain_owner?)",
        "drain_owner is not given",
    ]


def test_nothing_is_added_to_what_is_given() -> None:
    """Options that exclude each other would both be there otherwise."""
    inner = {"name": {"required": True}, "target_node": {}, "selector": {"type": "dict"}}
    options = {"move_vms": {"type": "list", "elements": "dict", "options": inner}, "move_more": {}}
    owner = Owner("playbook move", "move_", options, frozenset())
    assert taken(owner, {"move_vms": [{"name": "a", "selector": ""}]}) == {"vms": [{"name": "a"}]}


def test_values_are_taken_by_their_types() -> None:
    given = {"drain_owner": 7, "drain_wait": "60", "drain_policies": '[{"policy": "stop"}]'}
    assert taken(OWNER, given) == {"owner": "7", "wait": 60, "policies": [{"policy": "stop"}]}
    with pytest.raises(InvalidRequest, match='drain_wait is "soon", but has to be a whole number'):
        taken(OWNER, {**given, "drain_wait": "soon"})
    with pytest.raises(InvalidRequest, match="missing required arguments: drain_owner"):
        taken(OWNER, {})


def test_a_relative_path_starts_from_the_folder_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {name: {"type": "path"} for name in ("drain_file", "drain_whole", "drain_none")}
    owner = Owner("role drain", "drain_", paths, frozenset())
    given = {"drain_file": "plans/a.json", "drain_whole": "/plans/a.json", "drain_none": ""}
    assert taken(owner, given) == {"file": str(tmp_path / "plans/a.json"), "whole": "/plans/a.json", "none": ""}
