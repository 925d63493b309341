# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels that a task wants on nodes, what must be written on which node for that, and what stays wanting.

What is wanted comes from lists of nodes and from rules, and is checked against the cluster. Nothing is taken for
granted: all that is wrong is collected, so that one run tells it all before anything is written.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.keys import (
    FORMER_LABELS,
    REGION,
    TOPOLOGY_LABELS,
    ZONE,
    key_problem,
    value_problem,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.rules import LabelRule, RuleError, compile_rule

# An item of the module's options `topology` and `rules`, as Ansible gives it.
_SHORT = {"zone": ZONE, "region": REGION}
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """What a label of a node shall be, None for absent, and where in the task it says so."""

    value: str | None
    source: str


@dataclass(slots=True)
class WantedLabels:
    """`by_node`: labels by node and key. `keys`: all keys that the task names, whether for any node or not."""

    by_node: dict[str, dict[str, WantedLabel]]
    keys: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def of(self, node: str) -> Mapping[str, WantedLabel]:
        return self.by_node[node]

    def add(self, node: str, key: str, label: WantedLabel) -> None:
        """Add a label; one that contradicts an earlier one is a problem."""
        first = self.by_node[node].setdefault(key, label)
        if first.value != label.value:
            self.problems.append(
                f"{key} of node {node} is to be {_words(first)} ({first.source}) and {_words(label)} ({label.source})"
            )


def collect(nodes: Sequence[Object], topology: Sequence[Object], rules: Sequence[Object]) -> WantedLabels:
    """The wanted labels of each node of the cluster. Raises InvalidRequest."""
    wanted = WantedLabels({node["metadata"]["name"]: {} for node in nodes})
    for index, entry in enumerate(topology):
        _add_entry(wanted, f"topology[{index}]", entry)
    for index, entry in enumerate(rules):
        _add_rule(wanted, f"rules[{index}]", entry, nodes)
    if wanted.problems:
        # A mistake in one entry shows up for each of its nodes; once is enough.
        problems = list(dict.fromkeys(wanted.problems))
        raise InvalidRequest("label the nodes", problems, "Correct the task; nothing was written.")
    return wanted


def _add_entry(wanted: WantedLabels, source: str, entry: Object) -> None:
    labels = _labels(entry)
    problems = [*_twice(entry), *_key_problems(labels), *_value_problems(labels)]
    if not labels:
        problems.append("it names no label")
    if not entry["nodes"]:
        problems.append("it names no node")
    problems += [_unknown(name, wanted.by_node) for name in entry["nodes"] if name not in wanted.by_node]
    wanted.problems += [f"in {source} {problem}" for problem in problems]
    wanted.keys |= set(labels)
    for name in entry["nodes"] if not problems else ():
        for key, value in labels.items():
            wanted.add(name, key, WantedLabel(value, source))


def _add_rule(wanted: WantedLabels, source: str, entry: Object, nodes: Sequence[Object]) -> None:
    expressions = _labels(entry)
    problems = [f"in {source} {problem}" for problem in (*_twice(entry), *_key_problems(expressions))]
    if not expressions:
        problems.append(f"in {source} it names no label")
    wanted.keys |= set(expressions)
    try:
        rule = compile_rule(source, entry["condition"], expressions)
        if not problems:
            _derive(wanted, rule, nodes)
    except RuleError as error:
        problems.append(str(error))
    wanted.problems += problems


def _derive(wanted: WantedLabels, rule: LabelRule, nodes: Sequence[Object]) -> None:
    for node in nodes:
        name = node["metadata"]["name"]
        for key, value in rule.derive(node).items():
            problem = value_problem(key, value)
            if problem:
                # The first node shows what is wrong with the rule; the others would repeat it.
                raise RuleError(f"{rule.source} gives for node {name} what cannot be, {problem}")
            wanted.add(name, key, WantedLabel(value, rule.source))


def _labels(entry: Object) -> JsonObject:
    """What an entry says about labels, with the short names written out."""
    short = {key: entry[name] for name, key in _SHORT.items() if entry[name] is not None}
    return {**short, **(entry["labels"] or {})}


def _twice(entry: Object) -> Iterator[str]:
    for name, key in _SHORT.items():
        if entry[name] is not None and key in (entry["labels"] or {}):
            yield f"{key} stands twice, as {name} and among labels"


def _key_problems(labels: Mapping[str, Any]) -> Iterator[str]:
    return filter(None, map(key_problem, labels))


def _value_problems(labels: Mapping[str, Any]) -> Iterator[str]:
    return filter(None, (value_problem(key, value) for key, value in labels.items() if value is not None))


def _unknown(name: str, nodes: Mapping[str, Any]) -> str:
    similar = difflib.get_close_matches(name, nodes, n=1)
    return f"node {name} does not exist" + (f" (is it {similar[0]}?)" if similar else "")


def _words(label: WantedLabel) -> str:
    return "absent" if label.value is None else label.value


@dataclass(frozen=True, slots=True)
class LabelChange:
    """What to write on a node. `labels`: the new values, None to remove. `before`: the old ones that there are."""

    node: str
    labels: Mapping[str, str | None]
    before: Labels

    @property
    def after(self) -> dict[str, str]:
        return {key: value for key, value in self.labels.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A label under a deprecated key that was found on a node."""

    node: str
    key: str
    value: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Topology:
    """`incomplete`: by key, in order, the nodes that lack it after the changes although others carry it."""

    changes: Sequence[LabelChange]
    deprecated: Sequence[Deprecation]
    incomplete: Mapping[str, Sequence[str]]


def plan(nodes: Sequence[Object], wanted: WantedLabels, *, purge: bool, replace_deprecated: bool) -> Topology:
    """purge: remove the keys that the task names where it does not want them. Nodes in order of their names."""
    before = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
    after: dict[str, Labels] = {}
    changes = []
    for node, labels in before.items():
        given = {key: label.value for key, label in wanted.of(node).items()}
        unwanted = dict.fromkeys(wanted.keys - set(given)) if purge else {}
        decided = {**unwanted, **given}
        renamed = _renamed(labels) if replace_deprecated else {}
        # What the task decides on wins over what a deprecated key said.
        change = _change(node, labels, {**renamed, **decided})
        after[node] = _apply(labels, change)
        if change.labels:
            changes.append(change)
    return Topology(changes, list(_deprecated(before)), _incomplete(after, wanted))


def _renamed(labels: Labels) -> dict[str, str | None]:
    """Deprecated keys go. Their values go on under the new keys, unless the node has those already."""
    old = {key: labels[key] for key in FORMER_LABELS if key in labels}
    moved = {FORMER_LABELS[key]: value for key, value in old.items()}
    kept = {key: value for key, value in moved.items() if key not in labels}
    return {**dict.fromkeys(old), **kept}


def _change(node: str, labels: Labels, wanted: Mapping[str, str | None]) -> LabelChange:
    different = {key: value for key, value in sorted(wanted.items()) if labels.get(key) != value}
    return LabelChange(node, different, {key: labels[key] for key in different if key in labels})


def _apply(labels: Labels, change: LabelChange) -> Labels:
    kept = {key: value for key, value in labels.items() if key not in change.labels}
    return {**kept, **change.after}


def _deprecated(before: Mapping[str, Labels]) -> Iterator[Deprecation]:
    for node, labels in before.items():
        for key, replacement in FORMER_LABELS.items():
            if key in labels:
                yield Deprecation(node, key, labels[key], replacement)


def _incomplete(after: Mapping[str, Labels], wanted: WantedLabels) -> dict[str, list[str]]:
    found = {}
    for key in sorted({*TOPOLOGY_LABELS, *wanted.keys}):
        lacking = [node for node, labels in after.items() if key not in labels]
        # A node that is to be without the label was not forgotten.
        forgotten = [node for node in lacking if key not in wanted.of(node)]
        if forgotten and len(lacking) < len(after):
            found[key] = forgotten
    return found


def warnings(topology: Topology, *, replaced: bool) -> Iterator[str]:
    """Sentences on what a reader should know though the task succeeded."""
    for key in TOPOLOGY_LABELS:
        if key in topology.incomplete:
            yield (
                f"Without the label {key}, which other nodes carry: {_some(topology.incomplete[key])}. "
                "Rules that count by it do not hold there."
            )
    if topology.deprecated and not replaced:
        nodes = list(dict.fromkeys(deprecation.node for deprecation in topology.deprecated))
        yield f"With deprecated failure-domain labels: {_some(nodes)}. Set replace_deprecated to replace them."


def _some(nodes: Sequence[str]) -> str:
    """The first few names; a large cluster has more than a line holds."""
    more = len(nodes) - _MOST_NAMES
    return ", ".join(nodes[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
