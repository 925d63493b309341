# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces on the pod network that do not survive a migration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import strategy
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.cluster import LintedCluster
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Operation, Problem, Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.words import unmovable_on_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.workloads import Workload
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

_ALLOWED = "kubevirt.io/allow-pod-bridge-network-live-migration"
_BRIDGE = "bridge"


def is_bridged(workload: Workload, default: str) -> bool:
    """Whether its VMs are on the pod network by a bridge. `default`: how KubeVirt binds VMs that do not say it."""
    devices = _devices(workload)
    if _ALLOWED in workload.annotations:
        return False
    if _is_silent(workload):
        return default == _BRIDGE and devices.get("autoattachPodInterface") is not False
    return _number(workload) is not None


def _check(cluster: LintedCluster) -> Iterator[Problem]:
    default = cluster.configuration.default_network_interface
    for workload in cluster.vms:
        if is_bridged(workload, default):
            effect = unmovable_on_drain(strategy({"spec": workload.spec}, cluster.configuration))
            yield Problem(
                workload.subject,
                f"It is on the pod network by a bridge, which KubeVirt does not live-migrate: {effect}.",
                "Bind the interface by masquerade, and restart the VM.",
                field=f"{workload.prefix}/domain/devices/interfaces",
                patch=tuple(_fix(workload)) if workload.editable else (),
                vmis=workload.running,
            )


def _devices(workload: Workload) -> JsonObject:
    return dict((workload.spec.get("domain") or {}).get("devices") or {})


def _interfaces(workload: Workload) -> Sequence[JsonObject]:
    return _devices(workload).get("interfaces") or ()


def _is_silent(workload: Workload) -> bool:
    """Whether KubeVirt's webhook will add the interface."""
    return not _interfaces(workload) and not workload.spec.get("networks")


def _number(workload: Workload) -> int | None:
    """Place of the interface that bridges the pod network."""
    on_pods = {network["name"] for network in workload.spec.get("networks") or () if "pod" in network}
    for number, interface in enumerate(_interfaces(workload)):
        if interface.get("name") in on_pods and _BRIDGE in interface:
            return number
    return None


def _fix(workload: Workload) -> Iterator[Operation]:
    devices = f"{workload.prefix}/domain/devices"
    if _is_silent(workload):
        if not (workload.spec.get("domain") or {}).get("devices"):
            yield {"op": "add", "path": devices, "value": {}}
        yield {"op": "add", "path": f"{devices}/interfaces", "value": [{"name": "default", "masquerade": {}}]}
        yield {"op": "add", "path": f"{workload.prefix}/networks", "value": [{"name": "default", "pod": {}}]}
    else:
        interface = f"{devices}/interfaces/{_number(workload)}"
        yield {"op": "remove", "path": f"{interface}/bridge"}
        yield {"op": "add", "path": f"{interface}/masquerade", "value": {}}


RULE = LintRule(
    id="bridge-binding",
    severity=Severity.ERROR,
    title="A VM is on the pod network by a bridge",
    explanation="The guest holds the pod's address, which does not move with it, so KubeVirt calls the VM not "
    "live-migratable. A VM that names no interface gets such a bridge by default. Those with the annotation "
    "``kubevirt.io/allow-pod-bridge-network-live-migration`` are left alone.",
    check=_check,
    mends=True,
)
