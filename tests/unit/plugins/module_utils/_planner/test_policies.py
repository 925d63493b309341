# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policy a VM follows, and what is no policy."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner import policies
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules, idle, policy_for

VMI = {
    "metadata": {"namespace": "shop", "name": "db", "labels": {"app": "db", "tier": "gold"}},
    "spec": {"domain": {"cpu": {"cores": 4}}},
}


def test_rules_that_match_nobody() -> None:
    rules = compile_rules(
        [
            {"selector": {"app": "bd"}, "policy": "stop"},
            {"expression": "spec.nothing", "policy": "stop"},
            {"expression": "abs(metadata.name)", "policy": "stop"},
            {"selector": {"app": "db"}, "policy": "stop"},
            {"policy": "fail"},
        ]
    )
    assert [rule.source for rule in idle(rules, [VMI])] == ["policies[0]", "policies[1]"]


@pytest.mark.parametrize(
    ("rules", "policy"),
    [
        ([], "fail"),
        ([{"policy": "stop"}], "stop"),
        ([{"selector": {"app": "web"}, "policy": "stop"}], "fail"),
        ([{"selector": {"app": "db"}, "policy": "restart"}, {"policy": "stop"}], "restart"),
        ([{"selector": {"app": "db", "tier": "silver"}, "policy": "restart"}, {"policy": "stop"}], "stop"),
        ([{"selector": None, "expression": None, "policy": "stop"}], "stop"),
        ([{"expression": "spec.domain.cpu.cores >= `4`", "policy": "stop"}], "stop"),
        ([{"expression": "spec.domain.cpu.cores > `4`", "policy": "stop"}], "fail"),
        ([{"expression": "spec.nothing", "policy": "stop"}], "fail"),
        ([{"selector": {"app": "web"}, "expression": "spec.domain", "policy": "stop"}], "fail"),
    ],
)
def test_the_first_that_matches_counts(rules: list[Any], policy: str) -> None:
    assert policy_for(VMI, compile_rules(rules)).value == policy


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("stop", "a list of rules is expected, got 'stop'"),
        (["stop"], "policies[0] is no mapping but 'stop'"),
        ([{"policy": "stop"}, {"selector": {"a": "b"}}], "policies[1] has the policy None"),
        ([{"policy": "skip"}], "policies[0] has the policy 'skip'. A policy is for example"),
        ([{"policy": "stop", "labels": {}, "vm": "a"}], "policies[0] has the unknown key labels, vm"),
        ([{"policy": "stop", "selector": "app=db"}], "policies[0] has as selector no labels but 'app=db'"),
        ([{"policy": "stop", "selector": {"app": 1}}], "policies[0] has as selector no labels but {'app': 1}"),
        ([{"policy": "stop", "expression": 7}], "policies[0] has no expression but 7"),
        ([{"policy": "stop", "expression": "spec..a"}], "policies[0] has the malformed expression 'spec..a', "),
    ],
)
def test_mistakes(rules: Any, words: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        compile_rules(rules)
    assert str(raised.value).startswith("Cannot apply the policies: ")
    assert words in str(raised.value)


def test_an_expression_that_cannot_be_applied() -> None:
    rules = compile_rules([{"expression": "abs(metadata.name)", "policy": "stop"}])
    with pytest.raises(InvalidRequest, match=r"policies\[0\] cannot be applied to VMI shop/db, "):
        policy_for(VMI, rules)


def test_only_expressions_need_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "HAS_JMESPATH", False)
    assert compile_rules([{"policy": "stop"}])
    with pytest.raises(
        MissingLibrary, match=r"jmespath is missing, which is needed for the expression of policies\[0\]"
    ):
        compile_rules([{"expression": "spec", "policy": "stop"}])
