# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who made a node unschedulable, and who is done with it: what the node itself tells.

The collection marks the nodes it cordons with an annotation. The mark alone is not enough: somebody may have uncordoned
the node since and cordoned it again, and leaves the annotation where it is. So the API server's own notes of who wrote
the field last are asked as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object, embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief

CORDON_NOTE = "virtops.kubevirt/maintenance"
# Beside a cordon of somebody else, which has its own: of the run for which the node is taken all the same.
KEPT = "virtops.kubevirt/cordon-kept"
# The label of a node that a run is done with; its value is the run's name.
MAINTAINED = "virtops.kubevirt/maintained"


@dataclass(frozen=True, slots=True)
class Mark:
    """Content of both annotations, JSON. `since`: RFC 3339. invocation: of the run that has it, None outside of one."""

    owner: str
    since: str
    reason: str | None = None
    invocation: str | None = None

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True)
class Cordon:
    """`by`: the owner of a marked cordon, else the program that set the field. `marked`: made by this collection."""

    by: str
    since: str | None
    reason: str | None
    marked: bool

    @property
    def told(self) -> str:
        """Who made it, since when and why, in words of whoever did."""
        since = f" since {brief(self.since)}" if self.since else ""
        reason = f" ({brief(self.reason)})" if self.reason else ""
        return f"{brief(self.by)}{since}{reason}"

    def belongs_to(self, owner: str) -> bool:
        return self.marked and self.by == owner


def find_mark(node: Object, annotation: str = CORDON_NOTE) -> Mark | None:
    """The mark on a node, whether it is cordoned or not; None as well for an annotation that was tampered with."""
    text = (node["metadata"].get("annotations") or {}).get(annotation)
    try:
        content = embedded(text)
        return Mark(str(content["owner"]), str(content["since"]), content.get("reason"), content.get("invocation"))
    except (TypeError, KeyError):
        return None


def find_cordon(node: Object, manager: str) -> Cordon | None:
    """The cordon of a node, None if pods may come. `manager`: the name under which this collection writes fields."""
    if not (node.get("spec") or {}).get("unschedulable"):
        return None
    mark, writer = find_mark(node), _writer(node)
    if mark and writer.get("manager", manager) == manager:
        return Cordon(mark.owner, mark.since, mark.reason, marked=True)
    return Cordon(writer.get("manager") or "somebody unknown", writer.get("time"), None, marked=False)


def nodes_cordoned(nodes: Iterable[Object]) -> frozenset[str]:
    """Names of those that somebody has cordoned."""
    return frozenset(node["metadata"]["name"] for node in nodes if (node.get("spec") or {}).get("unschedulable"))


def nodes_done(nodes: Iterable[Object], run: str) -> frozenset[str]:
    """Names of those that a run is done with; none for an empty name."""
    known = (node["metadata"] for node in nodes)
    return frozenset(node["name"] for node in known if run and (node.get("labels") or {}).get(MAINTAINED) == run)


def _writer(node: Object) -> Object:
    """The entry of metadata.managedFields that owns spec.unschedulable, empty if none does."""
    for entry in node["metadata"].get("managedFields") or ():
        if "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}):
            owner: Object = entry
            return owner
    return {}
