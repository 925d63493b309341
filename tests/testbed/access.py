# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfigs for service accounts, to try what one with few rights can do."""

from __future__ import annotations

from pathlib import Path

from testbed.api import Api, resource_path
from testbed.home import Home, TestbedError
from testbed.pki import write_kubeconfig

TOKEN_SECONDS = 24 * 3600


def service_account_kubeconfig(home: Home, account: str) -> Path:
    """Path of a kubeconfig that holds a fresh token of `NAMESPACE/NAME`; namespace and account are made if missing."""
    namespace, slash, name = account.partition("/")
    if not (namespace and slash and name):
        raise TestbedError(f"{account!r} names no service account: write NAMESPACE/NAME.")
    settings = home.settings()
    assert settings is not None, "the caller made sure that the testbed is up"
    with Api(home.kubeconfig()) as api:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
        answer = api.create(
            resource_path("v1", "serviceaccounts", namespace, name) + "/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": TOKEN_SECONDS},
            },
        )
    return write_kubeconfig(
        home.kubeconfig(f"{namespace}.{name}"),
        f"https://127.0.0.1:{settings.ports['api']}",
        home.pki / "ca.crt",
        {"token": answer["status"]["token"]},
    )
