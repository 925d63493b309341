# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The snapshot's file: JSON whose first line is the header and whose other lines hold one object each.

    {"snapshot":{"schema_version":1,"taken_at":"…","sha256":"…",…},
    "nodes":[
    {…},
    {…}
    ],
    "pods":[…]}

The header's sha256 is that of all bytes below the first line: a file that was cut or edited is found out, and whether
two snapshots differ is told by their headers alone (`tail -n +2 FILE | sha256sum`). The bytes depend on the objects
only, not on the order in which they were read.

What is decoded shares equal parts. The pods of a cluster are made from a few templates: their affinity, tolerations and
containers repeat by the thousand. Sharing them takes a quarter of the memory, and makes comparing two pods mostly a
comparison of pointers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object, listing_key
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import (
    HEADER,
    SCHEMA_VERSION,
    Cluster,
    Header,
    Snapshot,
    SnapshotError,
    from_plain,
    parse_header,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME, KINDS

_SEPARATOR = b",\n"


@dataclass(frozen=True, slots=True)
class Document:
    """A snapshot ready to be written. `lists` holds encoded items: text takes a fifth of the memory of objects."""

    header: Header
    lists: Mapping[str, Sequence[bytes]]

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the file."""
        yield f'{{"{HEADER}":'.encode() + encode(self.header.to_json()) + _SEPARATOR
        yield from _body(self.lists)

    def decoded(self, *names: str) -> Snapshot:
        """The snapshot with the named lists only; the others are empty."""
        lists: dict[str, Sequence[Object]] = {kind.name: () for kind in KINDS}
        lists |= {name: [json.loads(line) for line in self.lists[name]] for name in names}
        return Snapshot(lists, self.header)


def encode(item: Any) -> bytes:
    """One object on one line; equal objects give equal bytes.

    In ASCII: a single wider character would make Python keep the whole file's text at twice or four times its size.
    """
    return json.dumps(item, separators=(",", ":"), sort_keys=True).encode("ascii")


def encode_all(items: Iterable[Object]) -> list[bytes]:
    """Objects by namespace and name, each encoded."""
    lines = [(listing_key(item), encode(item)) for item in items]
    return [line for _key, line in sorted(lines)]


def document(
    lists: Mapping[str, Sequence[bytes]], *, cluster: Cluster, taken_at: str, missing_kinds: Iterable[str] = ()
) -> Document:
    """A document of encoded lists, each in the order of `encode_all`."""
    digest = hashlib.sha256()
    for chunk in _body(lists):
        digest.update(chunk)
    counts = {kind.name: len(lists.get(kind.name, ())) for kind in KINDS}
    missing = tuple(sorted(missing_kinds))
    return Document(Header(SCHEMA_VERSION, taken_at, digest.hexdigest(), cluster, counts, missing), lists)


def header_of(lists: Mapping[str, Iterable[Object]], *, cluster: Cluster, taken_at: str) -> Header:
    """Of a snapshot that would have these objects alone, as the API gives them; lists go by their names in a snapshot.

    What a snapshot leaves out, secrets of guests among it, does not count.
    """
    encoded = {name: encode_all(map(BY_NAME[name].project, items)) for name, items in lists.items()}
    return document(encoded, cluster=cluster, taken_at=taken_at).header


def decode(content: bytes) -> Snapshot:
    """The snapshot, or lists in plain form, in a file's content, to be read only. Raises SnapshotError."""
    try:
        given = decode_shared(content)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"It is not JSON ({error}). Take the snapshot again.") from error
    snapshot = from_plain(given)
    body = memoryview(content)[content.find(b"\n") + 1 :]
    if snapshot.header and snapshot.header.sha256 != hashlib.sha256(body).hexdigest():
        raise SnapshotError(
            "Its content is not what its header vouches for: the file was changed after it was taken. Take the "
            f"snapshot again, or remove the key `{HEADER}` to use edited lists in plain form."
        )
    return snapshot


def decode_header(first_line: bytes) -> Header:
    """The header in the first line of a snapshot's file. Raises SnapshotError."""
    try:
        given = json.loads(first_line.rstrip().removesuffix(b",") + b"}")
        return parse_header(given[HEADER])
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError("It does not begin with a snapshot's header. Take the snapshot again.") from error


def decode_list(lines: Iterable[bytes], name: str) -> Iterator[Object]:
    """One list, by the lines of a snapshot's file. No line after it is read, and none before it is understood.

    Raises SnapshotError.
    """
    given, begin = iter(lines), f'"{name}":['.encode()
    if not any(line.rstrip() == begin for line in given):
        raise SnapshotError(f"It has no list `{name}`. Take the snapshot again.")
    for line in given:
        encoded = line.rstrip().removesuffix(b",")
        if encoded in (b"]", b"]}"):
            return
        if encoded:
            try:
                yield json.loads(encoded)
            except (ValueError, RecursionError) as error:
                raise SnapshotError(f"It is not JSON ({error}). Take the snapshot again.") from error
    raise SnapshotError(f"Its list `{name}` has no end. Take the snapshot again.")


def _body(lists: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    last = KINDS[-1].name
    for kind in KINDS:
        lines = lists.get(kind.name, ())
        yield f'"{kind.name}":[\n'.encode()
        yield _SEPARATOR.join(lines)
        yield b"\n]}\n" if kind.name == last else b"\n],\n"


def decode_shared(text: str | bytes) -> Any:
    """As json.loads with equal parts as one object. For reading only: a change to one would show in others.

    About 1.5 microseconds for each object of the JSON. Raises ValueError.
    """
    return json.loads(text, object_hook=_Shared().part)


class _Shared:
    """Tables of what was decoded so far. Numbers are not shared, nor lists in lists; the API has few of them.

    The parts of an object are decoded before it and shared already, so two objects are equal if their parts are the
    same. That is told by the parts' ids; these stay unique, as the object that a table holds keeps its parts alive.
    """

    def __init__(self) -> None:
        self._strings: dict[str, str] = {}
        self._lists: dict[tuple[int, ...], list[Any]] = {}
        self._objects: dict[tuple[str | int, ...], JsonObject] = {}

    def part(self, new: JsonObject) -> JsonObject:
        string = self._strings.setdefault
        for name, value in new.items():
            if isinstance(value, str):
                new[name] = string(value, value)
            elif isinstance(value, list):
                items = [string(item, item) if isinstance(item, str) else item for item in value]
                new[name] = self._lists.setdefault(tuple(map(id, items)), items)
        return self._objects.setdefault((*new, *map(id, new.values())), new)
