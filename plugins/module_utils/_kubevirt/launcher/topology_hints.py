# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At which frequency the time stamp counter of a new VMI is to run: one that the cluster's nodes can offer.

Follows pkg/virt-controller/watch/topology/hinter.go and tsc.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import SCHEDULABLE
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits

Object = Mapping[str, Any]
Lists = Mapping[str, Sequence[Object]]

_FREQUENCY = "cpu-timer.node.kubevirt.io/tsc-frequency"


def with_topology_hints(vmi: Object, configuration: Configuration, lists: Lists) -> Object:
    """The VMI with the hint that KubeVirt notes in its status before it makes the pod, if it needs one."""
    status = vmi.get("status") or {}
    if status.get("topologyHints") or vmi["spec"].get("architecture") != "amd64" or not _needs_frequency(vmi):
        return vmi
    frequency = configuration.minimum_tsc_frequency
    if frequency is None:
        frequency = min(_frequencies(lists), default=0)
    return {**vmi, "status": {**status, "topologyHints": {"tscFrequency": frequency}}}


def _needs_frequency(vmi: Object) -> bool:
    domain = traits.domain(vmi)
    for feature in (domain.get("cpu") or {}).get("features") or ():
        if feature["name"] == "invtsc" and feature.get("policy") in ("require", "force"):
            return True
    hyperv = (domain.get("features") or {}).get("hyperv") or {}
    return bool((hyperv.get("reenlightenment") or {}).get("enabled"))


def _frequencies(lists: Lists) -> Iterator[int]:
    """Of nodes on which VMIs may run, or do."""
    busy = {(vmi.get("status") or {}).get("nodeName") for vmi in lists.get("vmis") or ()}
    for node in lists.get("nodes") or ():
        labels = node["metadata"].get("labels") or {}
        text = labels.get(_FREQUENCY, "")
        if text.isdecimal() and int(text) and (labels.get(SCHEDULABLE) == "true" or node["metadata"]["name"] in busy):
            yield int(text)
