# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What everybody has to know of the API's objects: shapes in which they travel, words that many share, and their names.

Nobody changes an object that was given: what is to be different is a copy that shares the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Object = Mapping[str, Any]
# As it was read for its reader alone, or is being written.
JsonObject = dict[str, Any]
# By the names of a snapshot's lists, as in `nodes`; one that is missing is empty.
Lists = Mapping[str, Sequence[Object]]

# Kinds of what runs here, and of what makes it run.
POD, VMI, VM = "Pod", "VirtualMachineInstance", "VirtualMachine"
VMI_REPLICA_SET = "VirtualMachineInstanceReplicaSet"
# Phases of pods, VMIs and migrations that have come to their end.
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
_FINISHED = frozenset({SUCCEEDED, FAILED})
# The label of a node that no other node shares.
HOSTNAME: Final = "kubernetes.io/hostname"
# Often seen in its place: a label of no node, which nothing looks at.
MISTAKEN_HOSTNAME: Final = "topology.kubernetes.io/hostname"
# The parts of an affinity: what a pod must find where it is placed, and what it would rather find there.
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def embedded(text: object) -> Any:
    """What a text says that should be JSON, as in an annotation. Anybody may have written it: None if it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def controller(item: Object) -> Object | None:
    """The owner reference of its controller, of which there is one at most."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def is_finished(phase: object) -> bool:
    """Whether what has this phase, a pod, VMI or migration, has come to its end."""
    return phase in _FINISHED


def has_ended(item: Object) -> bool:
    """The same of a pod, VMI or migration itself."""
    return is_finished((item.get("status") or {}).get("phase"))


def listing_key(item: Object) -> tuple[str, str]:
    """Namespace and name, by which objects of a kind are ordered wherever they come from."""
    metadata = item["metadata"]
    return metadata.get("namespace") or "default", metadata["name"]


def name_problem(name: str) -> str | None:
    """A clause that follows what the name is of; None if an object may be named so.

    Not so is what would make a path of the API mean something else. Follows IsValidPathSegmentName in
    k8s.io/apimachinery/pkg/api/validation/path/name.go. To quote such a name is not enough: the server looks at the
    path after it has taken the quotes away.
    """
    if not name.strip():
        return "is empty"
    if name in (".", "..") or "/" in name or "%" in name:
        return f"is {name!r}, but no object can be named so"
    return None


def name_problems(params: Mapping[str, Any], *options: str) -> Iterator[str]:
    """One clause for each of these options that names no object."""
    found = ((option, name_problem(params[option])) for option in options)
    yield from (f"{option} {problem}" for option, problem in found if problem)
