# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API that takes one token at a time, and the credentials of those who ask it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client

from testbed.pki import Authority
from unit.plugins.support.fake_api import serving
from unit.plugins.support.object_api import NODES, ObjectApi

NODE = f"{NODES}/n1"
PAST = "2020-01-01T00:00:00Z"


@contextmanager
def taking_a_token(authority: Authority, host: str) -> Iterator[ObjectApi]:
    """The API, with a node; its certificate is of that host."""
    fake = ObjectApi()
    fake.token = "first"  # guards nothing
    fake.add_node("n1", {"old": "1"})
    with serving(fake, authority.issue("server", "server", hosts=[host])):
        yield fake


def give(kubeconfig: Path, **user: Any) -> None:
    """From now on, these credentials."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"][0]["user"] = user
    kubeconfig.write_text(yaml.safe_dump(content))


def forget(kubeconfig: Path) -> None:
    """What the server offers: folders for such files are emptied now and then."""
    for remembered in kubeconfig.parent.glob("k8srcp-*"):
        remembered.unlink()


def read(client: Client) -> object:
    return client.get(NODE, "read")["metadata"]["labels"]


def write(client: Client) -> object:
    return client.patch(NODE, "change", {"metadata": {"labels": {"old": "1"}}})["metadata"]["labels"]


def exec_by(script: str) -> dict[str, Any]:
    """Credentials that a program prints."""
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]}}


def printed(token: str, until: str = PAST) -> str:
    status = {"token": token, "expirationTimestamp": until}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo '{json.dumps(answer)}'"


def oidc(until: str, provider: str, authority: Path | None = None) -> dict[str, Any]:
    """Credentials that an identity provider is asked for when their token, which it has given before, has run out.

    authority: the certificate of the one that knows the provider; None trusts any.
    """
    claims = json.dumps({"exp": int(datetime.fromisoformat(until).timestamp())}).encode()
    token = f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.e30"
    config = {"client-id": "me", "client-secret": "", "refresh-token": "r", "idp-issuer-url": provider}
    if authority is not None:
        config["idp-certificate-authority"] = str(authority)
    return {"auth-provider": {"name": "oidc", "config": {**config, "id-token": token}}}
