# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole lists in pages, projected while they are read.

Without a resourceVersion a list is read at the newest state, and its `continue` token keeps all further pages at that
state: each list is consistent in itself. `resourceVersion=0` would be cheaper for the server, but may be minutes old
and ignores the page size; a drain that decides on old pods moves the wrong ones. Lists of different kinds are read at
different moments, within seconds: the API has no state across kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import encode_all
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import Kind

# A token lives as long as etcd keeps old revisions, five minutes by default; the next try often fits into it.
_ATTEMPTS = 3
# The server encodes one list while another is decoded here; more than a few would only queue up for the interpreter.
_THREADS = 4

Encoded = Sequence[bytes]
Whole = TypeVar("Whole")


def read_lists(client: Client, kinds: Iterable[Kind], page_size: int) -> dict[str, Encoded | None]:
    """All kinds by name, each in order and encoded; None as for `read_list`. Raises Failure."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        futures = {kind.name: pool.submit(read_list, client, kind, page_size) for kind in kinds}
        return {name: future.result() for name, future in futures.items()}
    finally:
        pool.shutdown(cancel_futures=True)


def read_list(client: Client, kind: Kind, page_size: int) -> Encoded | None:
    """One kind; None if the cluster does not serve it, or does not show it and it is dispensable. Raises Failure."""
    query: dict[str, str | int] = {"limit": page_size}
    if kind.selector:
        query["labelSelector"] = kind.selector
    if kind.field_selector:
        query["fieldSelector"] = kind.field_selector

    def encoded(items: Iterator[Any]) -> Encoded:
        return encode_all(kind.project(item) for item in items if kind.keep(item))

    try:
        return read_whole(client, kind.path, f"list {kind.title} in all namespaces", query, encoded)
    except Failure as error:
        if error.unserved or (error.status == HTTPStatus.FORBIDDEN and kind.dispensable):
            return None
        raise


def read_whole(
    client: Client, path: str, attempted: str, query: Mapping[str, str | int], take: Callable[[Iterator[Any]], Whole]
) -> Whole:
    """What `take` makes of all items of a list; it gets them anew if the list grows too old meanwhile. Raises Failure.

    query: with a `limit`, the size of a page.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return take(_items(client, path, attempted, query))
        except Failure as error:
            # The server offers to go on at a newer state, but half a list of then and half of now is no list.
            if error.status != HTTPStatus.GONE:
                raise
            if attempt == _ATTEMPTS:
                raise _expired(error) from None
    raise AssertionError("the last attempt returns or raises")


def _items(client: Client, path: str, attempted: str, query: Mapping[str, str | int]) -> Iterator[Any]:
    rest: dict[str, str] = {}
    while True:
        page = client.get(path, attempted, **query, **rest)
        yield from page["items"]
        token = page["metadata"].get("continue")
        if not token:
            return
        rest = {"continue": token}


def _expired(error: Failure) -> Failure:
    return Failure(
        error.attempted,
        error.where,
        f"the list grew too old {_ATTEMPTS} times before its last page was read ({error.message})",
        "Read from a machine nearer to the API server. Raise page_size, if the task has one, for fewer pages.",
        status=error.status,
        reason=error.reason,
    )
