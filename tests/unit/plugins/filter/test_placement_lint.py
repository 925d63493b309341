# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.filter.placement_lint import FilterModule

from unit.plugins.module_utils._scheduler.builders import apart, node, pod, term

LISTS = {
    "nodes": [node("a")],
    "pods": [pod("p", on="a", labels={"app": "x"}, affinity=apart(term("rack", {"matchLabels": {"app": "x"}})))],
    "pdbs": [
        {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {}}},
        }
    ],
}
FIELD = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey"
ask = FilterModule().filters()["placement_lint"]


def rules(**options: Any) -> list[str]:
    return [finding["rule"] for finding in ask(LISTS, **options)]


def test_a_finding_is_plain_data_with_all_its_fields() -> None:
    (finding,) = ask(LISTS, rules=["topology-key-unknown"])
    assert json.loads(json.dumps(finding)) == finding
    consequence = finding.pop("consequence")
    assert consequence.startswith("No node has the label rack, so the required anti-affinity keeps nothing apart")
    assert finding == {
        "id": f"topology-key-unknown:Pod/default/p#{FIELD}",
        "rule": "topology-key-unknown",
        "severity": "error",
        "api_version": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "field": FIELD,
        "remedy": "Use a label that the nodes have, or label the nodes with rack.",
        "patch": [],
        "vmis": [],
    }


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(LISTS))
    assert ask(str(path)) == ask(LISTS)


def test_rules_are_chosen_and_left_out() -> None:
    assert rules() == ["topology-key-unknown", "pdb-never-allows"]
    assert rules(rules="pdb-never-allows") == ["pdb-never-allows"]
    assert rules(skip=["pdb-never-allows"]) == ["topology-key-unknown"]
    assert rules(rules=["pdb-never-allows"], skip=["pdb-never-allows"]) == []


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"rules": ["no-such"]}, "There is no rule no-such. The rules are anti-affinity-fills-domains, "),
    ({"skip": ["a", "b"]}, "There are no rules a, b. The rules are"),
    ({"severity": "fatal"}, "There is no severity 'fatal'. Give one of error, warning, info."),
    ({"window": "soon"}, "`window` is a number of seconds, got 'soon'"),
    ({"window": 0}, "Give a whole number above 0"),
    ({"skip": {"a": 1}}, "`skip` is a list of strings"),
]


@pytest.mark.parametrize(("options", "text"), BROKEN)
def test_errors_are_one_sentence(options: dict[str, Any], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as raised:
        ask(LISTS, **options)
    assert text in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_source_that_is_no_snapshot() -> None:
    with pytest.raises(AnsibleFilterError, match="Do you mean 'nodes'"):
        ask({"node": []})
