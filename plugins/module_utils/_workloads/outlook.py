# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to say of a replica set: its VMIs as they are now, and what is missing, outdated, and fits nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object, has_ended

# What kube-scheduler adds about preemption and devices helps nobody to place a VM.
_AFTERTHOUGHTS = (" no new claims to deallocate", " preemption:")


@dataclass(frozen=True, slots=True)
class Replica:
    """`node`: empty as long as there is none. `message`: why it has no node or is not ready, empty if it is."""

    name: str
    node: str
    ready: bool
    message: str


def replica(vmi: Object) -> Replica:
    status = vmi.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = (conditions.get("Ready") or {}).get("status") == "True" and is_living(vmi)
    message = "" if ready else _message(status, conditions, going=not is_living(vmi))
    return Replica(vmi["metadata"]["name"], status.get("nodeName") or "", ready, message)


def is_living(vmi: Object) -> bool:
    """Whether it counts as a replica: it has not ended and is not being deleted."""
    return not has_ended(vmi) and not vmi["metadata"].get("deletionTimestamp")


def all_ready(vmis: Sequence[Object], replicas: int) -> bool:
    """Whether there are as many as wanted, all of them ready, and none is left over."""
    return len(vmis) == replicas and all(replica(vmi).ready for vmi in vmis)


def _message(status: Object, conditions: Mapping[str, Object], *, going: bool) -> str:
    if going:
        return "it is on its way out"
    for kind in ("PodScheduled", "Synchronized", "Ready"):
        condition = conditions.get(kind) or {}
        if condition.get("status") == "False" and condition.get("message"):
            message = str(condition["message"])
            for afterthought in _AFTERTHOUGHTS:
                message = message.partition(afterthought)[0]
            return message
    return f"it is {status.get('phase') or 'not started'}"


_TO_COME = Replica("", "", False, "")
# Of the firmware: each VMI gets its own, unless the template gives one to all.
_UNIQUE = ("uuid", "serial")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a new VMI would go. `node`: empty if none fits; then `message` says why, in kube-scheduler's words."""

    node: str
    message: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """`spec`: of the replica set as it is to be. `vmis`: those it controls.

    `fresh`: a new VMI as the server admits it, None as long as it admits none. `expected`: where replicas without a
    node would go, first the VMIs that are there, then the missing ones. `successors`: where new VMIs would go if all
    outdated ones were replaced. Both are empty as long as nobody has looked.
    """

    spec: Object
    vmis: Sequence[Object]
    fresh: Object | None
    expected: Sequence[Place] = ()
    successors: Sequence[Place] = ()

    @property
    def living(self) -> list[Object]:
        return [vmi for vmi in self.vmis if is_living(vmi)]

    @property
    def missing(self) -> int:
        """How many replicas are still to be created."""
        return max(0, int(self.spec["replicas"]) - len(self.living))

    @property
    def waiting(self) -> list[Object]:
        """VMIs without a node. Those of a set that shrinks may well be the ones that go."""
        shrinks = len(self.living) > self.spec["replicas"]
        return [] if shrinks else [vmi for vmi in self.living if not replica(vmi).node]

    @property
    def outdated(self) -> list[Object] | None:
        """VMIs that the template would make different now; None if that is not known."""
        if self.fresh is None:
            return None
        return [vmi for vmi in self.living if is_outdated(vmi, self.fresh, self.spec["template"])]

    def replicas(self) -> list[tuple[Replica, Place | None]]:
        """All that there are and will be, with the place that those without a node can expect."""
        expected = iter(self.expected)
        asked = {vmi["metadata"]["name"] for vmi in self.waiting} | {_TO_COME.name}
        known = [*map(replica, self.living), *[_TO_COME] * self.missing]
        return [(one, next(expected, None) if one.name in asked else None) for one in known]

    def problems(self) -> Iterator[str]:
        """Clauses on replicas that fit nowhere."""
        of_all = f"of {self.spec['replicas']} replicas"
        yield from _clauses(self.expected, f"{of_all} cannot be placed now")
        yield from _clauses(self.successors, f"{of_all} are outdated and could not be replaced now")


def _clauses(found: Sequence[Place], trouble: str) -> Iterator[str]:
    reasons = Counter(place.message for place in found if not place.node)
    for reason, count in reasons.items():
        yield f"{count} {trouble}: {reason.rstrip('.')}"


def is_outdated(vmi: Object, fresh: Object, template: Object) -> bool:
    """Whether a VMI differs from `fresh`, an admitted new one of the template, in anything the template decides on.

    A replica set never changes or replaces a VMI because of its template. KubeVirt's webhook fills a new VMI up with
    defaults, so a running VMI is compared with a new one after admission, not with the template.
    """
    have, wanted = vmi["metadata"], fresh["metadata"]
    marks = any(
        (have.get(kind) or {}).get(key) != value
        for kind in ("labels", "annotations")
        for key, value in (wanted.get(kind) or {}).items()
    )
    given = _firmware(template.get("spec") or {})
    return marks or _comparable(vmi["spec"], given) != _comparable(fresh["spec"], given)


def _comparable(spec: Object, given: Object) -> JsonObject:
    own = {key: value for key, value in _firmware(spec).items() if key not in _UNIQUE or key in given}
    return {**spec, "domain": {**(spec.get("domain") or {}), "firmware": own}}


def _firmware(spec: Object) -> Object:
    return (spec.get("domain") or {}).get("firmware") or {}
