# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that KubeVirt adds by itself where a namespace has a quota of limits, or is chosen in the configuration.

Follows doesVMIRequireAutoResourceLimits and doesVMIRequireAutoCPULimits in pkg/virt-controller/services/template.go,
and getMemoryLimitsRatio in renderresources.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import CPU
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import label_selector

Object = Mapping[str, Any]
Lists = Mapping[str, Sequence[Object]]

_RATIO_LABEL = "alpha.kubevirt.io/auto-memory-limits-ratio"
_RATIO = 2.0


def needs_limit(vmi: Object, name: str, lists: Lists) -> bool:
    """Whether a quota of the namespace demands that pods have a limit of this resource, and the VMI has none."""
    if _has_limit(vmi, name):
        return False
    namespace = vmi["metadata"]["namespace"]
    return any(
        f"limits.{name}" in ((quota.get("spec") or {}).get("hard") or {})
        for quota in lists.get("resourcequotas") or ()
        if quota["metadata"]["namespace"] == namespace
    )


def needs_cpu_limit(vmi: Object, configuration: Configuration, lists: Lists) -> bool:
    """The same for CPUs, which the namespace's labels may demand, too. Raises `SelectorError`."""
    if needs_limit(vmi, CPU, lists):
        return True
    chosen, namespace = configuration.auto_cpu_limit_namespaces, _namespace(vmi, lists)
    if chosen is None or namespace is None or _has_limit(vmi, CPU):
        return False
    return label_selector(chosen).matches(namespace["metadata"].get("labels") or {})


def memory_limit_ratio(vmi: Object, lists: Lists) -> float:
    """Of the limit to the request."""
    labels = ((_namespace(vmi, lists) or {}).get("metadata") or {}).get("labels") or {}
    try:
        ratio = float(labels.get(_RATIO_LABEL, _RATIO))
    except ValueError:
        return _RATIO
    return ratio if ratio >= 1.0 else _RATIO


def _has_limit(vmi: Object, name: str) -> bool:
    return name in ((traits.domain(vmi).get("resources") or {}).get("limits") or {})


def _namespace(vmi: Object, lists: Lists) -> Object | None:
    name = vmi["metadata"]["namespace"]
    found = (item for item in lists.get("namespaces") or () if item["metadata"]["name"] == name)
    return next(found, None)
