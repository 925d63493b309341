# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection under all requests: dialled by kubernetes.core, whose options, variables and files all work.

Nothing repeats a request down here.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

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

# Makes kubernetes.core's client.
Dial: TypeAlias = Callable[[], Any]
_CONNECT = "connect to the Kubernetes API"
_SETTINGS_REMEDY = "Check the kubeconfig and its context, or the connection options of the task."
# What reading a kubeconfig raises when it is no kubeconfig; kubernetes.core passes most of it on.
_SETTINGS_ERRORS = (CoreException, YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


class Line:
    """The connection itself, with credentials that may be read anew. Thread-safe.

    dial: makes kubernetes.core's client anew, from what its options, variables and files say by now.
    """

    def __init__(self, dial: Dial, dialled: Any) -> None:
        self.dynamic = _without_retries(dialled)
        self._dial = dial
        self._lock = threading.Lock()

    @property
    def configuration(self) -> Any:
        return self.dynamic.configuration

    @property
    def server(self) -> str:
        return str(self.configuration.host)

    def renew(self, refused: Any, seconds: float) -> bool:
        """Whether there are other credentials than those that were refused."""
        with self._lock:
            if self.dynamic is not refused:
                return True
            try:
                renewed = _without_retries(dialled(self._dial, seconds))
            except Failure:  # what was refused says more
                return False
            if _credentials(renewed) == _credentials(refused):
                return False
            self.dynamic = renewed
        return True


def dialled(dial: Dial, timeout: float, where: str = "") -> Any:
    """kubernetes.core asks the server for its APIs at once, and without any limit of time.

    A server that never answers would hold the task for minutes. So it does that beside, and is left alone after
    `timeout` seconds. Raises Failure.
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
    result = outcome[0] if outcome else TimeoutError()
    if not isinstance(result, BaseException):
        return result
    if isinstance(result, _SETTINGS_ERRORS):
        message = f"its settings are not usable, {_first_line(result)}"
        raise Failure(_CONNECT, where, message, _SETTINGS_REMEDY, reason="SettingsInvalid") from result
    if isinstance(result, TRANSPORT_ERRORS):
        raise failure(result, _CONNECT, where, always_served=True) from result
    raise result


def _without_retries(dynamic: Any) -> Any:
    """The same client with connections of its own, on which every request goes out once.

    urllib3 repeats a PUT or DELETE whose answer it misses, whatever it is redirected with, and waits for as long as a
    server says: a VM would be restarted twice, and a task sleep for a day. What is sent again is decided in one place.
    """
    once = copy.copy(dynamic.configuration)
    once.retries = False
    client = copy.copy(dynamic.client)
    client.rest_client = type(client.rest_client)(once)
    alone = copy.copy(dynamic)
    alone.client = client
    return alone


def _credentials(dynamic: Any) -> tuple[object, ...]:
    used = dynamic.configuration
    return (dict(used.api_key), used.username, used.password, _content(used.cert_file), _content(used.key_file))


def _content(path: str | None) -> bytes:
    """Empty if it cannot be read any more."""
    with contextlib.suppress(OSError):
        return Path(path).read_bytes() if path else b""
    return b""


def _first_line(error: BaseException) -> str:
    """The first line only: YAML's errors go on with the text of the file, which may hold a key."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
