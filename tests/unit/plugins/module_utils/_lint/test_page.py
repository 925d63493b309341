# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules import registry
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.registry import LINT_RULES

from unit.plugins.module_utils._lint.page import MARK, PAGE, listed


def test_the_guide_lists_the_rules_as_they_are() -> None:
    _before, mark, after = PAGE.read_text().partition(MARK)
    assert mark
    assert after == listed()


@pytest.mark.parametrize("rule", LINT_RULES, ids=lambda rule: rule.id)
def test_a_rule_is_named_as_its_file(rule: LintRule) -> None:
    assert getattr(registry, rule.id.replace("-", "_")).RULE is rule
    assert not rule.title.endswith(".")
    assert rule.explanation.endswith(".")


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in LINT_RULES}) == len(LINT_RULES)
