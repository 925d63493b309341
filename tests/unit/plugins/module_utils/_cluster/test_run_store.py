# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A document of a run is found as it was before a write or after it, whatever dies in between."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import (
    Client,
    connect_by,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import run_store
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import ActionKind
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.in_force import PlanInForce

from testbed.pki import Authority
from unit.plugins.module_utils._plan.plans import action, plan, vm
from unit.plugins.support.fake_api import Answer, Request, refusal
from unit.plugins.support.run_api import CONFIG_MAPS, PLACE, RunApi, running

EXPIRED = refusal(410, "Expired", "The provided continue parameter is too old")
# It does not compress, so it needs three chunks.
LARGE = random.Random(7).randbytes(1_400_000)


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def client(api: RunApi, connection: dict[str, str]) -> Client:
    return connect_by(connection, 5)


@pytest.fixture
def store(client: Client) -> RunStore:
    return RunStore(client, "kernel", "medik8s-leases")


@pytest.mark.parametrize("content", [b"", b"{}", LARGE])
def test_what_is_put_is_got(store: RunStore, api: RunApi, content: bytes) -> None:
    assert store.get("plan") is None
    assert store.put("plan", content).generation == 1
    found = store.get("plan")
    assert found
    assert (found.content, found.generation) == (content, 1)
    assert all(len(str(item)) < 1 << 20 for item in api.config_maps())
    assert all(item["metadata"]["labels"]["virtops.kubevirt/run"] == "kernel" for item in api.config_maps())


def test_the_plan_of_a_large_run_is_a_few_small_objects(store: RunStore, api: RunApi) -> None:
    """Of 1,000 nodes with 20 VMs each, in batches of 5, whose uids and why compress as badly as in a cluster."""
    dice = random.Random(11)
    uid = functools.partial(str.format, "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}")
    moves = (
        replace(
            action(
                ActionKind.MIGRATE,
                vm(f"vm-{number}", uid(*(dice.getrandbits(bits) for bits in (32, 16, 12, 12, 48)))),
                f"worker-{number // 20}",
                f"worker-{dice.randrange(1000)}",
                batch=1 + number // 100,
            ),
            why=f"Of {dice.randrange(1000)} nodes that fit it is the best.",
        )
        for number in range(20_000)
    )
    content = PlanInForce.new(plan(*moves)).encoded()
    store.put("plan", content)
    found = store.get("plan")
    assert found
    assert found.content == content
    sizes = [len(json.dumps(item)) for item in api.config_maps()]
    assert max(sizes) < 0.75 * 2**20, "well below what etcd takes"
    assert len(sizes) <= 5


def test_a_new_generation_replaces_all_of_the_old_one(store: RunStore, api: RunApi) -> None:
    store.put("plan", LARGE)
    assert len(api.config_maps()) == 4
    assert store.put("plan", b"small").generation == 2
    assert len(api.config_maps()) == 1
    assert store.put("plan", LARGE[::-1]).generation == 3
    found = store.get("plan")
    assert found
    assert found.content == LARGE[::-1]


def test_what_is_there_already_is_not_written_again(store: RunStore, api: RunApi) -> None:
    store.put("plan", b"same")
    writes = len(api.writes())
    assert store.put("plan", b"same").generation == 1
    assert len(api.writes()) == writes


def test_a_write_that_dies_in_between_leaves_the_old_document(store: RunStore, api: RunApi) -> None:
    store.put("plan", b"old")
    written = 0

    def die(request: Request) -> Answer | None:
        nonlocal written
        written += request.method == "POST"
        return refusal(503, "ServiceUnavailable", "away") if written > 2 else None

    api.faults[CONFIG_MAPS] = die
    with pytest.raises(Failure):
        store.put("plan", LARGE)
    found = store.get("plan")
    assert found
    assert found.content == b"old"
    api.faults.clear()
    assert store.put("plan", LARGE).generation == 2
    assert store.delete_all() == 4
    assert api.config_maps() == []


def test_a_lost_answer_is_adopted(store: RunStore, api: RunApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "READING", 20.0)

    def lose(request: Request) -> Answer | None:
        if request.method != "POST":
            return None
        api._create(request)
        return refusal(504, "Timeout", "too late")

    api.faults[CONFIG_MAPS] = lose
    assert store.put("plan", b"{}").generation == 1
    assert store.names() == ["plan"]


def test_a_reader_in_the_middle_of_a_write_reads_one_of_both(store: RunStore, api: RunApi) -> None:
    store.put("plan", LARGE)
    chunk = next(path for path in api.objects if path.startswith(CONFIG_MAPS) and path.endswith("-1"))

    def overtake(request: Request) -> Answer | None:
        api.faults.clear()
        store.put("plan", b"new")
        return None

    api.faults[chunk] = overtake
    found = store.get("plan")
    assert found
    assert found.content == b"new"


def test_who_writes_after_somebody_else_is_told(store: RunStore, client: Client) -> None:
    other = RunStore(client, "kernel", "medik8s-leases")
    first = store.put("record-n1", b"1", after=0)
    other.put("record-n1", b"2", after=first.generation)
    with pytest.raises(Failure, match="generation 2 of it is there, not 1") as caught:
        store.put("record-n1", b"3", after=first.generation)
    assert caught.value.status == 409


def test_two_that_write_at_once_do_not_mix(store: RunStore, api: RunApi, client: Client) -> None:
    store.put("plan", b"1")
    other = RunStore(client, "kernel", "medik8s-leases")
    (head,) = (path for path in api.objects if path.startswith(CONFIG_MAPS))

    def between(request: Request) -> Answer | None:
        if request.method == "PUT":
            api.faults.clear()
            other.put("plan", b"2")
        return None

    api.faults[head] = between
    with pytest.raises(Failure) as caught:
        store.put("plan", b"3")
    assert caught.value.status == 409
    found = store.get("plan")
    assert found
    assert found.content == b"2"


def test_documents_of_a_run_are_its_own(store: RunStore, api: RunApi, client: Client) -> None:
    other = RunStore(client, "Kernel", "medik8s-leases")
    for name in ("plan", "record-n1", f"record-{'n' * 200}"):
        store.put(name, name.encode())
        other.put(name, b"other")
    assert store.names() == ["plan", "record-n1", f"record-{'n' * 200}"]
    assert store.delete_all() == 3
    assert store.names() == []
    assert len(other.names()) == 3


def test_a_list_whose_page_expired_is_read_again_from_its_start(
    store: RunStore, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "_PAGE", 2)
    documents = ["plan", "record-n1", "record-n2"]
    for name in documents:
        store.put(name, b"{}")
    expired: list[Request] = []

    def expire_once(request: Request) -> Answer | None:
        if "continue" not in request.query or expired:
            return None
        expired.append(request)
        return EXPIRED

    api.faults[CONFIG_MAPS] = expire_once
    assert store.names() == documents
    expired.clear()
    assert store.delete_all() == 3
    assert expired
    assert api.config_maps() == []


def test_a_list_whose_pages_always_expire_is_none(
    store: RunStore, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "_PAGE", 1)
    store.put("plan", b"{}")
    store.put("record-n1", b"{}")
    api.faults[CONFIG_MAPS] = lambda request: EXPIRED if "continue" in request.query else None
    with pytest.raises(Failure, match="the list grew too old 3 times") as caught:
        store.delete_all()
    assert caught.value.status == 410
    assert len(api.config_maps()) == 2


def test_a_document_that_was_tampered_with_is_refused(store: RunStore, api: RunApi) -> None:
    store.put("plan", b"ours")
    (head,) = api.config_maps()
    head["data"]["sha256"] = "0" * 64
    with pytest.raises(Failure, match="its content is not what its checksum says"):
        store.get("plan")
    head["binaryData"]["content"] = "AAAA"
    with pytest.raises(Failure, match="it cannot be unpacked"):
        store.get("plan")


def lose_a_chunk(api: RunApi) -> None:
    del api.objects[next(path for path, item in api.objects.items() if "-1-" in item["metadata"]["name"])]


def test_a_part_that_is_gone_is_told_as_that(store: RunStore, api: RunApi) -> None:
    store.put("plan", LARGE)
    lose_a_chunk(api)
    with pytest.raises(Failure, match="a part of it is gone"):
        store.get("plan")


def test_what_somebody_else_writes_is_not_taken_for_the_mended_one(store: RunStore, api: RunApi) -> None:
    store.put("plan", b"ours")
    (head,) = api.config_maps()
    head["binaryData"] = {}
    path = next(path for path, item in api.objects.items() if item is head)

    def annotate(request: Request) -> None:
        if request.method == "PUT":
            head["metadata"]["resourceVersion"] = "somebody else's"

    api.faults[path] = annotate
    with pytest.raises(Failure) as told:
        store.put("plan", b"ours")
    assert told.value.status == 409


@pytest.mark.parametrize("content", [b"{}", LARGE])
def test_a_broken_one_is_written_anew_by_who_has_it_whole(store: RunStore, api: RunApi, content: bytes) -> None:
    store.put("plan", content)
    next(item for item in api.config_maps() if item["binaryData"])["binaryData"] = {}
    with pytest.raises(Failure):
        store.get("plan")
    assert store.put("plan", content).generation == 2
    found = store.get("plan")
    assert found
    assert found.content == content


@pytest.mark.parametrize("whole", [True, False])
def test_a_head_without_its_number_loses_nothing(store: RunStore, api: RunApi, *, whole: bool) -> None:
    """What is written then has the names of the chunks that were there before."""
    store.put("plan", LARGE)
    head = next(item for item in api.config_maps() if "generation" in (item.get("data") or {}))
    del head["data"]["generation"]
    if not whole:
        lose_a_chunk(api)
    store.put("plan", LARGE)
    found = store.get("plan")
    assert found
    assert found.content == LARGE


def test_what_nobody_could_read_again_is_not_kept(
    store: RunStore, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "LARGEST", 1 << 20)
    with pytest.raises(
        Failure, match=r"Cannot keep document plan of run kernel .* it has 2 MiB, and at most 1 MiB are"
    ):
        store.put("plan", LARGE)
    assert api.writes() == []


def test_a_head_cannot_have_objects_of_others_removed(store: RunStore, api: RunApi) -> None:
    api.objects[f"{CONFIG_MAPS}/precious"] = {"metadata": {"name": "precious"}}
    store.put("plan", b"ours")
    head = next(item for item in api.config_maps() if item["metadata"]["name"] != "precious")
    head["data"]["chunks"] = '["precious"]'
    store.put("plan", b"new")
    assert f"{CONFIG_MAPS}/precious" in api.objects
    store.delete_all()
    assert [item["metadata"]["name"] for item in api.config_maps()] == ["precious"]


def test_a_missing_namespace_is_created(store: RunStore, api: RunApi) -> None:
    del api.objects[PLACE]
    assert store.names() == []
    store.put("plan", b"{}")
    assert PLACE in api.objects
