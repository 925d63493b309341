# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Required anti-affinity between VMs' pods, judged without the product's own reading of it.

Terms of the VMs' own namespace with matchLabels and matchExpressions, as clusters that are made here have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from testbed.api import Object

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_VM = "kubevirt.io/created-by"


def broken(pods: Iterable[Object], nodes: Iterable[Object]) -> Iterator[str]:
    """Pairs of VMs that share a place and must not. A VM is never in its own way."""
    places = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    placed = [pod for pod in pods if pod["spec"].get("nodeName") in places]
    for one in placed:
        for term in _terms(one):
            for other in placed:
                if _meets(term, one, other) and _together(term["topologyKey"], one, other, places):
                    yield f"{_named(one)} shares a {term['topologyKey']} with {_named(other)}"


def _terms(pod: Object) -> list[Object]:
    anti = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return list(anti.get(_REQUIRED) or ())


def _meets(term: Object, one: Object, other: Object) -> bool:
    mine, labels = one["metadata"], other["metadata"].get("labels", {})
    if labels.get(_VM, "") == mine.get("labels", {}).get(_VM) or mine["namespace"] != other["metadata"]["namespace"]:
        return False
    selector = term.get("labelSelector") or {}
    if not selector or term.get("namespaces") or "namespaceSelector" in term:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[expression["operator"]]


def _together(key: str, one: Object, other: Object, places: Mapping[str, Mapping[str, str]]) -> bool:
    mine = places[one["spec"]["nodeName"]].get(key)
    return mine is not None and mine == places[other["spec"]["nodeName"]].get(key)


def _named(pod: Object) -> str:
    """By the VM, whatever pod it has."""
    name = pod["metadata"].get("annotations", {}).get("kubevirt.io/domain") or pod["metadata"]["name"]
    return f"{pod['metadata']['namespace']}/{name}"
