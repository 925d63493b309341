# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dial the API server: as kubernetes.core does, whose options, variables and files all work, but soon, and once.

Reading credentials may run a program that never ends, and kubernetes.core asks the server for its APIs at once, without
any limit of time. So both are done beside, and left alone after a while.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as kubernetes_core
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.translation import (
    TRANSPORT_ERRORS,
    failure,
)

try:
    from kubernetes.config import ConfigException
    from yaml import YAMLError
except ImportError:  # AnsibleK8SModule requires both
    ConfigException = ValueError
    YAMLError = ValueError  # type: ignore[assignment,misc]

_Result = TypeVar("_Result")
_CONNECT = "connect to the Kubernetes API"
_SETTINGS_REMEDY = "Check the kubeconfig and its context, or the connection options of the task."
# What reading a kubeconfig raises when it is no kubeconfig.
_SETTINGS_ERRORS = (
    ConfigException,
    CoreException,
    YAMLError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)


class Dialled:
    """kubernetes.core's client, on which every request goes out once, with credentials as they were read."""

    def __init__(self, dynamic: Any) -> None:
        self.dynamic = _alone(dynamic)

    @property
    def configuration(self) -> Any:
        return self.dynamic.configuration


class Dialler:
    """Makes the client, from what options, variables and files say by now.

    module: whose options they are, or `options` where there is no module.
    """

    def __init__(self, module: AnsibleK8SModule | None, options: Mapping[str, Any]) -> None:
        self._module, self._options = module, options
        # Whatever the kubeconfig says, its path included, is a secret to Ansible and would be struck from the message.
        self._where = (module.params if module else options).get("host") or "the server of the kubeconfig"

    def dialled(self, seconds: float) -> Dialled:
        """seconds: for reading the credentials, and for the server. Raises Failure."""
        where = self._where
        try:
            configuration, headers = _in_time(self._settings, seconds)
            where = str(configuration.host)
            # What urllib3 repeats by itself it repeats when the server says so, after a day if that says a day.
            configuration.retries = False
            dynamic = _in_time(lambda: kubernetes_core.create_api_client(configuration, **headers), seconds)
        except _SETTINGS_ERRORS as error:
            message = f"its settings are not usable, {_first_line(error)}"
            raise Failure(_CONNECT, where, message, _SETTINGS_REMEDY, reason="SettingsInvalid") from error
        except _Late:
            raise failure(TimeoutError(), _CONNECT, where) from None
        except TRANSPORT_ERRORS as error:
            raise failure(error, _CONNECT, where, always_served=True) from error
        return Dialled(dynamic)

    def _settings(self) -> tuple[Any, dict[str, Any]]:
        """As get_api_client reads them, which then asks the server by what urllib3 repeats."""
        given = kubernetes_core._create_auth_spec(self._module, **self._options)
        configuration = kubernetes_core._create_configuration(given)
        return configuration, kubernetes_core._create_headers(self._module, **self._options)


class _Late(Exception):
    """It is not done in time."""


def _in_time(work: Callable[[], _Result], seconds: float) -> _Result:
    """Raises _Late, and what the work raises."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise _Late
    return results[0]


def _alone(dynamic: Any) -> Any:
    """The same client with connections of its own, on which every request goes out once.

    kubernetes.core keeps its clients for a process, in which others may have made them. urllib3 repeats a PUT or DELETE
    whose answer it misses, whatever it is redirected with, and waits for as long as a server says: a VM would be
    restarted twice, and a task sleep for a day. What is sent again is decided in one place.
    """
    once = copy.copy(dynamic.configuration)
    once.retries = False
    client = copy.copy(dynamic.client)
    client.rest_client = type(client.rest_client)(once)
    alone = copy.copy(dynamic)
    alone.client = client
    return alone


def _first_line(error: BaseException) -> str:
    """The first line only: YAML's errors go on with the text of the file, which may hold a key."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
