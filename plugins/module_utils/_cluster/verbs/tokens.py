# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make tokens of service accounts, and tell what one is for. They are secrets: nothing of them is told to anybody."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timezone

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import find
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.paths import object_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import repeatable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject


@dataclass(frozen=True, slots=True)
class AccountToken:
    """`account`: uid of the service account. title: its namespace/name. expires: in UTC."""

    text: str
    account: str
    expires: datetime
    title: str = ""

    def __repr__(self) -> str:
        return f"AccountToken(account={self.account!r}, expires={self.expires})"


def find_account(client: Client, namespace: str, name: str) -> str | None:
    """The uid of a service account, None if there is none. Raises Failure."""
    found = find(client, _path(namespace, name), f"read service account {namespace}/{name}")
    return str(found["metadata"]["uid"]) if found else None


def make_token(client: Client, namespace: str, name: str, seconds: int) -> AccountToken:
    """The server decides in the end how long it lasts. Raises Failure."""
    request: JsonObject = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    path, attempted = f"{_path(namespace, name)}/token", f"make a token of service account {namespace}/{name}"
    answer = client.post(path, attempted, request, done=repeatable)
    text = str(answer["status"]["token"])
    expires = datetime.strptime(answer["status"]["expirationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
    found = read_token(text)
    return AccountToken(text, found.account if found else "", expires)


def read_token(text: str) -> AccountToken | None:
    """What a token says of itself; None if it is none of a service account."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
        own = claims["kubernetes.io"]
        account, title = own["serviceaccount"], f"{own.get('namespace')}/{own['serviceaccount'].get('name')}"
        return AccountToken(text, str(account["uid"]), datetime.fromtimestamp(claims["exp"], tz=timezone.utc), title)
    except (ValueError, RecursionError, IndexError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _path(namespace: str, name: str) -> str:
    return object_path("v1", namespace, "serviceaccounts", name)
