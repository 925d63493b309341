# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What texts mean where an argument spec wants something else: an AWX survey gives little but texts.

Numbers and booleans, lists with commas or a name on each line, and all of them as JSON or YAML. A blank text is what
was not given. It goes further than Ansible, which keeps the space of "a, b" and takes no list of mappings from a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

try:
    import yaml
except ImportError:
    HAS_YAML = False
else:
    HAS_YAML = True

from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

OptionSpec = Mapping[str, Any]

NOT_GIVEN: Final = object()
# What begins so is no name: a list or mapping in JSON, or a list in YAML.
_STRUCTURE = re.compile(r"\s*(?:[\[{]|- )")
_WHOLE = re.compile(r"([+-]?\d{1,18})(?:\.0*)?")
_CONTAINERS: Mapping[str, type] = {"dict": Mapping, "list": list}
_FORMS = {
    "int": "a whole number such as 3",
    "bool": "true or false",
    "list": 'names with commas or each on its own line, or a list such as ["a", "b"]',
    "list of dict": "a list of mappings in JSON or YAML, such as [{key: value}]",
    "list of list": "a list of lists in JSON or YAML, such as [[a, b], [c]]",
    "dict": "a mapping in JSON or YAML, such as {key: value}",
}


class _Misunderstood(Exception):
    """A `value` that is to be one of _FORMS, and is none."""

    def __init__(self, value: object, form: str) -> None:
        super().__init__(form)
        self.value = value
        self.form = form


def understood(attempted: str, options: Mapping[str, OptionSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, in the types of its options, without what is blank. What no option wants stays as it is.

    Raises InvalidRequest, with all that cannot be understood.
    """
    names = {alias: name for name, option in options.items() for alias in (name, *(option.get("aliases") or ()))}
    meant, problems = {}, []
    for name, value in given.items():
        option = options[names[name]] if name in names else {}
        try:
            meant[name] = _meant(option, value)
        except _Misunderstood as error:
            shown = "" if _may_be_secret(option) else f'is "{brief(error.value)}", but '
            problems.append(f"{name} {shown}has to be {_FORMS[error.form]}")
    if problems:
        raise InvalidRequest(attempted, problems, "Correct the values; this task has touched nothing.")
    return {name: value for name, value in meant.items() if value is not NOT_GIVEN}


def _may_be_secret(option: OptionSpec) -> bool:
    """A mapping of anything may be a template of virtual machines, which begins with their passwords."""
    return bool(option.get("no_log")) or (option.get("type") == "dict" and not option.get("options"))


def _meant(option: OptionSpec, value: Any) -> Any:
    kind = option.get("type") or "str"
    if isinstance(value, str):
        return _READERS[kind](option, str(value)) if kind in _READERS else value
    if kind == "list" and isinstance(value, list):
        return _entries(option, value)
    if kind == "dict" and isinstance(value, Mapping):
        return _members(option, value)
    return value


def _entries(option: OptionSpec, values: list[Any]) -> list[Any]:
    element = {"type": option.get("elements") or "raw", "options": option.get("options")}
    meant = [_meant(element, value) for value in values]
    return [value for value in meant if value is not NOT_GIVEN]


def _members(option: OptionSpec, values: Mapping[str, Any]) -> dict[str, Any]:
    options = option.get("options") or {}
    meant = {key: _meant(options[key], value) if key in options else value for key, value in values.items()}
    return {key: value for key, value in meant.items() if value is not NOT_GIVEN}


def _number(_option: OptionSpec, text: str) -> Any:
    if not text.strip():
        return NOT_GIVEN
    found = _WHOLE.fullmatch(text.strip())
    if not found:
        raise _Misunderstood(text, "int")
    return int(found[1])


def _truth(_option: OptionSpec, text: str) -> Any:
    word = text.strip().lower()
    if not word:
        return NOT_GIVEN
    if word not in BOOLEANS_TRUE | BOOLEANS_FALSE:
        raise _Misunderstood(text, "bool")
    return word in BOOLEANS_TRUE


def _choice(option: OptionSpec, text: str) -> Any:
    """A text that may be any is what it is."""
    choices = option.get("choices")
    if not choices or text in choices:
        return text
    return text.strip() or NOT_GIVEN


def _list(option: OptionSpec, text: str) -> Any:
    if not text.strip():
        return NOT_GIVEN
    kind = option.get("elements") or "raw"
    if kind not in _CONTAINERS and not _STRUCTURE.match(text):
        return _entries(option, [part.strip() for part in re.split("[,\n]", text) if part.strip()])
    form = f"list of {kind}" if kind in _CONTAINERS else "list"
    found = _parsed(text, form, typed=kind in _CONTAINERS)
    entries = [found] if kind == "dict" and isinstance(found, Mapping) else found
    if not isinstance(entries, list):
        raise _Misunderstood(text, form)
    for entry in entries:
        fits = isinstance(entry, _CONTAINERS[kind]) if kind in _CONTAINERS else not isinstance(entry, (Mapping, list))
        if not fits:
            raise _Misunderstood(text, form)
    return _entries(option, entries)


def _mapping(option: OptionSpec, text: str) -> Any:
    if not text.strip():
        return NOT_GIVEN
    found = _parsed(text, "dict", typed=True)
    if isinstance(found, Mapping):
        return _members(option, found)
    if "=" not in text:
        raise _Misunderstood(text, "dict")
    # `key=value` is read by Ansible.
    return text


def _anything(_option: OptionSpec, text: str) -> Any:
    """A mapping if it is one: other texts, such as paths, do not begin as JSON does."""
    found = _parsed(text, "dict", typed=True) if text.lstrip().startswith("{") else text
    return found if isinstance(found, Mapping) else text


def _parsed(text: str, form: str, *, typed: bool) -> Any:
    """`typed`: numbers and the like are told from texts; names are texts, also that of a node 007."""
    if not HAS_YAML:
        reason = "to understand lists and mappings in texts"
        raise InvalidRequest(
            "read the options", [f"one of them is {_FORMS[form]}"], missing_required_lib("PyYAML", reason)
        )
    try:
        return yaml.load(text, yaml.SafeLoader if typed else yaml.BaseLoader)  # noqa: S506  # it makes texts only
    except yaml.YAMLError as error:
        raise _Misunderstood(text, form) from error


_READERS: Mapping[str, Callable[[OptionSpec, str], Any]] = {
    "int": _number,
    "bool": _truth,
    "str": _choice,
    "list": _list,
    "dict": _mapping,
    "raw": _anything,
}
