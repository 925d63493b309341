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
import copy
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.translation import (
    TRANSPORT_ERRORS,
    failure,
)

try:
    from yaml import YAMLError
except ImportError:  # AnsibleK8SModule requires PyYAML
    YAMLError = ValueError  # type: ignore[assignment,misc]

_CONNECT = "connect to the Kubernetes API"
_SETTINGS_REMEDY = "Check the kubeconfig and its context, or the connection options of the task."
# What reading a kubeconfig raises when it is no kubeconfig; kubernetes.core passes most of it on.
_SETTINGS_ERRORS = (CoreException, YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Client:
    """Thread-safe. `server`: the API's address. `patience`: seconds to connect, and for each part of an answer."""

    def __init__(self, dynamic: Any, timeout: float) -> None:
        self.server: str = dynamic.configuration.host
        self._reader = dynamic
        self._writer = _without_retries(dynamic)
        self.patience = timeout

    @property
    def kubeconfig_cluster(self) -> dict[str, Any]:
        """The server, and how it is trusted, as a kubeconfig has them."""
        used = self._reader.configuration
        found: dict[str, Any] = {"server": used.host}
        if not used.verify_ssl:
            found["insecure-skip-tls-verify"] = True
        elif used.ssl_ca_cert:
            found["certificate-authority-data"] = base64.b64encode(Path(used.ssl_ca_cert).read_bytes()).decode()
        named = {"tls-server-name": getattr(used, "tls_server_name", None), "proxy-url": used.proxy}
        return {**found, **{key: value for key, value in named.items() if value}}

    def get(self, path: str, attempted: str, **query: str | int) -> Any:
        return self._request("get", path, attempted, query_params=list(query.items()))

    def post(self, path: str, attempted: str, body: dict[str, Any], **query: str | int) -> Any:
        return self._request("post", path, attempted, body=body, query_params=list(query.items()))

    def put(self, path: str, attempted: str, body: dict[str, Any], **query: str | int) -> Any:
        return self._request("put", path, attempted, body=body, query_params=list(query.items()))

    def patch(self, path: str, attempted: str, body: dict[str, Any], **query: str | int) -> Any:
        """By a JSON merge patch: null removes a field, lists are replaced as a whole."""
        kind = "application/merge-patch+json"
        return self._request("patch", path, attempted, body=body, query_params=list(query.items()), content_type=kind)

    def delete(self, path: str, attempted: str, **query: str | int) -> Any:
        return self._request("delete", path, attempted, query_params=list(query.items()))

    def delete_only(self, path: str, attempted: str, preconditions: dict[str, str], *, dry_run: bool) -> Any:
        """Fails with status 409 unless the object has this `uid` or `resourceVersion`."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        if dry_run:  # as a query the server would pass over it: it reads options from one place only
            options["dryRun"] = ["All"]
        return self._request("delete", path, attempted, body=options)

    def act(self, path: str, attempted: str, body: dict[str, Any]) -> None:
        """Put a request to a subresource that does something and answers nothing."""
        # KubeVirt's refuse to be asked for JSON, with status 406.
        self._send("put", path, attempted, body=body, header_params={"Accept": "*/*"})

    def watch(self, path: str, attempted: str, seconds: int, **query: str | int) -> Iterator[Any]:
        """The events of a list as they come, until the server ends the stream after so many seconds."""
        query_params = [*query.items(), ("watch", "true"), ("timeoutSeconds", seconds)]
        try:
            response = self._open("get", path, self.patience + seconds, query_params=query_params)
            with contextlib.closing(response):
                yield from map(json.loads, _lines(response.stream(amt=None)))
        except TRANSPORT_ERRORS as error:
            raise failure(error, attempted, self.server) from error
        except (ValueError, RecursionError) as error:
            raise _not_json(error, attempted, self.server) from error

    def _open(self, method: str, path: str, read_timeout: float, **arguments: Any) -> Any:
        dynamic = self._reader if method == "get" else self._writer
        timeout = (self.patience, read_timeout)
        return dynamic.request(method, path, serialize=False, _request_timeout=timeout, **arguments)

    def _send(self, method: str, path: str, attempted: str, **arguments: Any) -> Any:
        """The bytes of the answer."""
        try:
            return self._open(method, path, self.patience, **arguments).data
        except TRANSPORT_ERRORS as error:
            raise failure(error, attempted, self.server) from error

    def _request(self, method: str, path: str, attempted: str, **arguments: Any) -> Any:
        content = self._send(method, path, attempted, **arguments)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _not_json(error, attempted, self.server) from error


def connect(module: AnsibleK8SModule, timeout: float) -> Client:
    """Connect with the module's options, K8S_AUTH_* variables, the pod's service account or the default kubeconfig."""
    return _connected(lambda: get_api_client(module).client, module.params.get("host"), timeout)


def connect_by(options: Mapping[str, Any], timeout: float) -> Client:
    """As `connect` does, with a module's options where there is no module. Raises Failure."""
    return _connected(lambda: get_api_client(**options).client, options.get("host"), timeout)


def _connected(dial: Callable[[], Any], host: str | None, timeout: float) -> Client:
    """kubernetes.core asks the server for its APIs at once, and without any limit of time.

    A server that never answers would hold the task for minutes. So it does that beside, and is left alone after
    `timeout` seconds.
    """
    outcome: list[Any] = []

    def attempt() -> None:
        try:
            outcome.append(dial())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    # Whatever the kubeconfig says, its path included, is a secret to Ansible and would be struck from the message.
    where = host or "the server of the kubeconfig"
    result = outcome[0] if outcome else TimeoutError()
    if not isinstance(result, BaseException):
        return Client(result, timeout)
    if isinstance(result, _SETTINGS_ERRORS):
        message = f"its settings are not usable, {_first_line(result)}"
        raise Failure(_CONNECT, where, message, _SETTINGS_REMEDY, reason="SettingsInvalid") from result
    if isinstance(result, TRANSPORT_ERRORS):
        raise failure(result, _CONNECT, where) from result
    raise result


def _without_retries(dynamic: Any) -> Any:
    """The same client with connections of its own, on which every request goes out once.

    urllib3 repeats a PUT or DELETE whose answer it misses, and whatever it is redirected with: the server may have done
    it by then, and a VM would be restarted twice. Whoever asks looks first, and asks again then.
    """
    once = copy.copy(dynamic.configuration)
    once.retries = False
    client = copy.copy(dynamic.client)
    client.rest_client = type(client.rest_client)(once)
    writer = copy.copy(dynamic)
    writer.client = client
    return writer


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The whole lines of a stream; what a broken connection left of a last one is dropped."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _not_json(error: Exception, attempted: str, server: str) -> Failure:
    if isinstance(error, RecursionError):
        return Failure(
            attempted,
            server,
            "an object in the answer nests deeper than can be read",
            "Find it among those that were asked for, and remove it.",
            reason="NestsTooDeep",
        )
    return Failure(
        attempted,
        server,
        "the answer is not JSON",
        "Check that the address is that of an API server, not of a web page or proxy before it.",
        reason="NotJson",
    )


def _first_line(error: BaseException) -> str:
    """The first line only: YAML's errors go on with the text of the file, which may hold a key."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
