# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node labels that a VMI's own pods ask for, by KubeVirt's rules.

Follows pkg/virt-controller/services/nodeselectorrenderer.go and RenderLaunchManifest in services/template.go. Labels
that only some nodes' features or feature gates bring about (Hyper-V, TSC frequency, host-model) are left out: nobody
chooses a node by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]

_MODELS_OF_THE_HOST = frozenset({"", "host-model", "host-passthrough"})


def own_node_selector(vmi: Object) -> dict[str, str]:
    """Node labels by key, as in the node selector of the VMI's virt-launcher pods."""
    spec, status = vmi["spec"], vmi.get("status") or {}
    selector = {"kubevirt.io/schedulable": "true"}
    if spec.get("architecture"):
        selector["kubernetes.io/arch"] = spec["architecture"].lower()
    selector.update(spec.get("nodeSelector") or {})
    selector.update(dict.fromkeys(_required_features(spec.get("domain") or {}, status), "true"))
    return selector


def _required_features(domain: Object, status: Object) -> Iterator[str]:
    """Keys of labels that have to be `true`."""
    cpu = domain.get("cpu") or {}
    if cpu.get("dedicatedCpuPlacement"):
        yield "kubevirt.io/cpumanager"
    if cpu.get("realtime") is not None:
        yield "kubevirt.io/realtime"
    if cpu.get("model", "") not in _MODELS_OF_THE_HOST:
        yield f"cpu-model.node.kubevirt.io/{cpu['model']}"
    for feature in cpu.get("features") or ():
        if feature.get("policy", "") in ("", "require"):
            yield f"cpu-feature.node.kubevirt.io/{feature['name']}"
    # libvirt's own name for the machine, once it has one, is stricter than the name in the specification.
    machine = (status.get("machine") or domain.get("machine") or {}).get("type")
    if machine:
        yield f"machine-type.node.kubevirt.io/{machine}"
