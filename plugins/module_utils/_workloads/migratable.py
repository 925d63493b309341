# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a VM migratable, for templates that leave it open: KubeVirt's own defaults do not.

By default KubeVirt connects a VM by a bridge to the pod network, which cannot be live-migrated, and lets a VM die with
its evicted pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

_NETWORK = "default"


def migratable(spec: Object, *, eviction_strategy: str, masquerade: bool) -> dict[str, Any]:
    """The spec of a VMI with an eviction strategy, and with a network if it names none. What it says itself stays."""
    made = {"evictionStrategy": eviction_strategy, **spec}
    return _with_network(made) if masquerade and _names_no_network(spec) else made


def _names_no_network(spec: Object) -> bool:
    devices = _devices(spec)
    wanted = devices.get("autoattachPodInterface") is not False
    return wanted and not spec.get("networks") and not devices.get("interfaces")


def _with_network(spec: Object) -> dict[str, Any]:
    devices = {**_devices(spec), "interfaces": [{"name": _NETWORK, "masquerade": {}}]}
    domain = {**(spec.get("domain") or {}), "devices": devices}
    return {**spec, "domain": domain, "networks": [{"name": _NETWORK, "pod": {}}]}


def _devices(spec: Object) -> Object:
    return (spec.get("domain") or {}).get("devices") or {}
