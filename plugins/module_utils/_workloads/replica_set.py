# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set that a task wants: what it says, laid over what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import SelectorError, label_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.migratable import migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement import (
    FIELDS,
    Own,
    placement_fields,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement_problems import placement_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.requirements import label_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.stated import stated

Object = dict[str, Any]

_REMEDY = "Correct the task; nothing was written."


@dataclass(frozen=True, slots=True)
class Wish:
    """What a task says of a replica set; None leaves what is there.

    template: of its VMIs. selector: a LabelSelector. placement: words, see placement.py. eviction_strategy, masquerade:
    for a template that says nothing of them.
    """

    namespace: str
    name: str
    replicas: int | None
    paused: bool | None
    selector: Mapping[str, Any] | None
    template: Mapping[str, Any] | None
    placement: Mapping[str, Any] | None
    eviction_strategy: str
    masquerade: bool

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def wanted_spec(wish: Wish, stored: Mapping[str, Any]) -> Object:
    """The spec of the replica set. `stored`: the one that is there, empty if there is none. Raises Mistake."""
    problems = list(_problems(wish, stored))
    if problems:
        raise Mistake(f"write replica set {wish.title}", problems, _REMEDY)
    template = _template(wish, stored)
    selector = stated(wish.selector) or stored.get("selector") or {"matchLabels": _labels(template)}
    if not _labels(template):
        template["metadata"] = {**(template.get("metadata") or {}), "labels": dict(selector.get("matchLabels") or {})}
    if wish.placement is not None:
        own = Own(wish.namespace, selector, _labels(template))
        kept = {name: part for name, part in template["spec"].items() if name not in FIELDS.values()}
        template["spec"] = {**kept, **placement_fields(wish.placement, own)}
    paused = stored.get("paused") if wish.paused is None else wish.paused
    replicas = stored.get("replicas", 1) if wish.replicas is None else wish.replicas
    wanted: Object = stated({**stored, "replicas": replicas, "selector": selector, "template": template})
    return {**wanted, "paused": True} if paused else {key: part for key, part in wanted.items() if key != "paused"}


def _template(wish: Wish, stored: Mapping[str, Any]) -> Object:
    if wish.template is None:
        return dict(stored["template"])
    template: Object = stated(wish.template)
    spec = migratable(template["spec"], eviction_strategy=wish.eviction_strategy, masquerade=wish.masquerade)
    return {**template, "spec": spec}


def _labels(template: Mapping[str, Any]) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _problems(wish: Wish, stored: Mapping[str, Any]) -> Iterator[str]:
    if wish.replicas is not None and wish.replicas < 0:
        yield f"replicas is {wish.replicas}; give 0 or more"
    if wish.template is None and not stored:
        yield "there is no such replica set yet, so template is needed"
    if wish.template is not None:
        yield from _template_problems(wish, wish.template, stored)
    yield from _selector_problems(wish.selector or {})
    if wish.placement is not None:
        yield from placement_problems(wish.placement)


def _selector_problems(selector: Mapping[str, Any]) -> Iterator[str]:
    labels = selector.get("matchLabels") or {}
    if not isinstance(labels, Mapping):
        yield "selector.matchLabels is no mapping"
        return
    yield from (f"in selector.matchLabels {problem}" for problem in label_problems(labels))
    try:
        label_selector({**selector, "matchLabels": {}})
    except (SelectorError, KeyError, AttributeError, TypeError) as error:
        yield f"selector.matchExpressions is no list of key, operator and values, {error}"


def _template_problems(wish: Wish, template: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[str]:
    spec = template.get("spec")
    for name in ("metadata", "spec"):
        if not isinstance(template.get(name) or {}, Mapping):
            yield f"template.{name} is no mapping"
            return
    if not spec:
        yield "template has no spec; give that of a VirtualMachineInstance"
        return
    if not _labels(template) and not (wish.selector or {}).get("matchLabels") and not stored:
        yield "neither template.metadata.labels nor selector say by which labels the set knows its VMIs"
    twice = [field for field in FIELDS.values() if wish.placement is not None and spec.get(field)]
    yield from (f"template.spec.{field} and placement both say where VMIs run; give one of them" for field in twice)
