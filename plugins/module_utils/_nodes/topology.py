# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From wanted labels to changes: what must be written on which node, and what stays wanting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.keys import DEPRECATED, TOPOLOGY
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.wanted_labels import WantedLabels

_MOST_NAMES = 5


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
    old = {key: labels[key] for key in DEPRECATED if key in labels}
    moved = {DEPRECATED[key]: value for key, value in old.items()}
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
        for key, replacement in DEPRECATED.items():
            if key in labels:
                yield Deprecation(node, key, labels[key], replacement)


def _incomplete(after: Mapping[str, Labels], wanted: WantedLabels) -> dict[str, list[str]]:
    found = {}
    for key in sorted({*TOPOLOGY, *wanted.keys}):
        lacking = [node for node, labels in after.items() if key not in labels]
        # A node that is to be without the label was not forgotten.
        forgotten = [node for node in lacking if key not in wanted.of(node)]
        if forgotten and len(lacking) < len(after):
            found[key] = forgotten
    return found


def warnings(topology: Topology, *, replaced: bool) -> Iterator[str]:
    """Sentences on what a reader should know though the task succeeded."""
    for key in TOPOLOGY:
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
