# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of a pod that the scheduler, a quota or a drain looks at, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity

from testbed.api import Object

# Of the pod, as they are. Sequences keep their order: of terms, tolerations and containers.
FIELDS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "schedulingGates",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "runtimeClassName",
    "resourceClaims",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "hostNetwork",
)
# Volumes that any node has; the prediction leaves them out.
EVERYWHERE = ("emptyDir", "secret", "configMap", "downwardAPI", "projected")


def view(pod: Mapping[str, Any], *, images: bool) -> Object:
    """`images`: whether they count, too."""
    spec = pod["spec"]
    seen: Object = {name: spec[name] for name in FIELDS if spec.get(name) not in (None, [], {}, "")}
    seen["labels"] = pod["metadata"]["labels"]
    seen["overhead"] = _amounts(spec.get("overhead"))
    for name in ("containers", "initContainers"):
        seen[name] = [_container(container, images) for container in spec.get(name) or ()]
    seen["volumes"] = [_volume(volume, images) for volume in spec.get("volumes") or () if not _is_everywhere(volume)]
    return seen


def differences(expected: Any, found: Any, place: str = "") -> list[str]:
    """One line for each value that is not the same, by its place."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = []
        for key in sorted({*expected, *found}):
            lines += differences(expected.get(key), found.get(key), f"{place}/{key}")
        return lines
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for number, pair in pairs for line in differences(*pair, f"{place}/{number}")]
    return [] if expected == found else [f"{place}: said {expected!r}, is {found!r}"]


def _container(container: Object, images: bool) -> Object:
    resources = container.get("resources") or {}
    seen: Object = {
        "name": container["name"],
        "restartPolicy": container.get("restartPolicy"),
        "limits": _amounts(resources.get("limits")),
        "requests": _amounts(resources.get("requests")),
        "claims": resources.get("claims"),
        "hostPorts": [port["hostPort"] for port in container.get("ports") or () if port.get("hostPort")],
    }
    return {**seen, "image": container.get("image")} if images else seen


def _amounts(resources: Object | None) -> dict[str, int]:
    return {name: quantity.parse(amount) for name, amount in (resources or {}).items()}


def _is_everywhere(volume: Object) -> bool:
    return any(kind in volume for kind in EVERYWHERE)


def _volume(volume: Object, images: bool) -> Object:
    if "image" in volume:
        return {"name": volume["name"], "image": volume["image"]["reference"] if images else ""}
    return volume
