# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What access_kubeconfig takes, writes and gives back."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

try:
    import yaml
except ImportError:  # of what kubectl has written anew nothing can be told then
    _READERS: tuple[Callable[[str], Any], ...] = (json.loads,)
    _NOT_READABLE: tuple[type[Exception], ...] = (ValueError, RecursionError)
else:
    _READERS = (json.loads, yaml.safe_load)
    _NOT_READABLE = (ValueError, RecursionError, yaml.YAMLError)

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.tokens import (
    AccountToken,
    find_account,
    make_token,
    read_token,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module

_WHAT = "the credentials"
# Kubernetes gives no token for less, in seconds.
_SHORTEST = 600


def spec() -> ArgumentSpec:
    return {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "path": {"type": "path", "required": True},
        "format": {"type": "str", "choices": ["kubeconfig", "token"], "default": "kubeconfig"},
        "expiration": {"type": "int", "default": 86400},
    }


def check(params: Mapping[str, Any]) -> None:
    """Raises InvalidRequest, and Failure for a path that cannot be written."""
    attempted, done = ("make a token", "written") if params["state"] == "present" else (f"remove {_WHAT}", "removed")
    if problems := list(_problems(params)):
        raise InvalidRequest(attempted, problems, f"Correct the task; nothing was {done}.")
    if params["state"] == "present":
        private_file.check_writable(Path(params["path"]), _WHAT)


def write(module: Module, client: Client) -> JsonObject:
    """Raises Failure."""
    params, path = module.params, Path(module.params["path"])
    account = find_account(client, params["namespace"], params["name"])
    if account is None and not module.check_mode:
        raise _no_account(client, params)
    there = _good_token(path, client, params, account)
    token = there
    if token is None and not module.check_mode:
        token = make_token(client, params["namespace"], params["name"], params["expiration"])
    changed = there is None or not private_file.has_mode(path)
    if changed and token is not None and not module.check_mode:
        private_file.write(path, [_content(token.text, client, params).encode()], _WHAT)
    expires = token.expires.strftime("%Y-%m-%dT%H:%M:%SZ") if token else None
    return {"changed": changed, "path": str(path.absolute()), "expires_at": expires}


def remove(module: Module) -> JsonObject:
    """Of this account alone: whatever else a path may name, nobody has meant that. Raises Failure."""
    params, path = module.params, Path(module.params["path"])
    is_there = os.path.lexists(path)
    if is_there:
        token = read_token(_token_in(_text_of(path)))
        if token is None or token.title != f"{params['namespace']}/{params['name']}":
            raise Failure(
                f"remove {_WHAT}",
                str(path),
                f"it holds no token of service account {params['namespace']}/{params['name']} alone"
                + (f", but one of {token.title}" if token else ""),
                "Correct the path, or remove the file yourself if it is not needed any more; nothing was removed.",
            )
        private_file.check_removable(path, _WHAT)
        if not module.check_mode:
            private_file.remove(path, _WHAT)
    return {"changed": is_there, "path": str(path.absolute()), "expires_at": None}


def _good_token(path: Path, client: Client, params: Mapping[str, Any], account: str | None) -> AccountToken | None:
    """The token that the file holds, if the file is as it should be and lasts for half of the wanted time at least."""
    if not path.is_file():
        return None
    text = _text_of(path)
    token = read_token(_token_in(text))
    if token is None or token.account != account or text != _content(token.text, client, params):
        return None
    left = (token.expires - datetime.now(timezone.utc)).total_seconds()
    return token if params["expiration"] / 2 <= left <= params["expiration"] else None


def _text_of(path: Path) -> str:
    """Raises Failure."""
    return private_file.read(path, _WHAT, "access_kubeconfig").decode(errors="replace")


def _token_in(text: str) -> str:
    """That of the only user of a kubeconfig, which kubectl writes as YAML when it changes it; or the text itself."""
    for read in _READERS:
        with contextlib.suppress(*_NOT_READABLE, KeyError, TypeError):
            (user,) = read(text)["users"]
            return str(user["user"]["token"])
    return text.strip()


def _content(token: str, client: Client, params: Mapping[str, Any]) -> str:
    if params["format"] == "token":
        return f"{token}\n"
    name, user = "cluster", f"{params['namespace']}/{params['name']}"
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": client.kubeconfig_cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": user, "context": {"cluster": name, "user": user}}],
        "current-context": user,
    }
    # JSON is YAML, and needs no library.
    return json.dumps(kubeconfig, indent=2) + "\n"


def _problems(params: Mapping[str, Any]) -> Iterator[str]:
    yield from name_problems(params, "name", "namespace")
    if params["state"] == "present" and params["expiration"] < _SHORTEST:
        yield f"expiration is {params['expiration']}, but Kubernetes gives no token for less than {_SHORTEST} seconds"


def _no_account(client: Client, params: Mapping[str, Any]) -> Failure:
    return Failure(
        "make a token",
        client.server,
        f"there is no service account {params['namespace']}/{params['name']}",
        "Make it first, as role access does.",
        status=404,
        reason="NotFound",
    )
