# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed import build
from testbed.build import MODULES, GoModule
from testbed.gotoolchain import find_go
from testbed.home import TestbedError

# A program without dependencies, which compiles in a moment.
TINY = "package main\n\nfunc main() {}\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoModule:
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "go.mod").write_text("module tiny\n\ngo 1.26\n")
    (folder / "main.go").write_text(TINY)
    return GoModule("tiny", (".",), parent=tmp_path)


def test_the_key_follows_what_is_built_from(module: GoModule) -> None:
    key = module.key()
    (module.folder / "notes.txt").write_text("no source")
    assert module.key() == key
    (module.folder / "main.go").write_text(TINY + "// changed\n")
    assert module.key() != key
    (module.folder / "main.go").write_text(TINY)
    assert module.key() == key
    assert GoModule("tiny", (".",), "-s", parent=module.parent).key() != key


def test_keys_of_all_parts_are_stable_and_differ() -> None:
    keys = {module.name: module.key() for module in MODULES}
    assert len(set(keys.values())) == len(MODULES)
    assert {module.name: module.key() for module in MODULES} == keys


def test_every_binary_has_one_place() -> None:
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "virt-api", "virt-controller", "manifests", "kwok"):
        assert build.binary(name).name == name
    with pytest.raises(KeyError):
        build.binary("kubelet")


def test_a_build_is_made_once_and_leaves_only_its_result(module: GoModule) -> None:
    go = find_go()
    build.build(go, module)
    made = module.output / "tiny"
    assert json.loads((module.output / build.FIGURES).read_text())["seconds"] > 0
    before = made.stat().st_mtime_ns
    build.build(go, module)
    assert made.stat().st_mtime_ns == before
    assert [path.name for path in module.output.parent.iterdir()] == [module.output.name]


def test_a_failed_build_shows_the_compilers_words_and_leaves_no_output(module: GoModule) -> None:
    (module.folder / "main.go").write_text("package main\n\nfunc main() { undefinedName() }\n")
    with pytest.raises(TestbedError, match=r"(?s)Building tiny failed with exit code 1:.*undefinedName"):
        build.build(find_go(), module)
    assert not module.output.exists()
