# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label selectors and node selector terms, parsed once into values that can be compared, hashed and matched.

Follows k8s.io/apimachinery/pkg/labels/selector.go, meta/v1/helpers.go (LabelSelectorAsSelector) and
k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

Labels = Mapping[str, str]

_INTEGER = re.compile(r"[+-]?[0-9]+")
# Of a number of 64 bits. Python refuses to read thousands of them, and anybody may have written that.
_MOST_DIGITS = 19
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_LENGTH = 63
_SUBDOMAIN_LENGTH = 253

_WITH_VALUES = frozenset({"In", "NotIn"})
_WITHOUT_VALUES = frozenset({"Exists", "DoesNotExist"})
_COMPARING = frozenset({"Gt", "Lt"})


class SelectorError(ExpectedError, ValueError):
    """A selector has an operator, key or operand that the API's own parser refuses."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one key. `NotIn` and `DoesNotExist` also match where the key is absent."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        return self.matches_absence() if value is None else self.matches_value(value)

    def matches_value(self, value: str) -> bool:
        """Whether a present value is accepted."""
        if self.operator in _WITH_VALUES:
            return (value in self.values) == (self.operator == "In")
        if self.operator in _WITHOUT_VALUES:
            return self.operator == "Exists"
        have, wanted = int64(value), int64(self.values[0])
        if have is None or wanted is None:
            return False
        return have > wanted if self.operator == "Gt" else have < wanted

    def matches_absence(self) -> bool:
        return self.operator in ("NotIn", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold. `nothing`: matches no object (a selector that was not given at all)."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels) -> bool:
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def narrowed(self, requirements: Sequence[Requirement]) -> LabelSelector:
        """The selector with more requirements. Nothing stays nothing."""
        return self if self.nothing else LabelSelector((*self.requirements, *requirements))


NOTHING = LabelSelector(nothing=True)
EVERYTHING = LabelSelector()


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Conditions on a node's labels and on its name, all of which must hold.

    `invalid`: an operand that cannot be parsed makes this term, and only this one, match no node.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    invalid: bool = False

    @property
    def empty(self) -> bool:
        """An empty term matches no node."""
        return not self.labels and not self.fields and not self.invalid


def label_selector(selector: Object | None) -> LabelSelector:
    """Parse a LabelSelector of the API: null matches nothing, {} everything. Raises `SelectorError`."""
    if selector is None:
        return NOTHING
    expressions = selector.get("matchExpressions") or ()
    requirements = (
        *exact_requirements(selector.get("matchLabels") or {}),
        *(_requirement(expression, _WITH_VALUES | _WITHOUT_VALUES) for expression in expressions),
    )
    for requirement in requirements:
        _check_labels(requirement)
    return LabelSelector(requirements)


def exact_requirements(labels: Labels) -> tuple[Requirement, ...]:
    """One `In` requirement for each label, in the order of keys."""
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))


def node_selector_term(term: Object) -> NodeSelectorTerm:
    """Parse a NodeSelectorTerm; an operand that cannot be parsed marks it invalid, and its fields are kept."""
    raw_fields = term.get("matchFields") or ()
    fields = tuple(Requirement(raw["key"], raw["operator"], tuple(raw.get("values") or ())) for raw in raw_fields)
    try:
        labels = tuple(_node_requirement(raw) for raw in term.get("matchExpressions") or ())
        for raw in raw_fields:
            _check_field(raw)
    except SelectorError:
        return NodeSelectorTerm(fields=fields, invalid=True)
    return NodeSelectorTerm(labels, fields)


def int64(text: str) -> int | None:
    """The decimal integer that the API's parser reads (leading zeros and a sign allowed), None for any other text."""
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(f"{'-' if text.startswith('-') else ''}{digits or '0'}")
    return number if -(2**63) <= number < 2**63 else None


def is_qualified_name(name: str) -> bool:
    """Whether a text can be a label's key: `[subdomain/]name`."""
    prefix, slash, short = name.rpartition("/")
    if slash and not (len(prefix) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(short) <= _NAME_LENGTH and bool(_LABEL_NAME.fullmatch(short))


def is_label_value(value: str) -> bool:
    """Whether a text can be a label's value; the empty one can."""
    return not value or (len(value) <= _NAME_LENGTH and bool(_LABEL_NAME.fullmatch(value)))


def _requirement(raw: Object, operators: frozenset[str]) -> Requirement:
    operator, values = raw["operator"], tuple(raw.get("values") or ())
    if operator not in operators:
        raise SelectorError(f"{operator!r} is not a valid label selector operator")
    if operator in _WITH_VALUES and not values:
        raise SelectorError(f"the operator {operator} on {raw['key']!r} needs values")
    if operator in _WITHOUT_VALUES and values:
        raise SelectorError(f"the operator {operator} on {raw['key']!r} takes no values")
    return Requirement(raw["key"], operator, values)


def _node_requirement(raw: Object) -> Requirement:
    requirement = _requirement(raw, _WITH_VALUES | _WITHOUT_VALUES | _COMPARING)
    if requirement.operator in _COMPARING and (len(requirement.values) != 1 or int64(requirement.values[0]) is None):
        raise SelectorError(f"the operator {requirement.operator} on {requirement.key!r} needs one integer")
    _check_labels(requirement)
    return requirement


def _check_field(raw: Object) -> None:
    requirement = _requirement(raw, _WITH_VALUES)
    if len(requirement.values) != 1:
        raise SelectorError(f"the operator {requirement.operator} on {requirement.key!r} needs one value")


def _check_labels(requirement: Requirement) -> None:
    if not is_qualified_name(requirement.key):
        raise SelectorError(f"{requirement.key!r} cannot be the key of a label")
    for value in requirement.values:
        if not is_label_value(value):
            raise SelectorError(f"{value!r} cannot be the value of the label {requirement.key!r}")
