# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Lease of a node by which operators and people keep out of each other's way.

Name, place and meaning are those of medik8s' operators (github.com/medik8s/common, pkg/lease): whoever holds the Lease
`node-<name>` has the node to itself until it expires; it is released by being deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

Object = Mapping[str, Any]

_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"  # the API's MicroTime


@dataclass(frozen=True, slots=True)
class NodeLease:
    """`expires_at`: None if it never began to run, which counts as expired."""

    namespace: str
    name: str
    holder: str
    expires_at: datetime | None

    def is_valid(self, now: datetime) -> bool:
        return bool(self.holder) and self.expires_at is not None and now <= self.expires_at


def lease_name(node: str) -> str:
    return f"node-{node}".lower()


def parse_lease(lease: Object) -> NodeLease:
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    expires_at = None
    if renewed and seconds is not None:
        began = datetime.strptime(renewed, _TIME).replace(tzinfo=timezone.utc)
        expires_at = began + timedelta(seconds=seconds)
    return NodeLease(metadata["namespace"], metadata["name"], spec.get("holderIdentity") or "", expires_at)


def held_lease(
    before: Object | None, node: Object, namespace: str, holder: str, seconds: int, now: datetime
) -> dict[str, Any]:
    """The object to write so that `holder` has the node for so long from now; `before`: what is there, of anybody."""
    old: Object = (before or {}).get("spec") or {}
    time = now.strftime(_TIME)
    spec = {**old, "holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": time}
    if old.get("holderIdentity") != holder or "acquireTime" not in old:
        transitions = old.get("leaseTransitions", 0) + 1 if before else 0
        spec |= {"acquireTime": time, "leaseTransitions": transitions}
    reference = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    metadata = dict(before["metadata"]) if before else {"name": lease_name(reference["name"]), "namespace": namespace}
    metadata["ownerReferences"] = [reference]  # the Lease goes with its node
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
