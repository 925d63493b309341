# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator's connection to the API server: list, watch, patch, all as raw JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from testbed.api import PATCH_TYPES, ApiError, Object, checked, connection

AS_HANDLER = {"Impersonate-User": "system:serviceaccount:kubevirt:kubevirt-handler"}
PAGE = 500
WATCH_SECONDS = 300
# Seconds: after a failed request, and between two watches.
RETRY, PAUSE = 0.5, 0.05


@dataclass(frozen=True)
class Kind:
    """A collection that is watched: its URL path and the labels that select from it."""

    path: str
    selector: str = ""

    @property
    def params(self) -> dict[str, str]:
        return {"labelSelector": self.selector} if self.selector else {}


class Client:
    """Asynchronous; as the administrator unless asked to speak as virt-handler."""

    def __init__(self, kubeconfig: Path) -> None:
        # Watches hold a connection each for minutes; patches must not wait for them.
        self.http = httpx.AsyncClient(**connection(kubeconfig), timeout=30, limits=httpx.Limits(max_connections=64))

    async def close(self) -> None:
        await self.http.aclose()

    async def request(self, method: str, path: str, params: Mapping[str, str] | None = None) -> Object:
        """One request without a body; ApiError when the server says no."""
        return checked(await self.http.request(method, path, params=params))

    async def patch(self, path: str, body: Any, handler: bool = False) -> Object:
        """Strategic merge patch; ApiError when the server says no."""
        headers = {"Content-Type": PATCH_TYPES["strategic"], **(AS_HANDLER if handler else {})}
        return checked(await self.http.patch(path, content=json.dumps(body), headers=headers))

    async def replace(self, path: str, obj: Object) -> Object:
        """Replace an object as virt-handler; ApiError when the server says no."""
        return checked(await self.http.put(path, json=obj, headers=AS_HANDLER))

    async def items(self, kind: Kind, fields: str = "") -> tuple[list[Object], str]:
        """All objects, read in pages, and the resourceVersion from which to watch on."""
        found: list[Object] = []
        params = {**kind.params, "limit": str(PAGE), **({"fieldSelector": fields} if fields else {})}
        while True:
            page = await self.request("GET", kind.path, params)
            found += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return found, page["metadata"]["resourceVersion"]
            params["continue"] = token

    async def events(self, kind: Kind, version: str) -> AsyncIterator[Object]:
        """Watch events after a version, until the server ends the watch."""
        params = {
            **kind.params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = httpx.Timeout(30, read=WATCH_SECONDS + 30)
        async with self.http.stream("GET", kind.path, params=params, timeout=timeout) as response:
            if not response.is_success:
                await response.aread()
                checked(response)
            buffer = bytearray()
            async for chunk in response.aiter_bytes():
                buffer += chunk
                *lines, rest = buffer.split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    yield json.loads(line)


class Watcher:
    """Keeps a copy of a collection up to date, across expired versions and restarts of the API server.

    `replace` gets all objects, first and whenever the watch could not go on from where it was; `change` gets the type
    and the object of each event.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        replace: Callable[[list[Object]], None],
        change: Callable[[str, Object], None],
    ) -> None:
        self.client = client
        self.kind = kind
        self.replace = replace
        self.change = change
        self.version = ""

    async def run(self) -> None:
        """For ever; ends when cancelled."""
        while True:
            try:
                await self.follow()
                await asyncio.sleep(PAUSE)
            except (httpx.TransportError, json.JSONDecodeError):
                await asyncio.sleep(RETRY)
            except ApiError as error:
                if error.status == httpx.codes.GONE:
                    self.version = ""
                await asyncio.sleep(RETRY)

    async def follow(self) -> None:
        """Until the server ends the watch."""
        if not self.version:
            found, version = await self.client.items(self.kind)
            self.replace(found)
            self.version = version
        async for event in self.client.events(self.kind, self.version):
            obj = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(
                    "WATCH", self.kind.path, obj.get("code", 0), obj.get("reason", ""), obj.get("message", "")
                )
            if event["type"] != "BOOKMARK":
                self.change(event["type"], obj)
            self.version = obj["metadata"]["resourceVersion"]
