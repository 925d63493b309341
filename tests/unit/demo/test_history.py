# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demonstration's history: it tells what happened, and never passes for whole when a watch is dead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import history
from demo.history import History
from testbed import watches
from testbed.api import ApiError, Object

KUBECONFIG = Path("kubeconfig")


def vmi(version: str, phase: str) -> Object:
    labels = {"app": "blackbox"}
    return {
        "metadata": {"uid": "1", "name": "blackbox1", "labels": labels, "resourceVersion": version},
        "status": {"phase": phase},
    }


class Server:
    """What an API server answers: a VMI that fails, and a pod whose node is not known yet."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        pass

    def items(self, _path: str) -> list[Object]:
        return []

    def get(self, path: str) -> Object:
        items = [] if path.endswith("pods") else [vmi("1", "Running")]
        return {"items": items, "metadata": {"resourceVersion": "1"}}

    def changes(self, path: str, version: str, _timeout: float) -> Iterator[Object]:
        if version == "1":
            pod = {"metadata": {"uid": "2", "resourceVersion": "2"}, "spec": {}, "status": {}}
            yield {"type": "MODIFIED", "object": pod if path.endswith("pods") else vmi("2", "Failed")}


class NoList(Server):
    def get(self, path: str) -> Object:
        raise ApiError("GET", path, 500, "InternalError", "etcd is away")


class NoWatch(Server):
    def changes(self, path: str, version: str, timeout: float) -> Iterator[Object]:
        if path.endswith("pods"):
            raise ApiError("GET", path, 500, "InternalError", "etcd is away")
        yield from super().changes(path, version, timeout)


class Expired(Server):
    def changes(self, _path: str, _version: str, _timeout: float) -> Iterator[Object]:
        yield {"type": "ERROR", "object": {"message": "too old resource version"}}


class Silent(Server):
    def changes(self, _path: str, _version: str, _timeout: float) -> Iterator[Object]:
        yield from ()


def watched(monkeypatch: pytest.MonkeyPatch, server: type[Server]) -> History:
    for module in (history, watches):
        monkeypatch.setattr(module, "Api", server)
    with History(KUBECONFIG, "customapp") as found:
        pass
    return found


def test_what_happened_until_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(monkeypatch, Server)
    assert found.interruptions("blackbox") == ["blackbox1 was Failed"]
    assert found.newcomers("blackbox") == []


def test_a_list_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiError, match="etcd is away"):
        watched(monkeypatch, NoList)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (NoWatch, "pods: .*etcd is away"),
        (Expired, "too old resource version"),
        (Silent, "nothing was told of pods; nothing was told of vmis"),
    ],
)
def test_a_dead_watch_is_a_gap(monkeypatch: pytest.MonkeyPatch, server: type[Server], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        watched(monkeypatch, server)
