# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dial the API server: as kubernetes.core does, whose options, variables and files all work, but soon, and once.

Reading credentials may run a program that never ends, and kubernetes.core asks the server for its APIs at once, without
any limit of time. So both are done beside, and left alone after a while.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from traceback import walk_tb
from typing import Any, TypeVar, cast

from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as kubernetes_core
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.core import AnsibleK8SModule
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.translation import (
    PROVIDER_REMEDY,
    TRANSPORT_ERRORS,
    failure,
    not_json,
    ungranted,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

try:
    import oauthlib.oauth2 as oauth2_errors
    import urllib3.exceptions as urllib3_errors
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION, KubeConfigMerger
    from yaml import YAMLError
except ImportError:  # AnsibleK8SModule says which library is missing before any of this is used
    _SETTINGS_ERRORS: tuple[type[BaseException], ...] = ()
    _GRANT_ERRORS: tuple[type[BaseException], ...] = ()
else:
    # What asking an identity provider raises that answers, and gives no token.
    _GRANT_ERRORS = (oauth2_errors.OAuth2Error,)
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

_Result = TypeVar("_Result")
_CONNECT = "connect to the Kubernetes API"
# Seconds in which a file is read that does not hang.
_A_MOMENT = 1.0
# Seconds after which a reading that is late is first taken for one that never ends.
_HANGS_FOR_GOOD = 10.0
# Seconds for which credentials are used that have come late.
_STAYS_FRESH = 60.0
LATE, UNREAD = "CredentialsLate", "CredentialsUnread"
# The function of the client library that asks an identity provider; its own are the lines that use the answer.
_ASKING = "_refresh_oidc"
_SETTINGS_REMEDY = "Check the kubeconfig and its context, or the connection options of the task."
_LATE_REMEDY = "Run it by hand to see what it waits for. If it is only slow, raise request_timeout."


class Dialled:
    """kubernetes.core's client, on which every request goes out once, and all with the same credentials.

    So it can be told which ones a request has borne that is refused, while others have renewed them.
    """

    def __init__(self, dynamic: Any, dialler: Dialler) -> None:
        self._renew = dynamic.configuration.refresh_api_key_hook
        self.client = _alone(dynamic)
        self._dialler = dialler

    @property
    def configuration(self) -> Any:
        return self.client.configuration

    def ready(self, seconds: float) -> Dialled:
        """Itself, or another one with a newer token if its own has run out and can be renewed.

        Raises Failure if that takes longer. Why it cannot be told else shows when the server refuses the old one.
        """
        if self._renew is None:
            return self
        # It writes all it knows to what it is given, and hangs itself on that.
        given = copy.copy(self.configuration)
        given.api_key = dict(given.api_key)
        with contextlib.suppress(*_SETTINGS_ERRORS, *_GRANT_ERRORS, *TRANSPORT_ERRORS):
            self._dialler.read(lambda: self._renew(given), seconds)
        if given.api_key == self.configuration.api_key:
            return self
        used, newer = copy.copy(self.configuration), copy.copy(self)
        used.api_key = dict(given.api_key)
        newer.client = _by(self.client, used)
        return newer


class Dialler:
    """Makes the client, from what options, variables and files say by now.

    module: whose options they are, or `options` where there is no module. patience: seconds for reading credentials,
    where that may take longer than a request.
    """

    def __init__(
        self, module: AnsibleK8SModule | None, options: Mapping[str, Any], patience: float | None = None
    ) -> None:
        self._module, self._options = module, options
        self.patience = patience
        self._lock = threading.Lock()
        self._late: list[_Late] = []
        self._found: list[_Late] = []
        # Whether the last reading of the settings was one that had come late.
        self.gave_leftover = False
        # When another reading may begin beside one that hangs, and how long that was waited for.
        self._begins_anew, self._pause = 0.0, 0.0
        # The path of a kubeconfig is a secret to Ansible and would be struck from the message.
        host = (module.params if module else options).get("host")
        self._where = without_user(str(host or "the server of the kubeconfig"))

    def dialled(self, seconds: float) -> Dialled:
        """seconds: for reading the credentials, and for the server. Raises Failure."""
        where = self._where
        try:
            configuration, headers = self._configuration(seconds)
            where = without_user(str(configuration.host))
            # What urllib3 repeats by itself it repeats when the server says so, after a day if that says a day.
            configuration.retries = False
            dynamic = _in_time(lambda: _asked(configuration, headers), seconds)
        except _SETTINGS_ERRORS as error:
            # Not from the error, whose text Ansible would show with its traceback.
            raise unusable_settings(error, _CONNECT, where) from None
        except _Late:
            raise failure(TimeoutError(), _CONNECT, where) from None
        except TRANSPORT_ERRORS as error:
            raise failure(error, _CONNECT, where, always_served=True) from error
        return Dialled(dynamic, self)

    def _configuration(self, seconds: float) -> tuple[Any, JsonObject]:
        """Raises Failure where an identity provider cannot be asked: that says nothing of the API server."""
        try:
            return self.read(self._settings, seconds)
        except _SETTINGS_ERRORS as error:  # some are errors of the transport as well
            if _is_in_an_answer(error):
                raise ungranted(error, _CONNECT, self._where, UNREAD) from None
            raise
        except _GRANT_ERRORS as error:
            raise ungranted(error, _CONNECT, self._where, UNREAD) from None
        except TRANSPORT_ERRORS as error:
            failed = failure(error, _CONNECT, "", always_served=True)
            words = failed.message.replace("the API server", "that server")
            message = f"what the credentials are read from cannot be read, {words}"
            if failed.where:
                message = f"the identity provider {without_user(failed.where)} gives no token: {words}"
            raise Failure(
                _CONNECT,
                self._where,
                message,
                PROVIDER_REMEDY if failed.where or failed.status else _SETTINGS_REMEDY,
                reason=UNREAD,
                unanswered=failed.passing,
                unsent=True,
                retry_after=failed.retry_after,
            ) from error

    def begin_anew(self) -> None:
        """Let the next reading begin beside those that hang."""
        self._pause = 0.0

    def read(self, credentials: Callable[[], _Result], seconds: float) -> _Result:
        """Raises Failure if they do not come in time, and what reading them raises.

        While one reading hangs others are begun ever more rarely: each leaves a program behind that waits as well. But
        it may hang for good, on a connection that is dead, when others get an answer. What the settings give late is
        what the next reading of them gives.
        """
        allowed = self.patience or seconds
        with self._lock:
            if over := [late for late in self._late if late.is_over]:
                self._late, self._pause = [late for late in self._late if late not in over], 0.0
                self._found = [late for late in (*self._found, *over) if late.is_fresh]
            leftover = next((late for late in self._found if late.work == credentials and late.is_fresh), None)
            if credentials == self._settings:  # others ask beside, by what is no reading of these
                self.gave_leftover = leftover is not None
            if leftover is not None:
                self._found.remove(leftover)
                return cast("_Result", leftover.result)
            if not self._pause or clock.now() >= self._begins_anew:
                try:
                    return _in_time(credentials, allowed)
                except _Late as late:
                    self._late.append(late)
                    self._pause = max(_HANGS_FOR_GOOD, 2 * self._pause)
                    self._begins_anew = clock.now() + self._pause
        plugin = self._plugin_in_time()
        who = f"the command {plugin} of the kubeconfig" if plugin else "what the credentials are read from"
        message = f"{who} gave none within {allowed:g} seconds"
        raise Failure(_CONNECT, self._where, message, _LATE_REMEDY, reason=LATE)

    def _settings(self) -> tuple[Any, JsonObject]:
        """As get_api_client reads them, which then asks the server by what urllib3 repeats."""
        configuration = kubernetes_core._create_configuration(self._given())
        _trim(configuration)
        if configuration.refresh_api_key_hook is not None:
            configuration.refresh_api_key_hook = _trimming(configuration.refresh_api_key_hook)
        return configuration, kubernetes_core._create_headers(self._module, **self._options)

    def _given(self) -> JsonObject:
        """The options and variables, by the names of the client library."""
        given: JsonObject = kubernetes_core._create_auth_spec(self._module, **self._options)
        return given

    def _plugin_in_time(self) -> str:
        """The kubeconfig itself may be what hangs."""
        try:
            return _in_time(self._plugin, _A_MOMENT)
        except _Late:
            return ""

    def _plugin(self) -> str:
        """The command of the kubeconfig that gives the credentials, without arguments; empty if there is none."""
        given = self._given()
        kubeconfig = given.get("kubeconfig") or KUBE_CONFIG_DEFAULT_LOCATION
        with contextlib.suppress(*_SETTINGS_ERRORS, OSError):
            config = kubeconfig if isinstance(kubeconfig, dict) else KubeConfigMerger(kubeconfig).config.value
            context = _named(config["contexts"], given.get("context") or config["current-context"])["context"]
            return str(_named(config["users"], context["user"])["user"]["exec"]["command"])
        return ""


class _Late(Exception):
    """It is not done in time. thread: in which it goes on. results: what has come of it, and when."""

    def __init__(self, work: Callable[[], Any], thread: threading.Thread, results: list[tuple[Any, float]]) -> None:
        super().__init__()
        self.work = work
        self._thread, self._results = thread, results

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def result(self) -> Any:
        return self._results[0][0]

    @property
    def is_fresh(self) -> bool:
        """Whether there is a result, and not so old that it may have run out."""
        return any(clock.now() - done_at < _STAYS_FRESH for _value, done_at in self._results)


def _in_time(work: Callable[[], _Result], seconds: float) -> _Result:
    """Raises _Late, and what the work raises."""
    results: list[tuple[_Result, float]] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append((work(), clock.now()))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise _Late(work, thread, results)
    return results[0][0]


def _asked(configuration: Any, headers: Mapping[str, Any]) -> Any:
    """kubernetes.core's client, which has asked for the APIs. Raises Failure for anything else in place of them."""
    try:
        return kubernetes_core.create_api_client(configuration, **headers)
    except (AttributeError, LookupError, TypeError) as error:
        # While it is sent, such an error is one of settings, such as a number in place of a name.
        if "call_api" in _passed(error):
            raise
        # The client library gives what is not JSON on as it is, and looks for groups in whatever is.
        page = getattr(error, "obj", None)
        text = page if isinstance(page, str) else None
        raise not_json(text, HTTPStatus.OK, _CONNECT, without_user(str(configuration.host))) from error


def _is_in_an_answer(error: BaseException) -> bool:
    """Whether it is about what an identity provider has answered, and not about what it was asked by."""
    passed = _passed(error)
    if passed[-1] == _ASKING:
        return isinstance(error, (KeyError, TypeError))
    return _ASKING in passed and isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))


def _passed(error: BaseException) -> list[str]:
    """The functions by which it came, the one last that has raised it."""
    return [frame.f_code.co_name for frame, _line in walk_tb(error.__traceback__)]


def _alone(dynamic: Any) -> Any:
    """The same client with connections of its own, on which every request goes out once.

    kubernetes.core keeps its clients for a process, in which others may have made them. urllib3 repeats a PUT or DELETE
    whose answer it misses, whatever it is redirected with, and waits for as long as a server says: a VM would be
    restarted twice, and a task sleep for a day. What is sent again is decided in one place.
    """
    once = copy.copy(dynamic.configuration)
    once.retries = False
    once.refresh_api_key_hook = None
    once.api_key = dict(once.api_key)
    alone = _by(dynamic, once)
    alone.client.rest_client = type(alone.client.rest_client)(once)
    return alone


def _by(dynamic: Any, configuration: Any) -> Any:
    """The same client, on the same connections, with another configuration."""
    client, other = copy.copy(dynamic.client), copy.copy(dynamic)
    client.configuration = other.configuration = configuration
    other.client = client
    return other


def _named(entries: list[JsonObject], name: str) -> JsonObject:
    """Raises LookupError."""
    return {entry["name"]: entry for entry in entries}[name]


def _trim(configuration: Any) -> None:
    """Take from tokens what a file has around them, such as its last line break, as kubectl does."""
    kinds = {name: key.partition(" ") for name, key in configuration.api_key.items()}
    configuration.api_key = {name: f"{kind}{space}{key.strip()}" for name, (kind, space, key) in kinds.items()}


def _trimming(renew: Callable[[Any], None]) -> Callable[[Any], None]:
    """The same hook, which hangs itself on the configuration that it renews."""

    def renew_trimmed(configuration: Any) -> None:
        renew(configuration)
        _trim(configuration)
        configuration.refresh_api_key_hook = renew_trimmed

    return renew_trimmed


def without_user(address: str) -> str:
    """An address without the user name and password that it may have."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://|//)?.*@", lambda found: found[1] or "", address)


def unusable_settings(error: BaseException, attempted: str, where: str) -> Failure:
    """What to tell where settings cannot be used."""
    message = f"its settings are not usable, {_words(error)}"
    return Failure(attempted, where, message, _SETTINGS_REMEDY, reason="SettingsInvalid")


def _words(error: BaseException) -> str:
    """Of errors that quote what they cannot use nothing more than what that is: it may be a token or a password.

    Else the first line only: YAML's errors go on with the text of the file, which may hold a key.
    """
    text = str(error).strip()
    if isinstance(error, urllib3_errors.LocationValueError) or text.startswith("Port "):
        return (
            "the address of the server or of a proxy cannot be read. A user name or password in it has to be %-encoded"
        )
    if isinstance(error, ValueError) and "header" in text.lower():
        return "the token, or what else is sent with a request, holds a line break"
    return (text.splitlines() or [type(error).__name__])[0]
