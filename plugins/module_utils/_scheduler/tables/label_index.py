# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selectors filed under a label they require, so that those matching an object are found without trying them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, LabelSelector

Entry = TypeVar("Entry")
Label = tuple[str, str]


class LabelIndex(Generic[Entry]):
    """Entries with a selector each. What `candidates` yields may match; what it leaves out cannot."""

    __slots__ = ("_by_label", "_unfiled")

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[Entry, None]] = {}
        self._unfiled: dict[Entry, None] = {}

    def add(self, selector: LabelSelector, entry: Entry) -> tuple[Label, ...]:
        """File an entry; returns the labels it is filed under, by which `remove` finds it."""
        if selector.nothing:
            return ()
        required = [
            tuple((requirement.key, value) for value in requirement.values)
            for requirement in selector.requirements
            if requirement.operator == "In"
        ]
        if not required:
            self._unfiled[entry] = None
            return ()
        # Under the label that the fewest others share: many selectors require app=x, few a group of machines.
        labels = min(required, key=lambda choices: sum(len(self._by_label.get(label, ())) for label in choices))
        for label in labels:
            self._by_label.setdefault(label, {})[entry] = None
        return labels

    def remove(self, labels: tuple[Label, ...], entry: Entry) -> None:
        self._unfiled.pop(entry, None)
        for label in labels:
            filed = self._by_label[label]
            filed.pop(entry, None)
            if not filed:
                del self._by_label[label]

    def candidates(self, labels: Labels) -> Iterator[Entry]:
        yield from self._unfiled
        for label in labels.items():
            yield from self._by_label.get(label, ())
