# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.filter.batch_turn import FilterModule

ask = FilterModule().filters()["batch_turn"]


def test_the_answer_is_plain_data() -> None:
    answer = ask(["n2"], [["n1"], ["n2"]], [])
    assert json.loads(json.dumps(answer)) == answer
    assert (answer["number"], answer["overdue"], answer["open"]) == (2, ["n1"], False)
    assert answer["message"].startswith("n2: not begun")
    assert ask(["n2"], [["n1"], ["n2"]], [], max_failed_nodes=1)["open"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("n1", [["n1"]], []), "`_input` is a list"),
        ((["n1"], "n1", []), "`batches` is a list"),
        ((["n1"], ["n1"], []), "`batches` is a list"),
        ((["n1"], [[1]], []), "`batches` has names of hosts"),
        ((["n1"], [["n1"]], {"n1": True}), "`done` is a list"),
        ((["n1"], [["n1"]], [], -1), "`max_failed_nodes` is a number of hosts, got -1"),
        ((["n1"], [["n1"]], [], "1"), "`max_failed_nodes` is a number"),
    ],
)
def test_what_cannot_be_meant_is_said(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        ask(*given)
