# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which request a moment of the proxy is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.proxy import Moment, Proxy
from testbed.pki import Authority, write_kubeconfig

NODE = "/api/v1/nodes/a"
CORDON, UNCORDON = b'{"spec": {"unschedulable": true}}', b'{"spec": {"unschedulable": null}}'


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """Before a server that nobody asks."""
    authority = Authority(tmp_path)
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", authority.cert, {"token": "any"})
    with Proxy(kubeconfig, 0) as made:
        yield made


def met(proxy: Proxy, *bodies: bytes, command: str = "PATCH", path: str = NODE) -> list[Moment | None]:
    return [proxy.meet(command, path, body) for body in bodies]


@pytest.mark.parametrize(
    ("after", "only", "taken"),
    [
        (0, 1, [True, False, False, False]),
        (1, 1, [False, True, False, False]),
        (1, 2, [False, True, True, False]),
        (2, None, [False, False, True, True]),
    ],
)
def test_it_is_the_nth_of_its_kind(proxy: Proxy, after: int, only: int | None, taken: list[bool]) -> None:
    moment = proxy.at("PATCH", "/api/v1/nodes/[^/]+", after=after, only=only)
    assert met(proxy, b"", command="GET") == met(proxy, b"", path=f"{NODE}/status") == [None]
    assert [found is moment for found in met(proxy, b"", b"", b"", b"")] == taken
    assert moment.met == sum(taken)


def test_a_request_counts_for_all_of_its_kind(proxy: Proxy) -> None:
    """Also for those that it is not, as an earlier one has taken it."""
    first, second = (proxy.at("PATCH", NODE, after=after) for after in (0, 1))
    assert met(proxy, b"", b"", b"") == [first, second, None]


def test_what_is_asked_of_its_body_makes_the_kind(proxy: Proxy) -> None:
    moment = proxy.at("PATCH", NODE, after=1, provided=lambda body: b"null" in body)
    assert met(proxy, CORDON, UNCORDON, CORDON, UNCORDON) == [None, None, None, moment]


def test_a_dry_run_is_none_of_its_kind(proxy: Proxy) -> None:
    moment = proxy.at("PATCH", NODE)
    assert met(proxy, b"", path=f"{NODE}?dryRun=All&fieldManager=me") == [None]
    assert met(proxy, b"", path=f"{NODE}?fieldManager=me") == [moment]
