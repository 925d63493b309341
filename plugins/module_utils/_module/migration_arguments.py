# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of vmi_migration, and the wishes they express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.object_name import name_problem
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import Wish
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import SelectorError, label_selector

_WHERE_TO: dict[str, Any] = {
    "namespace": {"type": "str"},
    "target_node": {"type": "str"},
    "added_node_selector": {"type": "dict"},
}
CONSTRAINTS: dict[str, Any] = {
    "mutually_exclusive": [("name", "vmis"), ("target_node", "added_node_selector")],
    "required_one_of": [("name", "vmis")],
}


def spec() -> dict[str, Any]:
    vmi = {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str", "required": True}, **_WHERE_TO},
        "mutually_exclusive": [("target_node", "added_node_selector")],
    }
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str"},
        **_WHERE_TO,
        "vmis": vmi,
        "wait": {"type": "bool", "default": True},
        "wait_timeout": {"type": "int", "default": 900},
        "unschedulable_timeout": {"type": "int", "default": 60},
        "retries": {"type": "int", "default": 2},
    }


def read_wishes(params: Mapping[str, Any]) -> list[Wish]:
    """In the order of the task. Raises Mistake if they contradict each other or say too little."""
    wishes = [
        _wish(entry, params) for entry in params["vmis"] or [{"name": params["name"]}] if entry["name"] is not None
    ]
    found = [*_missing(wishes, params), *_misnamed(wishes), *_repeated(wishes), *_illegal(wishes)]
    if found:
        raise Mistake("read the options of the task", found, "Nothing was changed.")
    return wishes


def _wish(entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> Wish:
    namespace = entry.get("namespace") or defaults["namespace"] or ""
    # A destination of its own, of either kind, replaces the task's.
    where_to = entry if entry.get("target_node") or entry.get("added_node_selector") else defaults
    selector = where_to.get("added_node_selector") or {}
    labels = {str(key): str(value) for key, value in selector.items()}
    return Wish(namespace, entry["name"], where_to.get("target_node") or None, labels)


def _missing(wishes: list[Wish], params: Mapping[str, Any]) -> Iterator[str]:
    if not wishes:
        yield "no VMI is named; give name or vmis"
    negatives = [name for name in ("wait_timeout", "unschedulable_timeout") if params[name] < 1]
    yield from (f"{name} is {params[name]}; give a second at least" for name in negatives)
    if params["retries"] < 0:
        yield f"retries is {params['retries']}; give 0 to try once"
    for wish in wishes:
        if not wish.namespace:
            yield f"{wish.name} has no namespace; give namespace"
        if params["state"] == "present" and not wish.destination:
            yield f"{wish.title} has no destination; give target_node or added_node_selector"


def _misnamed(wishes: list[Wish]) -> Iterator[str]:
    for wish in wishes:
        names = {"name": wish.name, "namespace": wish.namespace or None, "target_node": wish.target_node}
        for option, name in names.items():
            problem = None if name is None else name_problem(name)
            if problem:
                yield f"{wish.title}: {option} {problem}; correct it"


def _repeated(wishes: list[Wish]) -> Iterator[str]:
    titles = [wish.title for wish in wishes]
    for title in sorted({title for title in titles if titles.count(title) > 1}):
        yield f"{title} is named more than once; name it once"


def _illegal(wishes: list[Wish]) -> Iterator[str]:
    for wish in wishes:
        try:
            label_selector({"matchLabels": wish.added_node_selector})
        except SelectorError as error:
            yield f"{wish.title}: {error}; correct added_node_selector"
