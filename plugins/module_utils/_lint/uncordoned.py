# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as it will be when its maintenance has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]

_CORDON = "node.kubernetes.io/unschedulable"


def uncordoned(node: Object) -> Object:
    """The same node, or a copy without its cordon."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or ()
    kept = [taint for taint in taints if taint.get("key") != _CORDON]
    if not spec.get("unschedulable") and len(kept) == len(taints):
        return node
    return {**node, "spec": {**spec, "unschedulable": False, "taints": kept}}
