# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that there are, and those that templates would make, found by their labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.affinity import AffinityTerm
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, LabelSelector

_KUBEVIRT: Labels = {"kubevirt.io": "virt-launcher"}


@dataclass(frozen=True, slots=True)
class Member:
    """`pod`: None for what a template would make."""

    labels: Labels
    pod: Object | None = None


class Population:
    """Filed by namespace and label: selectors mostly ask for a label that few pods have.

    `namespaces`: labels of namespaces by their names, where they are known.
    """

    def __init__(self, workloads: Iterable[Workload], pods: Iterable[Object], namespaces: Mapping[str, Labels]) -> None:
        self._labels = namespaces
        self._all: defaultdict[str, list[Member]] = defaultdict(list)
        self._by_label: defaultdict[tuple[str, str, str], list[Member]] = defaultdict(list)
        self._known: dict[AffinityTerm, bool] = {}
        # Templates first: a term mostly means pods of its own kind.
        for workload in workloads:
            labels = {**_KUBEVIRT, **workload.labels} if workload.has_vms else workload.labels
            self._add(workload.subject.namespace, Member(labels))
        for pod in pods:
            metadata = pod["metadata"]
            self._add(metadata.get("namespace") or "default", Member(metadata.get("labels") or {}, pod))

    def _add(self, namespace: str, member: Member) -> None:
        self._all[namespace].append(member)
        for key, value in member.labels.items():
            self._by_label[namespace, key, value].append(member)

    def matching(self, namespace: str, selector: LabelSelector) -> Iterator[Member]:
        """Those of a namespace that a selector matches."""
        return (member for member in self._candidates(namespace, selector) if selector.matches(member.labels))

    def _candidates(self, namespace: str, selector: LabelSelector) -> Sequence[Member]:
        """Those that may match: all that have one of the labels that the fewest have, of those that are required."""
        if selector.nothing:
            return ()
        found: Sequence[Member] = self._all.get(namespace, ())
        for requirement in selector.requirements:
            if requirement.operator == "In":
                labels = ((namespace, requirement.key, value) for value in set(requirement.values))
                filed = [self._by_label.get(label, ()) for label in labels]
                if sum(map(len, filed)) < len(found):
                    found = [member for members in filed for member in members]
        return found

    def has_any(self, term: AffinityTerm) -> bool:
        """Whether a term selects any at all."""
        if term not in self._known:
            namespaces = (namespace for namespace in self._all if self._reaches(term, namespace))
            self._known[term] = any(any(self.matching(namespace, term.selector)) for namespace in namespaces)
        return self._known[term]

    def _reaches(self, term: AffinityTerm, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        by_labels = term.namespace_selector
        return not by_labels.nothing and by_labels.matches(self._labels.get(namespace, {}))
