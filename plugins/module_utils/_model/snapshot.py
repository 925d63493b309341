# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as a value: lists of objects in the API's shape, read from a snapshot file or given in plain form.

The plain form is `{"nodes": [...], "pods": [...], "vmis": [...], ...}` with items as the API gives them. A snapshot
file is the same with a header beside the lists (see snapshot_format.py), so one reader takes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    JsonObject,
    Lists,
    Object,
    listing_key,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief, printable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import (
    Misfit,
    described,
    each,
    every,
    record,
    text,
    whole,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS, Kind

# Raised whenever a field that readers rely on is added, moved or dropped; a reader takes no other version.
SCHEMA_VERSION = 1
HEADER = "snapshot"

Made = TypeVar("Made")


_HEADER = record(
    "taken_at sha256 cluster counts missing_kinds",
    texts="taken_at sha256",
    cluster=record(texts="uid kubernetes_version kubevirt_version"),
    counts=every(whole),
    missing_kinds=each(text),
)


class SnapshotError(ExpectedError, ValueError):
    """Given data is no snapshot: one sentence that says what is wrong with which part, and what to give instead."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster: `uid` of its namespace kube-system, and the versions that answer for its behaviour."""

    uid: str
    kubernetes_version: str
    kubevirt_version: str


@dataclass(frozen=True, slots=True)
class Header:
    """What a snapshot says of itself.

    `taken_at`: RFC 3339 in UTC, when reading began. `sha256`: of the content below the header, so two snapshots of an
    unchanged cluster share it. `counts`: items by list. `missing_kinds`: lists that are empty because the cluster does
    not serve their API, or does not show them.
    """

    schema_version: int
    taken_at: str
    sha256: str
    cluster: Cluster
    counts: Mapping[str, int]
    missing_kinds: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {**asdict(self), "missing_kinds": list(self.missing_kinds)}

    def same_content(self, other: Header | None) -> bool:
        """Whether two snapshots say the same, whenever they were taken."""
        return other is not None and (self.sha256, self.cluster, self.missing_kinds) == (
            other.sha256,
            other.cluster,
            other.missing_kinds,
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`lists` has every known name; a list that was not given is empty. `header` is None for the plain form.

    Nobody changes the lists while it lives.
    """

    lists: Lists
    header: Header | None = None
    _made: dict[Callable[[Lists], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, make: Callable[[Lists], Made]) -> Made:
        """What `make` makes of the lists, the same for all who ask; whoever changes it undoes that.

        It is kept for as long as the snapshot. Raises what `make` raises, which is then asked anew.
        """
        if make not in self._made:
            self._made[make] = make(self.lists)
        found: Made = self._made[make]
        return found

    @property
    def nodes(self) -> Mapping[str, Object]:
        """By name."""
        return self.once(_nodes_by_name)

    @property
    def pods_by_node(self) -> Mapping[str, list[Object]]:
        """By the names of their nodes, empty for those that have none."""
        return self.once(_pods_by_node)


def _nodes_by_name(lists: Lists) -> dict[str, Object]:
    return {node["metadata"]["name"]: node for node in lists.get("nodes") or ()}


def _pods_by_node(lists: Lists) -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for pod in lists.get("pods") or ():
        found.setdefault(pod["spec"].get("nodeName") or "", []).append(pod)
    return found


def from_plain(given: object) -> Snapshot:
    """Check and take lists in plain form, or the decoded content of a snapshot file. Raises SnapshotError."""
    if not isinstance(given, Mapping):
        raise SnapshotError(
            f"A snapshot is expected, got {described(given)}. Give what cluster_snapshot returned, the path of its "
            'file, or lists of objects as in {"nodes": [...], "pods": [...]}.'
        )
    header = parse_header(given[HEADER]) if HEADER in given else None
    names = [name for name in given if name != HEADER]
    for name in names:
        if name not in BY_NAME:
            raise SnapshotError(f"A snapshot has no list {name!r}. {_advice(name, given)}")
    if header is None and not names:
        raise SnapshotError('The snapshot is empty. Give at least one list of objects, as in {"nodes": [...]}.')
    lists = {kind.name: _items(kind, given.get(kind.name, [])) for kind in KINDS}
    if header is None:
        # What a header vouches for comes from an API server, which has seen to the types.
        for kind in KINDS:
            for item in lists[kind.name]:
                require_shape(kind, item)
        # In the order of a snapshot's file: what is made of them does not depend on how they are told.
        lists = {name: sorted(items, key=listing_key) for name, items in lists.items()}
    return Snapshot(lists, header)


def parse_header(given: object) -> Header:
    """Check and take a decoded header. Raises SnapshotError."""
    fields: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    version = fields.get("schema_version")
    if version != SCHEMA_VERSION:
        raise SnapshotError(
            f"The snapshot has schema version {version!r}, but this release reads version {SCHEMA_VERSION} only. "
            "Take the snapshot again with the release in use."
        )
    try:
        _HEADER(fields)
        return Header(
            schema_version=version,
            taken_at=fields["taken_at"],
            sha256=fields["sha256"],
            cluster=Cluster(**fields["cluster"]),
            counts=dict(fields["counts"]),
            missing_kinds=tuple(fields["missing_kinds"]),
        )
    except (Misfit, TypeError) as error:
        problem = f"{error.where} {error.problem}".strip() if isinstance(error, Misfit) else str(error)
        raise SnapshotError(
            f"The snapshot's header is damaged ({printable(problem)}). Take the snapshot again."
        ) from error


def require_shape(kind: Kind, item: Object) -> None:
    """Raise SnapshotError for an object with a field of another type than the API's."""
    try:
        kind.shape(item)
    except Misfit as error:
        field = f"{printable(error.where)} " if error.where else "it "
        raise SnapshotError(
            f"{kind.kind} {_title(item)} cannot be read: {field}{error.problem}. Correct it, or give the object as "
            "`kubectl get -o json` prints it."
        ) from None


def _items(kind: Kind, given: object) -> Sequence[Object]:
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        hint = "Give its `items`." if isinstance(given, Mapping) and "items" in given else "Give a list of objects."
        raise SnapshotError(f"`{kind.name}` of a snapshot is a list, got {described(given)}. {hint}")
    for index, item in enumerate(given):
        if not isinstance(item, Mapping) or not _name(item):
            raise SnapshotError(
                f"Item {index} of `{kind.name}` is no object of the API: it is {described(item)} without "
                "metadata.name. Give the items as `kubectl get -o json` prints them."
            )
        named = item.get("kind") or kind.kind
        if isinstance(named, str) and named != kind.kind:
            raise SnapshotError(
                f"Item {index} of `{kind.name}`, {_title(item)}, is a {brief(named)}, not a {kind.kind}. "
                "Put it into the list of its kind."
            )
    return given


def _name(item: Object) -> str:
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def _title(item: Object) -> str:
    metadata = item.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return brief("/".join(part for part in (named.get("namespace"), named.get("name")) if isinstance(part, str)))


def _advice(name: object, given: Mapping[str, Any]) -> str:
    if "items" in given:
        return 'It looks like a single list of the API: put its `items` under their name, as in {"nodes": [...]}.'
    near = get_close_matches(str(name), BY_NAME, n=1)
    return f"Do you mean {near[0]!r}?" if near else f"Its lists are {', '.join(BY_NAME)}."
