# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A snapshot from whatever people hand over: a handle, a path, lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import (
    find_nodes,
    load,
    write,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Cluster, SnapshotError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import document, encode_all

NODE = {"metadata": {"name": "n1"}}


def handle(path: Path, *names: str) -> dict[str, Any]:
    nodes = encode_all({"metadata": {"name": name}} for name in names)
    written = document({"nodes": nodes}, cluster=Cluster("u", "v1", "v1"), taken_at="2026-01-01T00:00:00Z")
    return {"snapshot_path": str(path), "size_bytes": write(path, written), **written.header.to_json()}


def test_a_handle_a_path_and_lists_give_the_same(tmp_path: Path) -> None:
    given = handle(tmp_path / "a.json", "n1")
    paths: list[Any] = [given, given["snapshot_path"], tmp_path / "a.json", {"snapshot_path": given["snapshot_path"]}]
    assert [load(source).lists for source in paths] == [load({"nodes": [NODE]}).lists] * 4


def test_a_registered_result_has_more_in_it(tmp_path: Path) -> None:
    assert load({**handle(tmp_path / "a.json", "n1"), "changed": True, "failed": False}).lists["nodes"] == [NODE]


def test_the_home_folder_may_be_abbreviated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    handle(tmp_path / "a.json", "n1")
    assert load("~/a.json").lists["nodes"] == [NODE]


def test_a_handle_of_a_file_that_was_replaced(tmp_path: Path) -> None:
    old = handle(tmp_path / "a.json", "n1")
    handle(tmp_path / "a.json", "n2")
    with pytest.raises(SnapshotError, match="another run has replaced it, or cluster_snapshot ran in check mode"):
        load(old)


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"Cannot read the snapshot \(.*a.json\): No such file or directory. Check"):
        load(tmp_path / "a.json")


def test_a_file_that_is_no_snapshot_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("text")
    with pytest.raises(SnapshotError, match=r"a.json: It is not JSON"):
        load(tmp_path / "a.json")


@pytest.mark.parametrize("path", [None, 5, ["a"]])
def test_a_handle_without_a_usable_path(path: Any) -> None:
    with pytest.raises(SnapshotError, match="snapshot_path"):
        load({"snapshot_path": path})


def test_the_nodes_are_read_without_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    handle(path, "n1", "n2")
    assert find_nodes(path) == load(path).lists["nodes"]
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'\n"vmis"')] + b"\nrubbish")
    assert [node["metadata"]["name"] for node in find_nodes(path) or ()] == ["n1", "n2"]
    handle(path)
    assert find_nodes(path) == []


@pytest.mark.parametrize("content", [None, b"", b"text", b'{"nodes": []}'])
def test_where_there_is_no_snapshot_there_are_no_nodes(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    assert find_nodes(path) is None


def test_nodes_that_are_no_json_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    handle(path, "n1")
    for wrong in (b"{", b"[" * 100_000):
        path.write_bytes(path.read_bytes().replace(b'{"metadata"', wrong, 1))
        assert find_nodes(path) is None
