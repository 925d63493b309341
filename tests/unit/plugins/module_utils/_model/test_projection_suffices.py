# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept is all that a verdict reads: with whole objects and with projected ones it is the same.

The cases are those that are held against the real scheduler, so every feature of it is in them.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

from differential.cases.cluster import case
from differential.ours import answers

CASES = 100


def projected(name: str, items: list[Any]) -> list[Any]:
    return [BY_NAME[name].project(item) for item in items]


def test_verdicts_are_the_same() -> None:
    said = ""
    for number in range(CASES):
        whole = case(5, number)
        lists = {name: projected(name, items) for name, items in whole["lists"].items()}
        expected = answers(whole)
        assert answers({**whole, "lists": lists, "asked": projected("pods", whole["asked"])}) == expected, number
        said += str(expected)
    # A case in which nothing fits, nothing is scored or nothing is rejected would prove little.
    assert all(words in said for words in ("didn't match", "Insufficient", "volume", "topology spread", "'scores': {'"))
