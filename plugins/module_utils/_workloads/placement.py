# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's few words on where VMs may run to what the API says: the fields of a VMI's spec about placement.

node_labels       node affinity, required or with a weight preferred
keep_apart        pod anti-affinity, from the set's own VMs or others
keep_together     pod affinity, with VMs or pods
spread            topology spread constraints
tolerations, scheduler_name, affinity      as the API has them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import (
    blocks_migration,
    ignoring_own_pod,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    JsonObject,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.keys import REGION, ZONE

# Of a task, as Ansible gives them: values, also those of labels, may be anything that YAML takes for a value.
Words = Mapping[str, Any]

# Fields of a VMI's spec that are placement's business, by the option that stands for them.
FIELDS: Mapping[str, str] = {
    "affinity": "affinity",
    "tolerations": "tolerations",
    "spread": "topologySpreadConstraints",
    "scheduler_name": "schedulerName",
}
TOPOLOGY_KEYS: Mapping[str, str] = {"host": HOSTNAME, "zone": ZONE, "region": REGION}
_VM = "vmi.kubevirt.io/id"


@dataclass(frozen=True, slots=True)
class Own:
    """The set whose VMs are placed: `selector` a LabelSelector of the API, `labels` those of its VMs."""

    namespace: str
    selector: Mapping[str, Any]
    labels: Labels


def placement_fields(words: Words, own: Own) -> JsonObject:
    """The fields by their names in a VMI's spec, without those that say nothing. The words are checked before."""
    fields = {
        "affinity": words["affinity"] or _affinity(words, own),
        "tolerations": [_toleration(entry) for entry in words["tolerations"]],
        "topologySpreadConstraints": [_spread(entry, own) for entry in words["spread"]],
        "schedulerName": words["scheduler_name"],
    }
    return {name: value for name, value in fields.items() if value}


def requirement(words: Words) -> JsonObject:
    """A requirement on a label, as the API has it."""
    values = [str(value) for value in words["values"] or ()]
    stated = {"key": words["key"], "operator": operator(words)}
    return {**stated, "values": values} if values else stated


def operator(words: Words) -> str:
    """Of a requirement: without one, values make it `In`, and no values `Exists`."""
    return words["operator"] or ("In" if words["values"] else "Exists")


def topology_key(per: str) -> str:
    return TOPOLOGY_KEYS.get(per, per)


def _affinity(words: Words, own: Own) -> JsonObject:
    sides = {
        "nodeAffinity": _node_affinity(words["node_labels"]),
        "podAffinity": _pod_affinity(words["keep_together"], lambda entry: _term(entry, own)),
        "podAntiAffinity": _pod_affinity(words["keep_apart"], lambda entry: _apart(entry, own)),
    }
    return {name: side for name, side in sides.items() if side}


def _node_affinity(entries: Sequence[Words]) -> JsonObject:
    """All required labels stand in one term, as terms are alternatives; each preferred one has a weight of its own."""
    required = [requirement(entry) for entry in entries if entry["weight"] is None]
    preferred = [
        {"weight": entry["weight"], "preference": {"matchExpressions": [requirement(entry)]}}
        for entry in entries
        if entry["weight"] is not None
    ]
    side: JsonObject = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": required}]}} if required else {}
    return {**side, PREFERRED: preferred} if preferred else side


def _pod_affinity(entries: Sequence[Words], term: Callable[[Words], JsonObject]) -> JsonObject:
    required = [term(entry) for entry in entries if entry["weight"] is None]
    preferred = [
        {"weight": entry["weight"], "podAffinityTerm": term(entry)} for entry in entries if entry["weight"] is not None
    ]
    return {name: terms for name, terms in ((REQUIRED, required), (PREFERRED, preferred)) if terms}


def _apart(entry: Words, own: Own) -> JsonObject:
    """Only a required rule can block the migration; a preference is left as it is said."""
    term = _term(entry, own)
    required = entry["weight"] is None
    if required and entry["ignore_own_pod"] and blocks_migration(term, own.labels, own.namespace):
        return ignoring_own_pod(term)
    return term


def _term(entry: Words, own: Own) -> JsonObject:
    term: JsonObject = {
        "topologyKey": topology_key(entry["per"]),
        "labelSelector": selector(entry) or dict(own.selector),
    }
    return {**term, "namespaces": entry["namespaces"]} if entry["namespaces"] else term


def selector(entry: Words) -> JsonObject:
    """A LabelSelector of pods, empty if the entry names none. A launcher pod carries its VM's labels and its name."""
    expressions = [requirement(words) for words in entry["expressions"]]
    if entry.get("vms"):
        expressions.append({"key": _VM, "operator": "In", "values": list(entry["vms"])})
    labels = {key: str(value) for key, value in (entry["labels"] or {}).items()}
    parts = {"matchLabels": labels, "matchExpressions": expressions}
    return {name: part for name, part in parts.items() if part}


def _toleration(entry: Words) -> JsonObject:
    names = {"key": "key", "operator": "operator", "value": "value", "effect": "effect"}
    stated = {field: entry[name] for name, field in names.items() if entry[name] is not None}
    seconds = entry["toleration_seconds"]
    return stated if seconds is None else {**stated, "tolerationSeconds": seconds}


def _spread(entry: Words, own: Own) -> JsonObject:
    constraint: JsonObject = {
        "topologyKey": topology_key(entry["per"]),
        "maxSkew": entry["max_skew"],
        "whenUnsatisfiable": entry["when_unsatisfiable"],
        "labelSelector": selector(entry) or dict(own.selector),
    }
    return {**constraint, **dict(_spread_policies(entry))}


def _spread_policies(entry: Words) -> Iterator[tuple[str, Any]]:
    for name, field in (
        ("min_domains", "minDomains"),
        ("node_affinity_policy", "nodeAffinityPolicy"),
        ("node_taints_policy", "nodeTaintsPolicy"),
    ):
        if entry[name] is not None:
            yield field, entry[name]
