# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases that the integration tests hold against a real cluster, in a cluster made of objects."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.registry import LINT_RULES

from integration.lint.case import Case
from integration.lint.cases import CASES, expected, found, objects, shared
from testbed.api import Object
from unit.plugins.module_utils._lint.json_patch import patched
from unit.plugins.module_utils._lint.world import world

PATCHED = [case for case in CASES if case.patched]


def alone(case: Case) -> list[Object]:
    return [*shared(), *case.objects()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_case_is_found_and_nothing_else(case: Case) -> None:
    findings = found(world(alone(case)))
    assert set(findings) == expected(case)
    assert all(bool(finding.problem.patch) == case.patched for finding in findings.values())


@pytest.mark.parametrize("case", PATCHED, ids=lambda case: case.name)
def test_the_patch_mends_it(case: Case) -> None:
    findings = found(world(alone(case)))
    mended = alone(case)
    for (_rule, kind, _namespace, name), finding in findings.items():
        number = next(i for i, obj in enumerate(mended) if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
        mended[number] = patched(mended[number], finding.to_json()["patch"])
    assert {rule for rule, *_subject in found(world(mended))} == set(case.leaves)


def test_all_cases_in_one_cluster() -> None:
    assert set(found(world(objects()))) == {entry for case in CASES for entry in expected(case)}


def test_each_rule_has_a_case() -> None:
    assert {rule.id for rule in LINT_RULES} == {case.rule for case in CASES}
    assert {rule.id for rule in LINT_RULES if rule.mends} == {case.rule for case in PATCHED}
