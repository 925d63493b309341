# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases: of a node, by which operators and people keep out of each other's way, and of a run.

Name, place and meaning of a node's are those of medik8s' operators (github.com/medik8s/common, pkg/lease): whoever
holds the Lease `node-<name>` has the node to itself until it expires; it is released by being deleted.

That of a run says which invocation of it may act, from where, and until when. A run is named by people and outlives
each start of it; an invocation is one such start, a process of ansible-playbook.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"  # the API's MicroTime
HOLDER, RENEWER = "virtops.kubevirt/holder", "virtops.kubevirt/renewer"
# Of a run's Lease, in seconds. A holder that fails to renew twice in a row has still time to notice before others may
# take it.
DURATION, RENEWAL = 30, 10

_RUN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
# A subdomain by RFC 1123, as names of objects have to be.
_PLAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


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
    if found.holder != holder or found.expires_at is None:
        return False
    seconds = lease["spec"]["leaseDurationSeconds"]
    return not seconds * 2 / 3 < (found.expires_at - now).total_seconds() <= seconds


def renewed_lease(lease: Object, now: datetime) -> JsonObject:
    """The object to write so that its holder has it for as long again."""
    return {**lease, "spec": {**lease["spec"], "renewTime": now.strftime(TIME)}}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One ansible-playbook process. `id`: the same in all its tasks, and in no other process."""

    id: str
    user: str = ""
    host: str = ""
    pid: int = 0


@dataclass(frozen=True, slots=True)
class RunLease:
    """`run`, `invocation`: raw, as the holder gave them. `since`, `renewed`: in UTC as the API writes them, or empty.

    seconds: after which the holder counts as dead if it has not renewed. version: changes with each renewal.
    renewer: what the process that renews it has told of itself.
    """

    namespace: str
    name: str
    run: str
    invocation: str
    user: str
    host: str
    pid: int
    since: str
    renewed: str
    seconds: int
    version: str
    renewer: str

    @property
    def who(self) -> str:
        """The holder in words; all of it is text that others have written."""
        place = f"{self.user}@{self.host}, process {self.pid}" if self.host else "unknown"
        return f"invocation {brief(self.invocation) or 'unknown'} ({place}) since {self.since or 'an unknown time'}"

    def age(self, now: datetime) -> float:
        """Seconds since it was renewed, by this machine's clock, which may be wrong: for telling, not for taking."""
        try:
            renewed = datetime.strptime(self.renewed, TIME).replace(tzinfo=now.tzinfo)
        except ValueError:
            return math.inf
        return (now - renewed).total_seconds()

    def facts(self) -> JsonObject:
        """What is told of the holder."""
        names = ("user", "host", "pid", "since", "renewed")
        facts = {name: getattr(self, name) for name in names}
        return {"run": brief(self.run), "invocation": brief(self.invocation), **facts}


def run_problem(run: str) -> str | None:
    """A clause that follows what the name is of; None if a run may be called so."""
    if _RUN.fullmatch(run):
        return None
    return (
        f"is {brief(run)!r}, but it becomes the value of a label: use at most 63 letters, digits, dots, dashes and "
        "underscores, with a letter or digit at both ends"
    )


def run_slug(run: str) -> str:
    """The run's name as objects can be called: itself where possible, else without what they must not have.

    What would make two runs the same is told apart by a hash.
    """
    if _PLAIN.fullmatch(run):
        return run
    plain = re.sub(r"[^a-z0-9]+", "-", run.lower())[:54].strip("-")
    return f"{plain}-{hashlib.sha256(run.encode()).hexdigest()[:8]}"


def run_lease_name(run: str) -> str:
    return f"virtops-run-{run_slug(run)}"


def holder_identity(run: str, invocation: str) -> str:
    return f"{run}/{invocation}"


def parse_run_lease(lease: Object) -> RunLease | None:
    """None if nobody holds it."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    run, _slash, invocation = str(spec.get("holderIdentity") or "").rpartition("/")
    if not run and not invocation:
        return None
    annotations = metadata.get("annotations") or {}
    told = _told(annotations.get(HOLDER))
    return RunLease(
        namespace=metadata["namespace"],
        name=metadata["name"],
        run=run,
        invocation=invocation,
        user=brief(told.get("user", "")),
        host=brief(told.get("host", "")),
        pid=told["pid"] if isinstance(told.get("pid"), int) else 0,
        since=brief(spec.get("acquireTime") or ""),
        renewed=brief(spec.get("renewTime") or ""),
        seconds=spec.get("leaseDurationSeconds") or DURATION,
        version=str(metadata.get("resourceVersion", "")),
        renewer=str(annotations.get(RENEWER) or ""),
    )


def held_run_lease(
    before: Object | None, namespace: str, run: str, invocation: Invocation, now: datetime
) -> JsonObject:
    """The object to write so that the invocation holds the run from now on. `before`: what is there, of anybody."""
    identity = holder_identity(run, invocation.id)
    metadata: JsonObject = {"name": run_lease_name(run), "namespace": namespace}
    if before:
        metadata = dict(before["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    if before is None or (before.get("spec") or {}).get("holderIdentity") != identity:
        about = {key: value for key, value in asdict(invocation).items() if key != "id"}
        annotations[HOLDER] = json.dumps(about, sort_keys=True)
        annotations.pop(RENEWER, None)
    metadata["annotations"] = annotations
    metadata["labels"] = {**(metadata.get("labels") or {}), RUN_LABEL: run}
    spec = held_spec(before, identity, DURATION, now)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _told(text: object) -> Mapping[str, Any]:
    content = embedded(text)
    return content if isinstance(content, dict) else {}
