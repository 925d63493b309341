# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups in which a node is by what it is, without being asked for more.

The names are raw: Ansible replaces what no name of a group can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fitness import Fitness
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import Cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

ALL_NODES: Final = "kubernetes_nodes"


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """`zone`, `region`, `maintained`: empty for none. `maintained`: the run that is done with the node."""

    name: str
    labels: Labels
    zone: str
    region: str
    roles: tuple[str, ...]
    cordon: Cordon | None
    maintained: str
    fitness: Fitness


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """`parent`: the group that it stands in, empty for none."""

    name: str
    parent: str = ""

    def under(self, prefix: str) -> NodeGroup:
        return replace(self, name=prefix + self.name, parent=self.parent and prefix + self.parent)


def groups(facts: NodeFacts, kinds: Sequence[str], label_keys: Sequence[str], prefix: str) -> list[NodeGroup]:
    """kinds: those of KINDS that are wanted. label_keys: for each value of these labels there is a group as well."""
    found = [NodeGroup(ALL_NODES)]
    for kind in kinds:
        found += GROUP_KINDS[kind](facts)
    for key in label_keys:
        if key in facts.labels:
            found.append(NodeGroup("_".join(filter(None, ("label", key, facts.labels[key])))))
    return [group.under(prefix) for group in found]


def _zone(facts: NodeFacts) -> Iterator[NodeGroup]:
    if facts.zone:
        yield NodeGroup(f"zone_{facts.zone}")


def _region(facts: NodeFacts) -> Iterator[NodeGroup]:
    if facts.region:
        yield NodeGroup(f"region_{facts.region}")


def _role(facts: NodeFacts) -> Iterator[NodeGroup]:
    for role in facts.roles:
        yield NodeGroup(f"role_{role}")


def _cordon(facts: NodeFacts) -> Iterator[NodeGroup]:
    if facts.cordon:
        yield NodeGroup("cordoned")


def _kubevirt(facts: NodeFacts) -> Iterator[NodeGroup]:
    yield NodeGroup(f"kubevirt_{facts.fitness.status.value}")


def _maintenance(facts: NodeFacts) -> Iterator[NodeGroup]:
    """Who has the node, and who is done with it. A group `maintenance` is what role plan_maintenance makes."""
    if facts.cordon and facts.cordon.marked:
        yield from _of_run("in_maintenance", facts.cordon.by)
    if facts.maintained:
        yield from _of_run("maintained", facts.maintained)


def _of_run(state: str, run: str) -> Iterator[NodeGroup]:
    yield NodeGroup(f"{state}_{run}", parent=state) if run else NodeGroup(state)


GROUP_KINDS: Final[Mapping[str, Callable[[NodeFacts], Iterator[NodeGroup]]]] = {
    "zone": _zone,
    "region": _region,
    "role": _role,
    "cordon": _cordon,
    "kubevirt": _kubevirt,
    "maintenance": _maintenance,
}
