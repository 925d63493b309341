# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The snapshot's file: the same bytes for the same objects, all of it read back, every damage found.

Decoding with shared parts gives what json gives, only less of it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import (
    Cluster,
    SnapshotError,
    from_plain,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import (
    Document,
    decode,
    decode_header,
    decode_shared,
    document,
    encode_all,
    header_of,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS

Object = dict[str, Any]
Lists = dict[str, list[Object]]

CLUSTER = Cluster("u1", "v1.36.3", "v1.8.4")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
names = st.text(min_size=1, max_size=4)
objects = st.builds(
    lambda name, namespace, spec: {"metadata": {"name": name, "namespace": namespace}, "spec": spec},
    names,
    st.none() | names,
    json_values,
)
lists = st.dictionaries(st.sampled_from([kind.name for kind in KINDS]), st.lists(objects, max_size=4), max_size=4)


def written(given_lists: Lists, taken_at: str = "2026-01-01T00:00:00Z") -> Document:
    encoded = {name: encode_all(items) for name, items in given_lists.items()}
    return document(encoded, cluster=CLUSTER, taken_at=taken_at, missing_kinds=["migrationpolicies"])


def content(given_lists: Lists) -> bytes:
    return b"".join(written(given_lists).chunks())


def machine(password: str, version: str, node: str = "n1") -> Object:
    metadata = {"name": "db", "namespace": "shop", "resourceVersion": version}
    disk = {"name": "init", "cloudInitNoCloud": {"userData": f"password: {password}"}}
    return {"metadata": metadata, "spec": {"volumes": [disk]}, "status": {"nodeName": node}}


def test_nothing_tells_by_its_hash_what_a_snapshot_leaves_out() -> None:
    """Secrets of guests could be guessed by it."""
    one, other, moved = (
        header_of({"vmis": [item]}, cluster=CLUSTER, taken_at="2026-01-01T00:00:00Z")
        for item in (machine("one", "1"), machine("other", "2"), machine("one", "1", "n2"))
    )
    assert (one == other, one.same_content(moved), one.counts["vmis"]) == (True, False, 1)


@given(lists)
def test_what_is_written_is_read(given_lists: Lists) -> None:
    snapshot = decode(content(given_lists))
    assert snapshot.header == written(given_lists).header
    for kind in KINDS:
        read, expected = snapshot.lists[kind.name], given_lists.get(kind.name, [])
        assert sorted(map(json.dumps, read)) == sorted(json.dumps(item, sort_keys=True) for item in expected)


@given(lists, st.randoms(use_true_random=False))
def test_the_order_of_reading_leaves_no_trace(given_lists: Lists, random: Any) -> None:
    shuffled = {name: random.sample(items, len(items)) for name, items in reversed(given_lists.items())}
    assert content(shuffled) == content(given_lists)


@given(lists)
def test_items_are_in_order_of_namespace_and_name(given_lists: Lists) -> None:
    for items in decode(content(given_lists)).lists.values():
        keys = [(item["metadata"]["namespace"] or "default", item["metadata"]["name"]) for item in items]
        assert keys == sorted(keys)


@pytest.mark.parametrize("namespaces", [("a", "a-b"), (None, "default-b"), ("b", None)])
def test_lists_in_plain_form_are_in_the_order_of_a_file(namespaces: tuple[str | None, ...]) -> None:
    """As strings with a slash, a-b/pod comes before a/pod."""
    found = [
        {"metadata": {"name": name, **({"namespace": space} if space else {})}, "spec": {}}
        for name in ("y", "x")
        for space in namespaces
    ]
    assert from_plain({"pods": found}).lists == decode(content({"pods": found})).lists


@given(lists)
def test_one_object_stands_on_one_line(given_lists: Lists) -> None:
    text = content(given_lists).split(b"\n")
    objects_at = [line for line in text if line.startswith(b"{")]
    assert len(objects_at) == 1 + sum(map(len, given_lists.values()))


@given(lists, lists)
def test_the_digest_tells_contents_apart_and_nothing_else(one: Lists, other: Lists) -> None:
    first, second = written(one), written(other, taken_at="2027-01-01T00:00:00Z")
    same_content = {**{name: encode_all(items) for name, items in one.items() if items}} == {
        name: encode_all(items) for name, items in other.items() if items
    }
    assert (first.header.sha256 == second.header.sha256) is same_content
    assert first.header.same_content(second.header) is same_content


def test_the_digest_is_that_of_all_lines_but_the_first() -> None:
    data = content({"nodes": [{"metadata": {"name": "n1"}}]})
    first, rest = data.split(b"\n", 1)
    assert decode_header(first).sha256 == hashlib.sha256(rest).hexdigest()


@given(lists, st.data())
def test_a_changed_byte_below_the_header_is_found(given_lists: Lists, data: st.DataObject) -> None:
    good = content(given_lists)
    position = data.draw(st.integers(good.index(b"\n") + 1, len(good) - 1))
    bad = bytearray(good)
    bad[position] ^= 1
    with pytest.raises(SnapshotError):
        decode(bytes(bad))


@given(lists, st.data())
def test_a_cut_file_is_found(given_lists: Lists, data: st.DataObject) -> None:
    good = content(given_lists)
    with pytest.raises(SnapshotError):
        decode(good[: data.draw(st.integers(0, len(good) - 1))])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "It is not JSON"),
        (b"\xff\xfe", "It is not JSON"),
        (b"[]", "A snapshot is expected, got a list"),
        (b'{"snapshot":{"schema_version":2}}', "schema version 2, but this release reads version 1 only"),
        (b'{"snapshot":[]}', "schema version None"),
        (b'{"snapshot":{"schema_version":1}}', "header is damaged"),
    ],
)
def test_other_content_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(SnapshotError, match=words):
        decode(data)


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b'{"snapshot":3},', b"\xff"])
def test_other_headers_are_refused(line: bytes) -> None:
    with pytest.raises(SnapshotError):
        decode_header(line)


def test_lists_in_plain_form_are_read_from_a_file_too() -> None:
    snapshot = decode(b'{"nodes": [{"metadata": {"name": "n1"}}]}')
    assert snapshot.header is None
    assert snapshot.lists["nodes"][0]["metadata"]["name"] == "n1"


shared_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=2), children, max_size=4),
    max_leaves=40,
)


@given(shared_values)
def test_what_is_decoded_with_shared_parts_is_the_same(value: Any) -> None:
    text = json.dumps(value)
    # Compared as text, too, as 1, 1.0 and true are equal.
    assert json.dumps(decode_shared(text)) == text
    assert decode_shared(text) == value


# As in the API: what stands in a list is no list itself.
texts = st.text(max_size=2)
shared_objects: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(texts, texts | st.none() | st.booleans()),
    lambda children: st.dictionaries(texts, texts | children | st.lists(texts | children, max_size=3), max_size=3),
    max_leaves=20,
)


@given(shared_objects)
def test_equal_objects_are_decoded_as_one(value: dict[str, Any]) -> None:
    first, second = decode_shared(json.dumps([value, value]))
    assert first is second


def test_what_is_decoded_empty_keeps_its_type() -> None:
    assert decode_shared('{"a": {}, "b": [], "c": "", "d": [[], {}]}') == {"a": {}, "b": [], "c": "", "d": [[], {}]}


def test_what_is_no_json_is_not_decoded() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        decode_shared(b'{"a"')
