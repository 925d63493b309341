# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histories by name in which something did not hold once: what a campaign has found, as it prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from unit.plugins.module_utils._execution.simulation.driven import Driven
from unit.plugins.module_utils._execution.simulation.machine import OneNode
from unit.plugins.module_utils._execution.simulation.restoring import Restored

# A machine, and what happens to it, in order: the names of its rules with what they are given.
History: TypeAlias = tuple[type["Driven"], tuple[tuple[str, Mapping[str, Any]], ...]]

_QUIET = bytes(12)

HISTORIES: Mapping[str, History] = {
    "a stop without an answer, of a VM that is deleted right then": (
        OneNode,
        (
            ("begin", {"shape": bytes(18) + b"38\x98\x08\x088"}),
            ("nobody_looks", {"choices": _QUIET}),
            ("time_goes_by", {"choices": bytes(9) + b"\x03\x01\x07", "fates": 12}),
            ("somebody_wants_a_vm_off_that_is_ending", {"gone": False, "then": bytes(7) + b"\x01" * 5, "which": 0}),
            ("somebody_wants_a_vm_off_that_is_ending", {"gone": True, "then": bytes(9) + b"\x11\x00\x00", "which": 0}),
        ),
    ),
    "a stop that whoever aborts undoes before who asked for it has seen it": (
        Restored,
        (
            ("begin", {"shape": b"\x02" + bytes(20) + b"#(\xb0"}),
            ("a_budget_changes", {"then": b"\x00\x00\x00\x00\x01\x03\x00\x00\x00\x01\x01\xe3"}),
            ("a_budget_changes", {"then": bytes(7) + b"\x01\x01\x03\x01\xe8"}),
            (
                "the_run_is_aborted",
                {
                    "dies": None,
                    "fates": 0,
                    "meanwhile": b"\x04" + bytes(9) + b"\x01\x03\x03" + bytes(11),
                    "then": _QUIET,
                },
            ),
        ),
    ),
}


def replay(name: str) -> Driven:
    """The machine after it has come to rest. Raises AssertionError where something does not hold."""
    machine, happenings = HISTORIES[name]
    driven = machine()
    for rule, given in happenings:
        getattr(driven, rule)(**given)
    driven.teardown()
    return driven
