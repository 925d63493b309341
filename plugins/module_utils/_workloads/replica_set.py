# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set that a task wants: what it says, laid over what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import SelectorError, label_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.canonical import stated
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement import (
    FIELDS,
    Own,
    placement_fields,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement_problems import (
    label_problems,
    placement_problems,
)

_REMEDY = "Correct the task; nothing was written."
# Of a VMI that names none.
_NETWORK = "default"


@dataclass(frozen=True, slots=True)
class ReplicaSetRequest:
    """What a task says of a replica set; None leaves what is there.

    template: of its VMIs. selector: a LabelSelector. placement: words, see placement.py. eviction_strategy, masquerade:
    for a template that says nothing of them.
    """

    namespace: str
    name: str
    replicas: int | None
    paused: bool | None
    selector: Object | None
    template: Object | None
    placement: Object | None
    eviction_strategy: str
    masquerade: bool

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


def wanted_spec(request: ReplicaSetRequest, stored: Object) -> JsonObject:
    """The spec of the replica set. `stored`: the one that is there, empty if there is none. Raises InvalidRequest."""
    problems = list(_problems(request, stored))
    if problems:
        raise InvalidRequest(f"write replica set {request.title}", problems, _REMEDY)
    template = _template(request, stored)
    selector = stated(request.selector) or stored.get("selector") or {"matchLabels": _labels(template)}
    if not _labels(template):
        template["metadata"] = {**(template.get("metadata") or {}), "labels": dict(selector.get("matchLabels") or {})}
    if request.placement is not None:
        own = Own(request.namespace, selector, _labels(template))
        kept = {name: part for name, part in template["spec"].items() if name not in FIELDS.values()}
        template["spec"] = {**kept, **placement_fields(request.placement, own)}
    paused = stored.get("paused") if request.paused is None else request.paused
    replicas = stored.get("replicas", 1) if request.replicas is None else request.replicas
    wanted: JsonObject = stated({**stored, "replicas": replicas, "selector": selector, "template": template})
    return {**wanted, "paused": True} if paused else {key: part for key, part in wanted.items() if key != "paused"}


def _template(request: ReplicaSetRequest, stored: Object) -> JsonObject:
    if request.template is None:
        return dict(stored["template"])
    template: JsonObject = stated(request.template)
    spec = _migratable(template["spec"], eviction_strategy=request.eviction_strategy, masquerade=request.masquerade)
    return {**template, "spec": spec}


def _labels(template: Object) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _problems(request: ReplicaSetRequest, stored: Object) -> Iterator[str]:
    if request.replicas is not None and request.replicas < 0:
        yield f"replicas is {request.replicas}; give 0 or more"
    if request.template is None and not stored:
        yield "there is no such replica set yet, so template is needed"
    if request.template is not None:
        yield from _template_problems(request, request.template, stored)
    yield from _selector_problems(request.selector or {})
    if request.placement is not None:
        yield from placement_problems(request.placement)


def _selector_problems(selector: Object) -> Iterator[str]:
    labels = selector.get("matchLabels") or {}
    if not isinstance(labels, Mapping):
        yield "selector.matchLabels is no mapping"
        return
    yield from (f"in selector.matchLabels {problem}" for problem in label_problems(labels))
    try:
        label_selector({**selector, "matchLabels": {}})
    except (SelectorError, KeyError, AttributeError, TypeError) as error:
        yield f"selector.matchExpressions is no list of key, operator and values, {error}"


def _template_problems(request: ReplicaSetRequest, template: Object, stored: Object) -> Iterator[str]:
    spec = template.get("spec")
    for name in ("metadata", "spec"):
        if not isinstance(template.get(name) or {}, Mapping):
            yield f"template.{name} is no mapping"
            return
    if not spec:
        yield "template has no spec; give that of a VirtualMachineInstance"
        return
    if not _labels(template) and not (request.selector or {}).get("matchLabels") and not stored:
        yield "neither template.metadata.labels nor selector say by which labels the set knows its VMIs"
    twice = [field for field in FIELDS.values() if request.placement is not None and spec.get(field)]
    yield from (f"template.spec.{field} and placement both say where VMIs run; give one of them" for field in twice)


def _migratable(spec: Object, *, eviction_strategy: str, masquerade: bool) -> JsonObject:
    """The spec of a VMI with an eviction strategy, and with a network if it names none. What it says itself stays.

    By default KubeVirt connects a VM by a bridge to the pod network, which cannot be live-migrated, and lets a VM die
    with its evicted pod.
    """
    made = {"evictionStrategy": eviction_strategy, **spec}
    return _with_network(made) if masquerade and _names_no_network(spec) else made


def _names_no_network(spec: Object) -> bool:
    devices = _devices(spec)
    wanted = devices.get("autoattachPodInterface") is not False
    return wanted and not spec.get("networks") and not devices.get("interfaces")


def _with_network(spec: Object) -> JsonObject:
    devices = {**_devices(spec), "interfaces": [{"name": _NETWORK, "masquerade": {}}]}
    domain = {**(spec.get("domain") or {}), "devices": devices}
    return {**spec, "domain": domain, "networks": [{"name": _NETWORK, "pod": {}}]}


def _devices(spec: Object) -> Object:
    return (spec.get("domain") or {}).get("devices") or {}
