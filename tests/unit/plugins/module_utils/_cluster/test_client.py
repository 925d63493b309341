# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request that changes something goes out once, whatever becomes of its answer; reads are repeated."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

from unit.plugins.support.fake_api import SILENCE, Answer, FakeApi, Fault, Request, refusal

PATH = "/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/db/restart"
TIMEOUT = 0.3
RETRY_AFTER = (("Retry-After", "0"),)


def drop(_request: Request) -> Answer:
    return SILENCE


def take_too_long(_request: Request) -> Answer:
    time.sleep(2 * TIMEOUT)
    return Answer(200, {})


def be_busy(_request: Request) -> Answer:
    return Answer(429, refusal(429, "TooManyRequests", "too many").body, headers=RETRY_AFTER)


def redirect(_request: Request) -> Answer:
    return Answer(307, {}, headers=(("Location", PATH),))


def preconditions(client: Client) -> None:
    client.delete_only(PATH, "delete", {"uid": "u"}, dry_run=False)


WRITES: dict[str, Callable[[Client], object]] = {
    "post": lambda client: client.post(PATH, "create", {}),
    "put": lambda client: client.put(PATH, "write", {}),
    "patch": lambda client: client.patch(PATH, "change", {}),
    "delete": lambda client: client.delete(PATH, "delete"),
    "delete_only": preconditions,
    "act": lambda client: client.act(PATH, "restart VM shop/db", {}),
}


@pytest.fixture
def client(connection: dict[str, str]) -> Client:
    return Client(get_api_client(**connection).client, TIMEOUT)


@pytest.mark.parametrize("fault", [drop, take_too_long, be_busy, redirect])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_goes_out_once(client: Client, api: FakeApi, write: Callable[[Client], object], fault: Fault) -> None:
    api.faults[PATH] = fault
    with pytest.raises(Failure):
        write(client)
    assert [request.path for request in api.requests].count(PATH) == 1


@pytest.mark.parametrize("fault", [drop, take_too_long])
def test_a_read_is_repeated(client: Client, api: FakeApi, fault: Fault) -> None:
    answers: list[Fault] = [fault]
    api.faults[PATH] = lambda request: answers.pop()(request) if answers else Answer(200, {"kind": "Status"})
    assert client.get(PATH, "read") == {"kind": "Status"}


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        (drop, "ConnectionLost", "the connection was lost before the answer was complete"),
        (take_too_long, "Timeout", "there was no answer in time"),
        (be_busy, "TooManyRequests", "the API server answered 429, too many"),
    ],
)
def test_what_became_of_a_write_is_told(client: Client, api: FakeApi, fault: Fault, reason: str, words: str) -> None:
    """As of a read, that it may be asked again by whoever looks first."""
    api.faults[PATH] = fault
    with pytest.raises(Failure, match=words) as told:
        WRITES["act"](client)
    assert told.value.passing
    assert (told.value.reason, told.value.where) == (reason, api.url)
