# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to happen to VMs that cannot be migrated: rules, of which the first that matches a VM counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:  # only rules with an expression need it
    HAS_JMESPATH = False
    _ERRORS: tuple[type[Exception], ...] = ()
else:
    HAS_JMESPATH = True
    _ERRORS = (JMESPathError,)

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import Policy

_ATTEMPT = "apply the policies"
_KEYS = frozenset({"selector", "expression", "policy"})
_REMEDY = (
    "A policy is for example {selector: {app: database}, policy: stop}, with a policy of "
    f"{', '.join(policy.value for policy in Policy)}."
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`labels`: those a VMI must have; `expression`: compiled, what must be true of it, or None."""

    source: str
    labels: Mapping[str, str]
    expression: Any
    policy: Policy

    def matches(self, vmi: Object) -> bool:
        """Raises InvalidRequest for an expression that cannot be applied to the VMI."""
        own = vmi["metadata"].get("labels") or {}
        if not self.labels.items() <= own.items():
            return False
        try:
            return self.expression is None or bool(self.expression.search(vmi))
        except _ERRORS as error:
            name = f"{vmi['metadata'].get('namespace') or 'default'}/{vmi['metadata']['name']}"
            problem = f"{self.source} cannot be applied to VMI {name}, {_line(error)}"
            raise InvalidRequest(_ATTEMPT, [problem], "Correct the expression.") from error


def compile_rules(entries: object) -> tuple[Rule, ...]:
    """Check and take rules as Ansible gives them; a key with a null value counts as absent.

    Raises InvalidRequest, MissingLibrary.
    """
    if not isinstance(entries, Sequence) or isinstance(entries, (str, bytes)):
        raise InvalidRequest(_ATTEMPT, [f"a list of rules is expected, got {entries!r}"], _REMEDY)
    return tuple(_rule(f"policies[{index}]", entry) for index, entry in enumerate(entries))


def policy_for(vmi: Object, rules: Sequence[Rule]) -> Policy:
    """The policy of the first rule that matches, else to fail. Raises InvalidRequest."""
    for rule in rules:
        if rule.matches(vmi):
            return rule.policy
    return Policy.FAIL


def idle(rules: Iterable[Rule], vmis: Collection[Object]) -> list[Rule]:
    """The rules that match none of the VMIs. One that cannot be applied to a VMI is told when that needs a policy."""
    return [rule for rule in rules if not any(_may_match(rule, vmi) for vmi in vmis)]


def _may_match(rule: Rule, vmi: Object) -> bool:
    try:
        return rule.matches(vmi)
    except InvalidRequest:
        return True


def _rule(source: str, entry: object) -> Rule:
    if not isinstance(entry, Mapping):
        raise InvalidRequest(_ATTEMPT, [f"{source} is no mapping but {entry!r}"], _REMEDY)
    if unknown := sorted(str(key) for key in set(entry) - _KEYS):
        raise InvalidRequest(_ATTEMPT, [f"{source} has the unknown key {', '.join(unknown)}"], _REMEDY)
    known = {policy.value: policy for policy in Policy}
    name = entry.get("policy")
    if not isinstance(name, str) or name not in known:
        raise InvalidRequest(_ATTEMPT, [f"{source} has the policy {name!r}"], _REMEDY)
    selector = entry.get("selector") or {}
    if not isinstance(selector, Mapping) or not all(isinstance(value, str) for value in selector.values()):
        raise InvalidRequest(_ATTEMPT, [f"{source} has as selector no labels but {selector!r}"], _REMEDY)
    text = entry.get("expression")
    return Rule(source, dict(selector), None if text is None else _compile(source, text), known[name])


def _compile(source: str, text: object) -> Any:
    if not HAS_JMESPATH:
        raise MissingLibrary("jmespath", f"for the expression of {source}")
    if not isinstance(text, str):
        raise InvalidRequest(_ATTEMPT, [f"{source} has no expression but {text!r}"], _REMEDY)
    try:
        return jmespath.compile(text)
    except _ERRORS as error:
        problem = f"{source} has the malformed expression {text!r}, {_line(error)}"
        raise InvalidRequest(_ATTEMPT, [problem], "Correct the expression.") from error


def _line(error: Exception) -> str:
    """The library draws an arrow under the expression, on lines of its own."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(":.") if lines else type(error).__name__
