# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to the Kubernetes API: JSON in, JSON out, and every failure a Failure.

Credentials and addresses are kubernetes.core's business, so all its options and variables work. Requests are raw: the
typed models of the client library take ten times as long to build as the JSON takes to decode.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.as_wanted import (
    Alike,
    is_as_wanted,
    is_just_as_wanted,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.dialling import (
    Dialled,
    Dialler,
    unusable_settings,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.line import Line
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    UNDONE,
    Done,
    May,
    Persistence,
    always,
    repeatable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.translation import (
    TRANSPORT_ERRORS,
    failure,
    unreadable,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


class Client:
    """Thread-safe. `server`: the API's address. `patience`: seconds to connect, and for each part of an answer.

    When the answer to what changes something is lost, a look tells whether it was done (see persistence.py). alike: by
    which it tells that of what was created or patched.
    """

    def __init__(self, line: Line, timeout: float, persistence: Persistence) -> None:
        self._line = line
        self.patience = timeout
        self.persistence = persistence

    @property
    def server(self) -> str:
        return self._line.server

    def briefly(self, may: May = always) -> Client:
        """The same connection, for requests that somebody asks for anew, after a look, when they have failed a moment.

        may: asked before anything that changes something is sent, or sent again.
        """
        return Client(self._line, self.patience, self.persistence.briefly(may))

    def guarded(self, may: May) -> Client:
        """The same connection and patience; `may` as for `briefly`, after what was asked before."""
        return Client(self._line, self.patience, self.persistence.guarded(may))

    def setting_aside(self) -> Client:
        """The same, but brief where a webhook cannot be asked, for who comes back to that when the rest is done."""
        return Client(self._line, self.patience, self.persistence.setting_aside())

    def within(self, seconds: float) -> Client:
        """The same connection, for what is not tried for longer, whatever has been before."""
        return Client(self._line, self.patience, Persistence(seconds))

    def hurry_credentials(self, seconds: float) -> None:
        """From now on, and for all on the same connection: to read them anew takes no longer."""
        self._line.hurry(seconds)

    @property
    def kubeconfig_cluster(self) -> JsonObject:
        """The server, and how it is trusted, as a kubeconfig has them."""
        used = self._line.configuration
        found: JsonObject = {"server": used.host}
        if not used.verify_ssl:
            found["insecure-skip-tls-verify"] = True
        elif used.ssl_ca_cert:
            found["certificate-authority-data"] = base64.b64encode(Path(used.ssl_ca_cert).read_bytes()).decode()
        named = {"tls-server-name": getattr(used, "tls_server_name", None), "proxy-url": used.proxy}
        return {**found, **{key: value for key, value in named.items() if value}}

    def get(self, path: str, attempted: str, **query: str | int) -> Any:
        return self._request("get", path, attempted, repeatable, query)

    def create(
        self, path: str, attempted: str, body: JsonObject, alike: Alike = is_as_wanted, /, **query: str | int
    ) -> Any:
        """path: of the collection. The body has a name, by which it is found when the answer is lost."""
        here = f"{path}/{body['metadata']['name']}"
        return self._request("post", path, attempted, self._seen(here, attempted, body, alike), query, body=body)

    def replace(self, path: str, attempted: str, body: JsonObject, **query: str | int) -> Any:
        """Fails with status 409 if somebody has written the object since the version in the body.

        That may have been this very request, if its answer was lost and the server has added to what it wrote.
        """
        seen = self._seen(path, attempted, body, is_just_as_wanted)
        return self._request("put", path, attempted, seen, query, body=body)

    def patch(
        self, path: str, attempted: str, body: JsonObject, alike: Alike = is_as_wanted, /, **query: str | int
    ) -> Any:
        """By a JSON merge patch: null removes a field, lists are replaced as a whole."""
        kind, seen = "application/merge-patch+json", self._seen(path, attempted, body, alike)
        return self._request("patch", path, attempted, seen, query, body=body, content_type=kind)

    def delete_only(
        self, path: str, attempted: str, preconditions: dict[str, str], *, dry_run: bool, **more: str
    ) -> Any:
        """Fails with status 409 unless the object has this `uid` or `resourceVersion`, with 404 if it is gone.

        more: of the DeleteOptions.
        """
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions, **more}
        if dry_run:  # as a query the server would pass over it: it reads options from one place only
            options["dryRun"] = ["All"]
        done = repeatable if dry_run else self._seen_to_end(path, attempted, preconditions.get("uid"))
        return self._request("delete", path, attempted, done, {}, body=options)

    def delete(self, path: str, attempted: str, uid: str | None, *, dry_run: bool, **more: str) -> bool:
        """Just this object; one that is gone is no error, nor is another one that has its name by now.

        uid: None if its name says it all. more: of the DeleteOptions. False if it was not there to be deleted.
        """
        try:
            self.delete_only(path, attempted, {"uid": uid} if uid else {}, dry_run=dry_run, **more)
        except Failure as error:
            if not (error.gone or error.status == HTTPStatus.CONFLICT):
                raise
            return error.maybe_done
        return True

    def post(self, path: str, attempted: str, body: JsonObject, *, done: Done | None, **query: str | int) -> Any:
        """What creates nothing that has a name. done: None if only who asks can see that it was done."""
        return self._request("post", path, attempted, done, query, body=body)

    def act(self, path: str, attempted: str, body: JsonObject, *, done: Done | None) -> None:
        """Put a request to a subresource that does something and answers nothing, or JSON; `done` as for `post`."""

        def send() -> None:
            # KubeVirt's refuse to be asked for JSON, with status 406.
            response = self._send("put", path, attempted, body=body, header_params={"Accept": "*/*"})
            if response.data.strip():
                self._read(response, attempted)

        self._carry(send, done, body)

    def watch(self, path: str, attempted: str, seconds: int, **query: str | int) -> Iterator[Any]:
        """The events of a list as they come, until the server ends the stream after so many seconds."""
        query_params = [*query.items(), ("watch", "true"), ("timeoutSeconds", seconds)]
        response = self._answer("get", path, attempted, self.patience + seconds, query_params=query_params)
        try:
            with contextlib.closing(response):
                yield from map(json.loads, _lines(response.stream(amt=None)))
        except TRANSPORT_ERRORS as error:
            raise failure(error, attempted, self.server) from error
        except (ValueError, RecursionError) as error:
            raise unreadable(error, response.status, attempted, self.server) from error

    def _request(
        self,
        method: str,
        path: str,
        attempted: str,
        done: Done | None,
        query: Mapping[str, str | int],
        **arguments: Any,
    ) -> Any:
        def send() -> Any:
            response = self._send(method, path, attempted, query_params=list(query.items()), **arguments)
            return self._read(response, attempted)

        if method == "get":
            return self.persistence.carry(send, done, reads=True)
        return self._carry(send, done, {**query, **arguments["body"]})

    def _seen(self, path: str, attempted: str, wanted: Mapping[str, Any], alike: Alike = is_as_wanted) -> Done:
        """By the object, which is as it was wanted to be, or it was not done."""

        def look() -> Any:
            try:
                found = self.get(path, attempted)
            except Failure as error:
                # Who may not look writes again: there is one object of a name, and one of a version.
                if error.gone or error.status == HTTPStatus.FORBIDDEN:
                    return None
                raise
            return found if alike(found, wanted) else None

        return look

    def _seen_to_end(self, path: str, attempted: str, uid: str | None) -> Done:
        """By the object, which is gone or going, or another one of its name. Without a uid it may be that unseen."""

        def look() -> Any:
            try:
                found = self.get(path, attempted)
            except Failure as error:
                if error.gone:
                    return {}
                if error.status == HTTPStatus.FORBIDDEN:  # the preconditions guard what is sent again
                    return None
                raise
            metadata = found["metadata"]
            if "deletionTimestamp" in metadata or uid not in (None, metadata["uid"]):
                return found
            return UNDONE if uid else None

        return look

    def _carry(self, send: Callable[[], Any], done: Done | None, asked: Mapping[str, Any]) -> Any:
        """asked: where a dry run would stand, of which nothing is to be seen."""
        return self.persistence.carry(send, repeatable if "dryRun" in asked else done, reads=False)

    def _send(self, method: str, path: str, attempted: str, **arguments: Any) -> Any:
        """The answer, whose `data` has come as a whole."""
        response = self._answer(method, path, attempted, self.patience, **arguments)
        try:
            response.data  # noqa: B018 - which reads it
        except TRANSPORT_ERRORS as error:
            raise failure(error, attempted, self.server) from error
        return response

    def _read(self, response: Any, attempted: str) -> Any:
        try:
            return json.loads(response.data)
        except (ValueError, RecursionError) as error:
            raise unreadable(error, response.status, attempted, self.server) from error

    def _answer(self, method: str, path: str, attempted: str, read_timeout: float, **arguments: Any) -> Any:
        """What the server answers, whose body is still to be read."""
        used = self._line.ready(self.patience)
        try:
            return self._open(used, method, path, attempted, read_timeout, arguments)
        except Failure as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
            # A token may have run out, and the kubeconfig or its plugin have a newer one.
            renewed = self._line.renewed(used, error, self.patience)
        return self._open(renewed, method, path, attempted, read_timeout, arguments)

    def _open(
        self,
        used: Dialled,
        method: str,
        path: str,
        attempted: str,
        read_timeout: float,
        arguments: Mapping[str, Any],
    ) -> Any:
        timeout = (self.patience, read_timeout)
        try:
            answer = used.client.request(method, path, serialize=False, _request_timeout=timeout, **arguments)
        except TRANSPORT_ERRORS as error:
            raise self._line.met(failure(error, attempted, self.server)) from error
        except ValueError as error:  # of a header for a token that was renewed, which it quotes
            raise unusable_settings(error, attempted, self.server) from None
        self._line.was_reached = True
        return answer


def connect(module: AnsibleK8SModule, timeout: float, persistence: Persistence) -> Client:
    """Connect with the module's options, K8S_AUTH_* variables, the pod's service account or the default kubeconfig."""
    return _connected(Dialler(module, {}), timeout, persistence)


def connect_by(
    options: Mapping[str, Any],
    timeout: float,
    persistence: Persistence | None = None,
    *,
    for_credentials: float | None = None,
) -> Client:
    """As `connect` does, with a module's options where there is no module. Raises Failure.

    for_credentials: seconds in which they have to be read, if not `timeout`.
    """
    return _connected(Dialler(None, options, for_credentials), timeout, persistence or Persistence(None))


def _connected(dialler: Dialler, timeout: float, persistence: Persistence) -> Client:
    dialled = persistence.carry(lambda: dialler.dialled(timeout), repeatable, reads=True)
    return Client(Line(dialler, dialled), timeout, persistence)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The whole lines of a stream; what a broken connection left of a last one is dropped."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
