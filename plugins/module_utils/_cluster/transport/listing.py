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

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_format import encode_all
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import Kind

# A token lives as long as etcd keeps old revisions, five minutes by default; the next try often fits into it.
_ATTEMPTS = 3
# The server encodes one list while another is decoded here; more than a few would only queue up for the interpreter.
_THREADS = 4

Encoded = Sequence[bytes]


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
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return encode_all(_items(client, kind, page_size))
        except Failure as error:
            if error.unserved or (error.status == HTTPStatus.FORBIDDEN and kind.dispensable):
                return None
            # The server offers to go on at a newer state, but half a list of then and half of now is no list.
            if error.status != 410 or attempt == _ATTEMPTS:
                raise _expired(error, attempt) if error.status == 410 else error from None
    raise AssertionError("the last attempt returns or raises")


def _items(client: Client, kind: Kind, page_size: int) -> Iterator[Any]:
    query: dict[str, str | int] = {"limit": page_size}
    if kind.selector:
        query["labelSelector"] = kind.selector
    if kind.field_selector:
        query["fieldSelector"] = kind.field_selector
    while True:
        page = client.get(kind.path, f"list {kind.title} in all namespaces", **query)
        for item in page["items"]:
            if kind.keep(item):
                yield kind.project(item)
        token = page["metadata"].get("continue")
        if not token:
            return
        query["continue"] = token


def _expired(error: Failure, attempts: int) -> Failure:
    return Failure(
        error.attempted,
        error.where,
        f"the list grew too old {attempts} times before its last page was read ({error.message})",
        "Raise page_size, so that fewer pages are needed, and read from a machine nearer to the API server.",
        status=error.status,
        reason=error.reason,
    )
