# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Lease of a run: which invocation of it may act, from where, and until when.

A run is named by people and outlives each start of it; an invocation is one such start, a process of ansible-playbook.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import RUN_LABEL
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.node_lease import TIME, held_spec
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

HOLDER, RENEWER = "virtops.kubevirt/holder", "virtops.kubevirt/renewer"
# In seconds. A holder that fails to renew twice in a row has still time to notice before others may take the Lease.
DURATION, RENEWAL = 30, 10

_RUN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
# A subdomain by RFC 1123, as names of objects have to be.
_PLAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


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

    def facts(self) -> dict[str, Any]:
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
) -> dict[str, Any]:
    """The object to write so that the invocation holds the run from now on. `before`: what is there, of anybody."""
    identity = holder_identity(run, invocation.id)
    metadata: dict[str, Any] = {"name": run_lease_name(run), "namespace": namespace}
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
