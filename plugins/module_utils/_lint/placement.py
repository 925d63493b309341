# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a pod's specification that decide where it may run, each with its place in the object that holds it.

They are the same in a pod, a VirtualMachineInstance and the templates of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import PREFERRED, REQUIRED, Object

POD_AFFINITY, POD_ANTI_AFFINITY = "podAffinity", "podAntiAffinity"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """A term of pod affinity or, with `apart`, of pod anti-affinity. `pointer`: JSON pointer of the term."""

    pointer: str
    raw: Object
    apart: bool
    required: bool

    @property
    def topology_key(self) -> str:
        return str(self.raw.get("topologyKey") or "")


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint. `required`: it forbids nodes."""

    pointer: str
    raw: Object
    required: bool

    @property
    def topology_key(self) -> str:
        return str(self.raw.get("topologyKey") or "")


DomainRule: TypeAlias = "PodTerm | Spread"


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition on a label of nodes.

    `pointer`: of the entry of the node selector, or of the expression in a term of node affinity. `required`: nodes
    that do not meet it are out, if no other term admits them. `term`: number of the term, None for the selector.
    """

    pointer: str
    key: str
    operator: str
    values: tuple[str, ...]
    required: bool
    term: int | None = None


def escape(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def pod_terms(spec: Object, prefix: str) -> Iterator[PodTerm]:
    """`prefix`: JSON pointer of `spec` in its object, here and below."""
    affinity = spec.get("affinity") or {}
    for side in (POD_AFFINITY, POD_ANTI_AFFINITY):
        wishes = affinity.get(side) or {}
        place = f"{prefix}/affinity/{side}"
        for number, term in enumerate(wishes.get(REQUIRED) or ()):
            yield PodTerm(f"{place}/{REQUIRED}/{number}", term, side == POD_ANTI_AFFINITY, required=True)
        for number, entry in enumerate(wishes.get(PREFERRED) or ()):
            pointer = f"{place}/{PREFERRED}/{number}/podAffinityTerm"
            yield PodTerm(pointer, entry.get("podAffinityTerm") or {}, side == POD_ANTI_AFFINITY, required=False)


def domain_rules(spec: Object, prefix: str) -> list[DomainRule]:
    """All that speaks of domains of nodes: terms of pod affinity and spread constraints."""
    return [*pod_terms(spec, prefix), *spread_constraints(spec, prefix)]


def spread_constraints(spec: Object, prefix: str) -> Iterator[Spread]:
    for number, raw in enumerate(spec.get("topologySpreadConstraints") or ()):
        required = raw.get("whenUnsatisfiable") == "DoNotSchedule"
        yield Spread(f"{prefix}/topologySpreadConstraints/{number}", raw, required)


def node_conditions(spec: Object, prefix: str) -> Iterator[NodeCondition]:
    """Of the node selector and of node affinity; conditions on a node's name count as on its host name."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield NodeCondition(f"{prefix}/nodeSelector/{escape(key)}", key, "In", (str(value),), required=True)
    wishes = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    place = f"{prefix}/affinity/nodeAffinity"
    for number, term in enumerate((wishes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _conditions(term, f"{place}/{REQUIRED}/nodeSelectorTerms/{number}", number, required=True)
    for number, entry in enumerate(wishes.get(PREFERRED) or ()):
        term = entry.get("preference") or {}
        yield from _conditions(term, f"{place}/{PREFERRED}/{number}/preference", number, required=False)


def _conditions(term: Object, pointer: str, number: int, *, required: bool) -> Iterator[NodeCondition]:
    for part in ("matchExpressions", "matchFields"):
        for index, raw in enumerate(term.get(part) or ()):
            values = tuple(str(value) for value in raw.get("values") or ())
            place = f"{pointer}/{part}/{index}"
            yield NodeCondition(place, raw["key"], raw["operator"], values, required=required, term=number)
