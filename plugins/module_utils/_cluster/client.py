# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to the Kubernetes API: JSON in, JSON out, and every failure a Failure.

Credentials and addresses are kubernetes.core's business, so all its options and variables work. Requests are raw: the
typed models of the client library take ten times as long to build as the JSON takes to decode.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import TRANSPORT_ERRORS, failure

try:
    from yaml import YAMLError
except ImportError:  # AnsibleK8SModule requires PyYAML
    YAMLError = ValueError  # type: ignore[assignment,misc]

_CONNECT = "connect to the Kubernetes API"
_SETTINGS_REMEDY = "Check the kubeconfig and its context, or the connection options of the task."
# What reading a kubeconfig raises when it is no kubeconfig; kubernetes.core passes most of it on.
_SETTINGS_ERRORS = (CoreException, YAMLError, ValueError, TypeError, KeyError, AttributeError)


class Client:
    """Thread-safe. `server`: the API's address. `timeout`: seconds to connect, and for each part of an answer."""

    def __init__(self, dynamic: Any, timeout: float) -> None:
        self.server: str = dynamic.configuration.host
        self._dynamic = dynamic
        self._timeout = timeout

    def get(self, path: str, attempted: str, **query: str | int) -> Any:
        return self._request("get", path, attempted, query_params=list(query.items()))

    def post(self, path: str, attempted: str, body: dict[str, Any]) -> Any:
        return self._request("post", path, attempted, body=body)

    def _request(self, method: str, path: str, attempted: str, **arguments: Any) -> Any:
        timeout = (self._timeout, self._timeout)
        try:
            response = self._dynamic.request(method, path, serialize=False, _request_timeout=timeout, **arguments)
            content = response.data
        except TRANSPORT_ERRORS as error:
            raise failure(error, attempted, self.server) from error
        try:
            return json.loads(content)
        except ValueError as error:
            raise Failure(
                attempted,
                self.server,
                "the answer is not JSON",
                "Check that the address is that of an API server, not of a web page or proxy before it.",
                reason="NotJson",
            ) from error


def connect(module: AnsibleK8SModule, timeout: float) -> Client:
    """Connect with the module's options, K8S_AUTH_* variables, the pod's service account or the default kubeconfig.

    kubernetes.core asks the server for its APIs at once, and without any limit of time: a server that never answers
    would hold the task for minutes. So it does that beside, and is left alone after `timeout` seconds.
    """
    outcome: list[Any] = []

    def attempt() -> None:
        try:
            outcome.append(get_api_client(module).client)
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    # Whatever the kubeconfig says, its path included, is a secret to Ansible and would be struck from the message.
    where = module.params.get("host") or "the server of the kubeconfig"
    result = outcome[0] if outcome else TimeoutError()
    if not isinstance(result, BaseException):
        return Client(result, timeout)
    if isinstance(result, _SETTINGS_ERRORS):
        message = f"its settings are not usable, {_first_line(result)}"
        raise Failure(_CONNECT, where, message, _SETTINGS_REMEDY, reason="SettingsInvalid") from result
    if isinstance(result, TRANSPORT_ERRORS):
        raise failure(result, _CONNECT, where) from result
    raise result


def _first_line(error: BaseException) -> str:
    """The first line only: YAML's errors go on with the text of the file, which may hold a key."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
