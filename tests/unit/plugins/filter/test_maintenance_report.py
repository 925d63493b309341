# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing but what is needed is asked of hosts, whose variables are costly, and what cannot be meant is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.filter.maintenance_report import FilterModule

from unit.plugins.module_utils._report.drained import CUT, DEVIATION, MOVE, STARTED

tell = FilterModule().filters()["maintenance_report"]


class Variables(Mapping[str, Any]):
    """What is asked of it, by `[]`; each answer costs, as in hostvars."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all are asked for")

    def __len__(self) -> int:
        raise AssertionError("all are asked for")


def test_each_host_is_asked_once_for_what_is_needed() -> None:
    host = Variables(
        {
            "ansible_facts": {},
            "drain_result": {"interrupted": [CUT]},
            "uncordon_started": {"started": [STARTED], "deviations": [{**DEVIATION, "name": "db"}]},
            "uncordon_given_back": True,
            "_drain_name": "n1",
        }
    )
    hosts = Variables({"worker": host, "mate": Variables({"drain_result": {"moves": [{**MOVE, "node": "n3"}]}})})
    assert tell([["worker", "mate"], ["unknown"]], hosts, "kernel", verbose=True) == [
        "Run kernel:",
        "worker: given back, but not complete; VMs: 1 migrated, 1 stopped, 1 started again",
        "     VM  shop/web -> n3",
        "     VM  shop/db stopped, and started again on n1",
        "     not as planned: VM  shop/db goes to n2; instead: migrated to n3 in 6 s, as the network was gone",
        "mate: failed",
        "unknown: not begun",
    ]
    assert hosts.asked == ["worker", "mate"]
    assert sorted(host.asked) == ["_drain_name", "drain_result", "uncordon_started"]


def test_a_failure_is_one_whatever_it_was() -> None:
    """Its words are not needed, nor seen where no_log has hidden them."""
    host = Variables({"rolling_maintenance_failure": "it was lost"})
    assert tell([["n1"]], {"n1": host}, "kernel") == ["Run kernel:", "n1: failed"]
    assert host.asked.count("rolling_maintenance_failure") == 0


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (("n1", {}, "kernel"), {}, "`_input` is a list of lists of hosts, got 'n1'"),
        ((["n1"], {}, "kernel"), {}, "`_input` is a list of lists of hosts, got 'n1'"),
        (([[1]], {}, "kernel"), {}, "`_input` has the names of each batch's hosts"),
        (([["n1"]], ["n1"], "kernel"), {}, "`hosts` has the variables of hosts by their names"),
        (([["n1"]], {}, "kernel"), {"verbose": "no"}, "`verbose` is true or false, got 'no'"),
        (([["n1"]], {}, "kernel"), {"check_mode": None}, "`check_mode` is true or false"),
        (
            ([["n1"]], {"n1": {"drain_result": {"moves": [{}]}}}, "kernel"),
            {},
            "is not what module .*node_drain returns",
        ),
        (([["n1"]], {"n1": {"uncordon_started": "x"}}, "kernel"), {}, "is not what module .*node_drain returns"),
    ],
)
def test_what_cannot_be_meant_is_said(given: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        tell(*given, **options)
