# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Lease of a node by which operators and people keep out of each other's way.

Name, place and meaning are those of medik8s' operators (github.com/medik8s/common, pkg/lease): whoever holds the Lease
`node-<name>` has the node to itself until it expires; it is released by being deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"  # the API's MicroTime


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
        began = datetime.strptime(renewed, TIME).replace(tzinfo=timezone.utc)
        expires_at = began + timedelta(seconds=seconds)
    return NodeLease(metadata["namespace"], metadata["name"], spec.get("holderIdentity") or "", expires_at)


def held_lease(
    before: Object | None, node: Object, namespace: str, holder: str, seconds: int, now: datetime, run: str = ""
) -> JsonObject:
    """The object to write so that `holder` has the node for so long from now; `before`: what is there, of anybody.

    run: the run that the node is taken for, which renews the Lease with its own; empty for none, or for the same still.
    """
    reference = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    metadata: JsonObject = {"name": lease_name(reference["name"]), "namespace": namespace}
    if before:
        metadata = dict(before["metadata"])
    metadata["ownerReferences"] = [reference]  # the Lease goes with its node
    labels = dict(metadata.get("labels") or {})
    if before and parse_lease(before).holder != holder:
        labels.pop(RUN_LABEL, None)
    metadata["labels"] = {**labels, **({RUN_LABEL: run} if run else {})}
    spec = held_spec(before, holder, seconds, now)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def held_spec(before: Object | None, holder: str, seconds: int, now: datetime) -> JsonObject:
    """The spec of a Lease that is taken, or renewed by who holds it already."""
    old: Object = (before or {}).get("spec") or {}
    time = now.strftime(TIME)
    spec = {**old, "holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": time}
    if old.get("holderIdentity") != holder or "acquireTime" not in old:
        transitions = old.get("leaseTransitions", 0) + 1 if before else 0
        spec |= {"acquireTime": time, "leaseTransitions": transitions}
    return spec


def is_due(lease: Object, holder: str, now: datetime) -> bool:
    """Whether a Lease of this holder is to be renewed: a third of its time is over, or its time cannot be right."""
    found = parse_lease(lease)
    seconds = lease["spec"].get("leaseDurationSeconds") or 0
    if found.holder != holder or found.expires_at is None:
        return False
    return not seconds * 2 / 3 < (found.expires_at - now).total_seconds() <= seconds


def renewed_lease(lease: Object, now: datetime) -> JsonObject:
    """The object to write so that its holder has it for as long again."""
    return {**lease, "spec": {**lease["spec"], "renewTime": now.strftime(TIME)}}
