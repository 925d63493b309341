# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as a survey gives them mean what values do, for each variable of each role and each option of each module."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.texts import OptionSpec, understood

ROOT = Path(__file__).parents[5]
BAD = {
    "int": "a few",
    "bool": "perhaps",
    "list": "[a, b",
    "list of dict": "a, b",
    "list of list": "a, b",
    "dict": "a, b",
}
# Of what they read, text is a form of its own.
FREE = {"str", "path", "raw"}


def documented() -> Iterator[tuple[str, OptionSpec]]:
    for path in sorted(ROOT.glob("roles/*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            yield from entry.get("options", {}).items()
    for path in sorted(ROOT.glob("plugins/modules/*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DOCUMENTATION":
                options = yaml.safe_load(ast.literal_eval(node.value)).get("options", {})
                yield from ((f"{path.stem}.{name}", option) for name, option in options.items())


OPTIONS = dict(documented())


def form(option: OptionSpec) -> str:
    elements = option.get("elements")
    return f"list of {elements}" if elements in ("dict", "list") else str(option.get("type", "str"))


def value(option: OptionSpec) -> Any:
    """One that it may have."""
    match option.get("type", "str"):
        case "str" if "choices" in option:
            return option["choices"][-1]
        case "int":
            return 3
        case "bool":
            return True
        case "list":
            return [value({**option, "type": option["elements"], "elements": "str"})]
        case "dict":
            return {name: value(inner) for name, inner in option.get("options", {}).items()} or {"key": "a"}
        case _:
            return "a"


def forms(option: OptionSpec) -> Iterator[tuple[Any, Any]]:
    """Texts, and what each of them means."""
    kind, meant = form(option), value(option)
    if kind not in FREE:
        yield json.dumps(meant), meant
        yield f" {json.dumps(meant)}\n", meant
    if isinstance(meant, (list, dict)):
        yield yaml.safe_dump(meant), meant
        yield yaml.safe_dump(meant, default_flow_style=True), meant
    if kind == "list":
        other = option.get("choices", ["w2"])[0]
        two = [*meant, other]
        for separator in (",", ", ", "\n", " ,\n "):
            yield separator.join(two), two
        yield meant[0], meant
        yield f"{meant[0]},", meant
    if kind == "bool":
        yield from [("yes", True), ("False", False), ("1", True)]
    if kind == "int":
        yield from [(" 3\n", 3), ("3.0", 3)]
    if kind in ("list of dict", "dict") and option.get("options"):
        texts = _as_texts(meant)
        yield texts, meant
        yield json.dumps(texts), meant
    if "choices" in option and kind == "str":
        yield f" {meant} ", meant
    if kind == "raw":
        yield '{"key": "a"}', {"key": "a"}


def _as_texts(meant: Any) -> Any:
    """As a form whose fields are all texts."""
    if isinstance(meant, dict):
        return {key: _as_texts(inner) for key, inner in meant.items()}
    if isinstance(meant, list):
        return [_as_texts(inner) for inner in meant]
    return str(meant)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_text_means_what_the_value_does(name: str) -> None:
    option = OPTIONS[name]
    for text, meant in forms(option):
        given = understood("test", {name: option}, {name: text})
        assert given == {name: meant}, text
        checked = ArgumentSpecValidator({name: dict(option)}).validate(given)
        assert checked.error_messages == [], text


@pytest.mark.parametrize("name", OPTIONS)
def test_a_value_stays_as_it_is(name: str) -> None:
    meant = value(OPTIONS[name])
    assert understood("test", {name: OPTIONS[name]}, {name: meant}) == {name: meant}


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if form(option) not in FREE])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_is_what_is_not_given(name: str, blank: str) -> None:
    assert understood("test", {name: OPTIONS[name]}, {name: blank}) == {}


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if form(option) not in FREE])
def test_what_cannot_be_meant_is_told_with_the_forms_that_can(name: str) -> None:
    option = OPTIONS[name]
    text = BAD[form(option)]
    with pytest.raises(InvalidRequest, match="has to be") as raised:
        understood("test", {name: option}, {name: text})
    # What a mapping of anything holds may be secret.
    shown = "" if option.get("type") == "dict" and not option.get("options") else f'is "{text}", but '
    assert raised.value.problems[0].startswith(f"{name} {shown}has to be ")
    assert "such as" in str(raised.value) or form(option) == "bool"


def test_all_that_cannot_be_meant_is_told_at_once_and_shortened() -> None:
    options: dict[str, OptionSpec] = {
        "many": {"type": "int"},
        "sure": {"type": "bool"},
        "token": {"type": "int", "no_log": True},
        "template": {"type": "dict"},
    }
    given = {"many": "x" * 1000, "sure": "perhaps", "token": "secret", "template": "{spec: {password: secret"}
    with pytest.raises(InvalidRequest) as raised:
        understood("test", options, given)
    assert len(raised.value.problems) == 4
    assert len(str(raised.value)) < 500
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "text", "meant"),
    [
        ({"type": "list", "elements": "str"}, "007, 1e3", ["007", "1e3"]),
        ({"type": "list", "elements": "str"}, "- 007\n- on", ["007", "on"]),
        ({"type": "list", "elements": "dict"}, "policy: stop", [{"policy": "stop"}]),
        (
            {"type": "list", "elements": "dict"},
            "- policy: stop\n- policy: fail",
            [{"policy": "stop"}, {"policy": "fail"}],
        ),
        ({"type": "list", "elements": "list"}, "[[a], [b, c]]", [["a"], ["b", "c"]]),
        ({"type": "dict"}, "a: 1", {"a": 1}),
        ({"type": "dict"}, "a=1, b=2", "a=1, b=2"),
        ({"type": "str"}, " as it is ", " as it is "),
        ({"type": "raw"}, "/plans/{{ run }}.json", "/plans/{{ run }}.json"),
    ],
)
def test_texts_of_their_own_kind(option: OptionSpec, text: str, meant: Any) -> None:
    assert understood("test", {"it": option}, {"it": text}) == {"it": meant}
