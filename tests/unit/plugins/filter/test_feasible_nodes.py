# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.filter.feasible_nodes import DOCUMENTATION, FilterModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

from unit.plugins.module_utils._scheduler.builders import node, pod, spread

LISTS = {"nodes": [node("a"), node("b", cordoned=True)]}
UNFIT = {"b": ["node(s) were unschedulable"]}
ask = FilterModule().filters()["feasible_nodes"]


def test_plain_lists() -> None:
    assert ask(LISTS, pod()) == {"fit": ["a"], "unfit": UNFIT, "message": ""}


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(LISTS))
    assert ask(str(path), pod(), scores=True, profile="NoScoring")["scores"] == {"a": 1}


def test_answers_are_plain_data() -> None:
    answer = ask(LISTS, pod(schedulingGates=[{"name": "g"}], resourceClaims=[{"name": "c"}]), scores=True)
    assert json.loads(json.dumps(answer)) == answer


BROKEN: list[tuple[Any, Any, dict[str, Any], str]] = [
    (LISTS, "default/new", {}, "A v1.Pod with metadata and spec is expected"),
    (LISTS, {"metadata": {}}, {}, "A v1.Pod with metadata and spec is expected"),
    (LISTS, pod(), {"profile": "Best"}, "There is no profile 'Best'. Give one of LowNodeUtilization, "),
    ({"node": []}, pod(), {}, "Do you mean 'nodes'"),
    ("/nowhere/cluster.json", pod(), {}, "Cannot read the snapshot"),
    (LISTS, pod(requests={"cpu": "much"}), {}, "'much' is not a quantity"),
    (LISTS, pod(topologySpreadConstraints=[spread("zone", {"matchLabels": {"a": "?"}})]), {}, "cannot be the value of"),
]


@pytest.mark.parametrize(("source", "asked", "options", "text"), BROKEN)
def test_errors_are_one_sentence(source: Any, asked: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        ask(source, asked, **options)
    assert text in str(raised.value)
    assert raised.value.__cause__ is None


def test_all_profiles_are_documented() -> None:
    assert all(f"- {profile.value}\n" in DOCUMENTATION for profile in Profile)
