# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of nodes: each node that is meant is one host, under one name that no other has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.addresses import (
    TYPES,
    addresses,
    host_problem,
    unusable,
    usable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.groups import NodeFacts, NodeGroup, groups
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fitness import fitness, is_node_ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import MAINTAINED, find_cordon
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels, is_qualified_name
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.keys import REGION, ZONE, is_labellers
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.rules import RuleError, compile_rule

_ATTEMPT = "make a host of each node"
_SELECT, _GROUP = "select nodes", "group nodes by their labels"
_REMEDY = "Give other hostnames, or leave the nodes out by label_selectors or expression."
_ROLE, _OLD_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"  # as kubectl reads them
_NAME, _LABEL = "name", "label:"
_INFO = {
    "architecture": "architecture",
    "boot_id": "bootID",
    "container_runtime_version": "containerRuntimeVersion",
    "kernel_version": "kernelVersion",
    "kubelet_version": "kubeletVersion",
    "operating_system": "operatingSystem",
    "os_image": "osImage",
}


@dataclass(frozen=True, slots=True)
class HostRules:
    """What is wanted, as the options of the inventory plugin name it."""

    hostnames: Sequence[str]
    address_types: Sequence[str]
    annotations: Sequence[str]
    group_by: Sequence[str]
    group_by_labels: Sequence[str]
    group_prefix: str
    heartbeat_age: int


@dataclass(frozen=True, slots=True)
class NodeHost:
    """`variables`: plain data, with texts that anybody in the cluster may have written."""

    name: str
    node: str
    groups: Sequence[NodeGroup]
    variables: Mapping[str, Any]


def hosts(nodes: Sequence[Object], rules: HostRules, read_at: datetime, manager: str) -> list[NodeHost]:
    """One for each node, in their order. Raises InvalidRequest.

    read_at: when the nodes were read. manager: the name under which this collection writes fields.
    """
    names = _names(nodes, rules.hostnames)
    return [_host(names[node["metadata"]["name"]], node, rules, read_at, manager) for node in nodes]


def remarks(nodes: Sequence[Object], rules: HostRules) -> Iterator[str]:
    """Sentences on addresses that are not, or should not be, as they are."""
    claims: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        name = brief(node["metadata"]["name"])
        if problems := list(unusable(node, rules.address_types)):
            yield f"Addresses of node {name} are passed over: {'; '.join(problems)}."
        if address := next(usable(node, rules.address_types), None):
            claims[address].append(name)
    for address, names in claims.items():
        if len(names) > 1:
            yield f"Nodes {', '.join(names)} have the same address {address}: what is done to one is done to the other."


def selected(nodes: Sequence[Object], expression: str | None) -> list[Object]:
    """Those of which a JMESPath expression is true. Raises InvalidRequest, MissingLibrary."""
    if expression is None:
        return list(nodes)
    try:
        rule = compile_rule("the option expression", expression, {})
        return [node for node in nodes if rule.applies(node)]
    except RuleError as error:
        remedy = "Give a JMESPath expression over a Node object, such as metadata.labels.rack == '7'."
        raise InvalidRequest(_SELECT, [str(error)], remedy) from error


def require_labels(nodes: Sequence[Object], keys: Iterable[str]) -> None:
    """See that some node has each label, as a misspelt one would just make no group. Raises InvalidRequest."""
    there = sorted({key for node in nodes for key in node["metadata"].get("labels") or {}})
    problems = [problem for key in keys if (problem := _problem(key, there, some=bool(nodes)))]
    if problems:
        remedy = "Correct group_by_labels; for a label that may be missing on all nodes use keyed_groups."
        raise InvalidRequest(_GROUP, problems, remedy)


def _problem(key: str, there: Sequence[str], *, some: bool) -> str | None:
    """`some`: whether there are nodes at all; without any nothing is known of their labels."""
    if key in there:
        return None
    if not is_qualified_name(key):
        return f"{key!r} cannot be the key of a label"
    near = get_close_matches(key, there, n=1)
    return f"no node has the label {key}" + (f" (do you mean {near[0]}?)" if near else "") if some else None


def _names(nodes: Sequence[Object], sources: Sequence[str]) -> dict[str, str]:
    """The host of each node, by the node's name."""
    problems = [problem for source in sources if (problem := _source_problem(source))]
    found: dict[str, str] = {}
    for node in nodes if not problems else ():
        name = node["metadata"]["name"]
        candidates = [text for source in sources for text in _candidates(node, source)]
        if not candidates:
            problems.append(f"node {brief(name)} has none of {', '.join(sources)}")
        elif problem := host_problem(candidates[0]):
            problems.append(f"the host of node {brief(name)} would be called {brief(candidates[0])!r}, which {problem}")
        else:
            found[name] = candidates[0]
    problems += _shared(found)
    if problems:
        raise InvalidRequest(_ATTEMPT, problems, _REMEDY)
    return found


def _source_problem(source: str) -> str | None:
    if source == _NAME or source in TYPES:
        return None
    if source.startswith(_LABEL) and is_qualified_name(source.removeprefix(_LABEL)):
        return None
    return f"hostnames has {source!r}, which is none of {_NAME}, {', '.join(TYPES)} and {_LABEL}KEY"


def _candidates(node: Object, source: str) -> Iterator[str]:
    metadata = node["metadata"]
    if source == _NAME:
        yield metadata["name"]
    elif source in TYPES:
        yield from usable(node, [source])
    elif value := (metadata.get("labels") or {}).get(source.removeprefix(_LABEL)):
        yield value


def _shared(names: Mapping[str, str]) -> Iterator[str]:
    by_host: defaultdict[str, list[str]] = defaultdict(list)
    for node, host in names.items():
        by_host[host].append(node)
    for host, nodes in by_host.items():
        if len(nodes) > 1:
            yield f"nodes {', '.join(nodes)} would all be host {host}"


def _host(name: str, node: Object, rules: HostRules, read_at: datetime, manager: str) -> NodeHost:
    facts = _facts(node, rules, read_at, manager)
    found = groups(facts, rules.group_by, rules.group_by_labels, rules.group_prefix)
    return NodeHost(name, facts.name, found, dict(_variables(node, facts, rules)))


def _facts(node: Object, rules: HostRules, read_at: datetime, manager: str) -> NodeFacts:
    labels: Labels = node["metadata"].get("labels") or {}
    return NodeFacts(
        name=node["metadata"]["name"],
        labels=labels,
        zone=labels.get(ZONE) or "",
        region=labels.get(REGION) or "",
        roles=tuple(sorted({*_roles(labels)})),
        cordon=find_cordon(node, manager),
        maintained=labels.get(MAINTAINED) or "",
        fitness=fitness(node, read_at, rules.heartbeat_age),
    )


def _roles(labels: Labels) -> Iterator[str]:
    yield from (key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE)
    if old := labels.get(_OLD_ROLE):
        yield old


def _variables(node: Object, facts: NodeFacts, rules: HostRules) -> Iterator[tuple[str, Any]]:
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    annotations, info = metadata.get("annotations") or {}, status.get("nodeInfo") or {}
    if address := next(usable(node, rules.address_types), None):
        yield "ansible_host", address
    # By it the roles know the node whatever the host is called.
    yield "drain_node", facts.name
    yield "node_name", facts.name
    yield "node_uid", metadata.get("uid") or ""
    yield "node_labels", {key: value for key, value in facts.labels.items() if not is_labellers(key)}
    yield "node_annotations", {key: annotations[key] for key in rules.annotations if key in annotations}
    yield "node_roles", list(facts.roles)
    yield "node_zone", facts.zone
    yield "node_region", facts.region
    yield "node_addresses", addresses(node)
    yield "node_taints", [_taint(entry) for entry in spec.get("taints") or ()]
    yield "node_ready", is_node_ready(node)
    yield "node_cordoned", facts.cordon is not None
    yield "node_cordon", asdict(facts.cordon) if facts.cordon else {}
    yield "node_maintained", facts.maintained
    yield "node_kubevirt", _kubevirt(facts)
    yield "node_allocatable", dict(status.get("allocatable") or {})
    yield "node_info", {name: info.get(field) or "" for name, field in _INFO.items()}


def _kubevirt(facts: NodeFacts) -> JsonObject:
    return {
        "status": facts.fitness.status.value,
        "schedulable": facts.labels.get(SCHEDULABLE) == "true",
        "heartbeat": facts.fitness.heartbeat,
        "obstacles": [obstacle.why for obstacle in facts.fitness.obstacles],
    }


def _taint(entry: Object) -> dict[str, str]:
    return {name: entry.get(name) or "" for name in ("key", "value", "effect")}
