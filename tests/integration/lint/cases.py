# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All cases, at least one for each rule; see `case.py`."""

from __future__ import annotations

from dataclasses import astuple

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Finding
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint

from integration.lint import moving_cases, standing_cases
from integration.lint.case import COMMON, PAIR, Case, Proof, nodes
from testbed.api import Object
from testbed.scenarios.generator.storage import storage_classes
from testbed.scenarios.model import Settled

Lists = dict[str, list[Object]]

CASES: tuple[Case, ...] = (*moving_cases.CASES, *standing_cases.CASES)
# How long a drain may take where the cases are looked at: longer than all take but the one planted.
WINDOW = 300


def shared() -> list[Object]:
    """What stands beside the cases."""
    return [*storage_classes(), *nodes(COMMON, PAIR)]


def objects() -> list[Object]:
    """The whole cluster."""
    return [*shared(), *(obj for case in CASES for obj in case.objects())]


def settled() -> Settled:
    """What runs of it."""
    never = (Proof.POD_PENDING, Proof.POD_IGNORED)
    machines = sum(case.machines for case in CASES if case.proof not in never)
    return Settled(pods=sum(case.pods for case in CASES), vmis=machines)


def expected(case: Case) -> set[tuple[str, str, str, str]]:
    """Rule, kind, namespace and name of what is to be found."""
    return {(rule, *subject) for rule in (case.rule, *case.also) for subject in case.at_fault}


def found(lists: Lists) -> dict[tuple[str, str, str, str], Finding]:
    """The same of what is found."""
    findings = lint(lists, window=WINDOW)
    assert len({entry.id for entry in findings}) == len(findings), "an id is given to two findings"
    return {(entry.rule.id, *astuple(entry.problem.subject)[1:]): entry for entry in findings}
