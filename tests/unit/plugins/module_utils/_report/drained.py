# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_drain returns, as it is told in the end."""

from __future__ import annotations

from typing import Any

MOVE: dict[str, Any] = {
    "namespace": "shop",
    "name": "web",
    "outcome": "migrated",
    "target_node": "n2",
    "node": "n1",
    "seconds": None,
    "failure_reason": "",
    "for_node": "n1",
}
POD: dict[str, Any] = {
    "namespace": "shop",
    "name": "api",
    "outcome": "evicted",
    "refusal": "",
    "seconds": 1,
    "for_node": "n1",
}
CUT: dict[str, Any] = {
    "namespace": "shop",
    "name": "db",
    "outcome": "stopped",
    "owner_kind": "VirtualMachine",
    "owner": "db",
    "successor": "",
    "target_node": "",
    "seconds": 4,
    "failure_reason": "",
    "for_node": "n1",
}
STARTED = {"kind": "VirtualMachine", "namespace": "shop", "name": "db", "node": "n1", "outcome": "started"}
DEVIATION = {
    "kind": "vm",
    "namespace": "shop",
    "name": "web",
    "planned": "goes to n2",
    "done": "migrated to n3 in 6 s",
    "why": "the network was gone",
}


def remnant(kind: str, name: str, why: str, sake: str = "n1") -> dict[str, str]:
    return {"kind": kind, "namespace": "" if kind == "node" else "shop", "name": name, "why": why, "for_node": sake}
