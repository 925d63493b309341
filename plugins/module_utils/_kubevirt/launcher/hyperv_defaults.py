# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defaults of Hyper-V enlightenments, some of which need others, and one a feature of the CPU.

Follows pkg/defaults/hyperv.go and kubevirt.io/api/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

# What needs what; those that others need come after them.
_NEEDS = (
    ("evmcs", "vapic"),
    ("ipi", "vpindex"),
    ("tlbflush", "vpindex"),
    ("synictimer", "synic"),
    ("synic", "vpindex"),
)
_VMX = {"name": "vmx", "policy": "require"}


def with_hyperv_defaults(domain: Object) -> dict[str, Any]:
    """The domain with them. One that forbids what it needs is left as it is; KubeVirt refuses it later."""
    features = domain.get("features") or {}
    given = features.get("hyperv")
    if given is None:
        return dict(domain)
    states = {name: _enabled(state) for name, state in given.items() if state is not None}
    for name, needed in _NEEDS:
        if states.get(name, {}).get("enabled"):
            states[needed] = states.get(needed) or {"enabled": True}
    changed = {**domain, "features": {**features, "hyperv": states}}
    if states.get("evmcs", {}).get("enabled"):
        changed["cpu"] = _with_vmx(domain["cpu"])
    return changed


def _enabled(state: Object) -> dict[str, Any]:
    return dict(state) if state.get("enabled") is not None else {**state, "enabled": True}


def _with_vmx(cpu: Object) -> dict[str, Any]:
    features = list(cpu.get("features") or ())
    if any(feature["name"] == "vmx" for feature in features):
        return {**cpu, "features": [_VMX if feature["name"] == "vmx" else feature for feature in features]}
    return {**cpu, "features": [*features, _VMX]}
