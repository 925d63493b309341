# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module does when all goes well: the file, the handle, check mode, diff, idempotence."""

from __future__ import annotations

import json
import stat
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS
from ansible_collections.virtops.kubevirt.plugins.modules.cluster_snapshot import main

from unit.plugins.support.fake_api import Answer, FakeApi, Request, refusal
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.objects import migration, node, pod, vmi


class Take(Protocol):
    """Run the module; whatever is not given is the working connection and the usual file."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "snapshots" / "cluster.json"


@pytest.fixture
def take(run_module: ModuleRunner, connection: dict[str, Any], file: Path) -> Take:
    file.parent.mkdir()
    return partial(run_module, main, **connection, path=str(file))


def test_the_file_holds_the_cluster_and_the_handle_tells_of_it(take: Take, api: FakeApi, file: Path) -> None:
    api.lists |= {"nodes": [node("n1")], "pods": [pod("b"), pod("a")], "vmis": [vmi("v", on="n1")]}
    result = take()
    content = json.loads(file.read_text())
    assert [item["metadata"]["name"] for item in content["pods"]] == ["a", "b"]
    assert set(content) == {"snapshot", *(kind.name for kind in KINDS)}
    assert content["snapshot"].items() <= result.items()
    assert result["changed"]
    assert result["snapshot_path"] == str(file)
    assert result["size_bytes"] == file.stat().st_size
    assert result["counts"] | {"nodes": 1, "pods": 2, "vmis": 1} == result["counts"]
    assert result["cluster"] == {
        "uid": "uid-kube-system",
        "kubernetes_version": "v1.36.3",
        "kubevirt_version": "v1.8.4",
    }
    assert result["missing_kinds"] == []


def test_the_file_is_private_and_alone(take: Take, file: Path) -> None:
    take()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("check", [False, True])
def test_the_folder_is_made_if_it_is_wanted(take: Take, file: Path, check: bool) -> None:
    file.parent.rmdir()
    assert take(create_folder=True, check=check)["changed"]
    assert (file.exists(), file.parent.exists()) == (not check, not check)
    if not check:
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert not take(create_folder=True)["changed"]


def test_secrets_and_noise_stay_out(take: Take, api: FakeApi, file: Path) -> None:
    api.lists |= {"pods": [pod("a")], "nodes": [node("n1")]}
    take()
    text = file.read_text()
    assert not any(word in text for word in ("PASSWORD", "secret", "managedFields", "resourceVersion", "eartbeat"))


def test_lists_are_read_in_pages_at_the_newest_state(take: Take, api: FakeApi) -> None:
    api.lists["pods"] = [pod(f"p{number}") for number in range(7)]
    result = take(page_size=3)
    queries = [request.query for request in api.asked("pods")]
    assert queries == [{"limit": "3"}, {"limit": "3", "continue": "3"}, {"limit": "3", "continue": "6"}]
    assert result["counts"]["pods"] == 7


def test_finished_migrations_are_left_out(take: Take, api: FakeApi) -> None:
    api.lists["migrations"] = [migration(str(phase), phase) for phase in ("Succeeded", "Failed", "Running", None)]
    assert take()["counts"]["migrations"] == 2


def test_a_list_whose_page_expired_is_read_again_from_its_start(take: Take, api: FakeApi, file: Path) -> None:
    api.lists["pods"] = [pod("old"), pod("gone")]

    def expire_once(request: Request) -> Answer | None:
        if "continue" in request.query and len(api.asked("pods")) == 2:
            api.lists["pods"] = [pod("new")]
            return refusal(410, "Expired", "The provided continue parameter is too old")
        return None

    api.fail("pods", expire_once)
    take(page_size=1)
    assert [item["metadata"]["name"] for item in json.loads(file.read_text())["pods"]] == ["new"]


def test_kinds_a_cluster_may_lack_are_reported(take: Take, api: FakeApi, file: Path) -> None:
    api.unserve("migrationpolicies")
    result = take()
    assert result["missing_kinds"] == ["migrationpolicies"]
    assert json.loads(file.read_text())["migrationpolicies"] == []


def test_kinds_that_are_dispensable_and_may_not_be_listed_are_missing(take: Take, api: FakeApi) -> None:
    api.forbidden = {kind.name for kind in KINDS if kind.dispensable}
    assert set(take()["missing_kinds"]) == api.forbidden


def test_of_revisions_only_those_of_instance_types_are_asked_for(take: Take, api: FakeApi) -> None:
    take()
    (query,) = [request.query for request in api.asked("controllerrevisions")]
    assert query["labelSelector"] == "instancetype.kubevirt.io/object-name"
    assert all("labelSelector" not in request.query for request in api.asked("pods"))


def test_an_unchanged_cluster_is_no_change_though_time_passes(take: Take, api: FakeApi, file: Path) -> None:
    api.lists["nodes"] = [node("n1")]
    first = take()
    header = json.loads(file.read_text())["snapshot"]
    file.write_text(file.read_text().replace(header["taken_at"], "2020-01-01T00:00:00Z", 1))
    api.lists["nodes"] = [node("n1", heartbeat="2026-01-01T00:01:00Z")]
    second = take()
    assert (first["changed"], second["changed"]) == (True, False)
    assert first["sha256"] == second["sha256"]
    assert json.loads(file.read_text())["snapshot"]["taken_at"] == second["taken_at"]


@pytest.mark.parametrize("content", ["", "text\n", '{"snapshot":{"schema_version":0},\n"nodes":[]}', "[]"])
def test_what_is_no_snapshot_is_replaced(take: Take, file: Path, content: str) -> None:
    file.write_text(content)
    assert take()["changed"]
    assert not take()["changed"]


def test_a_damaged_file_is_replaced(take: Take, api: FakeApi, file: Path) -> None:
    api.lists["nodes"] = [node("n1")]
    take()
    file.write_text(file.read_text().replace('"n1"', '"n2"'))
    assert take(diff=True)["changed"]
    assert "n2" not in file.read_text()


def test_a_file_that_others_can_read_is_a_change(take: Take, file: Path) -> None:
    take()
    file.chmod(0o644)
    assert take()["changed"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_leads_to_the_file(take: Take, file: Path) -> None:
    target = file.parent / "target.json"
    file.symlink_to(target)
    take()
    assert file.is_symlink()
    assert not target.is_symlink()
    assert target.stat().st_size > 0


def test_check_mode_tells_the_truth_and_writes_nothing(take: Take, api: FakeApi, file: Path) -> None:
    predicted = take(check=True)
    assert predicted["changed"]
    assert list(file.parent.iterdir()) == []
    written = take()
    assert "size_bytes" not in predicted
    assert predicted["sha256"] == written["sha256"]
    before = file.read_bytes()
    assert not take(check=True)["changed"]
    api.lists["nodes"] = [node("n1")]
    assert take(check=True)["changed"]
    assert file.read_bytes() == before


def test_the_diff_is_a_summary(take: Take, api: FakeApi) -> None:
    api.lists |= {"nodes": [node("n1"), node("n2")], "vmis": [vmi("a", on="n1"), vmi("b", on="n1")]}
    first = take(diff=True)["diff"]
    assert first["before"] == ""
    assert "nodes: 2\n" in first["after"]
    assert take(diff=True)["diff"] == {"before": "", "after": ""}
    api.lists |= {"nodes": [node("n1", unschedulable=True)], "vmis": [vmi("a", on="n2"), vmi("b", on="n1")]}
    assert take(diff=True)["diff"] == {
        "before": "nodes: 2\nnode n1: ready\nnode n2: ready\nvmi default/a: Running on n1\n",
        "after": "nodes: 1\nnode n1: ready, cordoned\nvmi default/a: Running on n2\n",
    }


def test_the_diff_of_a_large_change_is_short(take: Take, api: FakeApi) -> None:
    take()
    api.lists["vmis"] = [vmi(f"v{number}", on="n1") for number in range(5000)]
    lines = take(diff=True)["diff"]["after"].splitlines()
    assert len(lines) == 101
    assert lines[-1] == "and 4901 more"


def test_without_diff_mode_there_is_no_diff(take: Take) -> None:
    assert "diff" not in take()
