# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a task's words on placement, all of it, before anything is asked of the cluster."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, MISTAKEN_HOSTNAME
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import (
    int64,
    is_label_value,
    is_qualified_name,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement import (
    TOPOLOGY_KEYS,
    Words,
    operator,
    selector,
)

_AFFINITY = ("node_labels", "keep_apart", "keep_together")
_HEAVIEST = 100
# Often seen, and on no node: a required rule by it holds back every pod, or none.
_NO_TOPOLOGY = {MISTAKEN_HOSTNAME: HOSTNAME, "hostname": HOSTNAME}
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_COMPARING = ("Gt", "Lt")
# How much a key has to be like one of the words to be taken for a slip of the pen.
_ALIKE = 0.75


def placement_problems(words: Words) -> list[str]:
    """Clauses that say where in the block something is wrong, and what."""
    found = [f"in placement.{name} {problem}" for name, problem in _entries(words)]
    both = [name for name in _AFFINITY if words[name]]
    if words["affinity"] and both:
        found.append(f"placement.affinity and placement.{both[0]} say the same in two ways; give one of them")
    return found


def _entries(words: Words) -> Iterator[tuple[str, str]]:
    for name, check in (
        ("node_labels", _node_label),
        ("keep_apart", _apart),
        ("keep_together", _together),
        ("spread", _spread),
        ("tolerations", _toleration),
    ):
        for index, entry in enumerate(words[name]):
            for problem in check(entry):
                yield f"{name}[{index}]", problem


def _node_label(entry: Words) -> Iterator[str]:
    yield from _requirement(entry)
    yield from _weight(entry)


def _apart(entry: Words) -> Iterator[str]:
    yield from _per(entry)
    yield from _pods(entry)
    yield from _weight(entry)


def _together(entry: Words) -> Iterator[str]:
    yield from _apart(entry)
    if not selector(entry):
        yield "it names nobody to be together with; give labels, expressions or vms"


def _spread(entry: Words) -> Iterator[str]:
    yield from _per(entry)
    yield from _pods(entry)
    for name in ("max_skew", "min_domains"):
        if entry[name] is not None and entry[name] < 1:
            yield f"{name} is {entry[name]}; give a number of at least 1"
    if entry["min_domains"] is not None and entry["when_unsatisfiable"] != "DoNotSchedule":
        yield "min_domains needs when_unsatisfiable=DoNotSchedule"


def _toleration(entry: Words) -> Iterator[str]:
    if entry["key"]:
        yield from _key(entry["key"])
    elif entry["operator"] != "Exists":
        yield "it has no key; give one, or operator=Exists to tolerate all taints"
    if entry["operator"] == "Exists" and entry["value"]:
        yield "the operator Exists takes no value"
    if entry["toleration_seconds"] is not None and entry["effect"] != "NoExecute":
        yield "toleration_seconds needs effect=NoExecute"


def _per(entry: Words) -> Iterator[str]:
    per = entry["per"]
    if per in TOPOLOGY_KEYS:
        return
    meant = difflib.get_close_matches(per, TOPOLOGY_KEYS, n=1, cutoff=_ALIKE)
    if per in _NO_TOPOLOGY:
        yield f"per is {per}, a label that no node carries; the key of a host is {_NO_TOPOLOGY[per]}, or say host"
    elif meant:
        yield f"per is {per} (is it {meant[0]}?)"
    else:
        yield from _key(per)


def _pods(entry: Words) -> Iterator[str]:
    yield from label_problems(entry["labels"] or {})
    for words in entry["expressions"]:
        yield from _requirement(words)
    names: Sequence[str] = entry.get("vms") or ()
    for name in names:
        if not name or not is_label_value(name):
            yield f"{name!r} cannot be the name of a VM whose pods are selected"


def _weight(entry: Words) -> Iterator[str]:
    weight = entry["weight"]
    if weight is not None and not 1 <= weight <= _HEAVIEST:
        yield f"weight is {weight}; give a number from 1 to {_HEAVIEST}"


def _requirement(words: Words) -> Iterator[str]:
    """Clauses on one requirement."""
    key, values, by = words["key"], words["values"] or [], operator(words)
    yield from _key(key)
    yield from _texts(key, values)
    if by in _WITH_VALUES and not values:
        yield f"the operator {by} on {key} needs values"
    if by in _WITHOUT_VALUES and values:
        yield f"the operator {by} on {key} takes no values"
    if by in _COMPARING and (len(values) != 1 or int64(str(values[0])) is None):
        yield f"the operator {by} on {key} needs one integer as its value"


def label_problems(labels: Words) -> Iterator[str]:
    """Clauses on a map of labels."""
    for key, value in labels.items():
        yield from _key(key)
        yield from _texts(key, [value])


def _key(key: str) -> Iterator[str]:
    if not is_qualified_name(key):
        yield f"{key!r} cannot be the key of a label"


def _texts(key: str, values: Sequence[object]) -> Iterator[str]:
    for value in values:
        # YAML reads yes, no, true and off without quotes as truth values, whose spelling is lost.
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            yield f"the value {value!r} of {key} is no text; put it in quotes"
        elif not is_label_value(str(value)):
            yield f"{value!r} cannot be the value of the label {key}"
