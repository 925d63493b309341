# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfigs for service accounts, to try what one with few rights can do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from testbed.api import Api, Object, resource_path
from testbed.home import Home, TestbedError
from testbed.pki import write_kubeconfig
from testbed.waiting import wait_for

_REVIEWS = resource_path("authorization.k8s.io/v1", "subjectaccessreviews")

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


def await_permissions(api: Api, account: str, role: Object) -> None:
    """Return when `NAMESPACE/NAME` may do all that the rules of a Role or ClusterRole allow, and is bound to.

    An API server decides by its own copies of roles and bindings, which hear of a new one a moment after it is written.
    """
    user = f"system:serviceaccount:{account.replace('/', ':')}"
    missing = list(_asked(role))

    def are_granted() -> bool:
        missing[:] = [attributes for attributes in missing if not _is_allowed(api, user, attributes)]
        return not missing

    wait_for(f"{user} to have the permissions of {role['kind']} {role['metadata']['name']}", are_granted, 20, 0.05)


def _asked(role: Object) -> Iterator[Object]:
    place = {"namespace": role["metadata"]["namespace"]} if role["kind"] == "Role" else {}
    for rule in role["rules"]:
        names = rule.get("resourceNames", [""])
        for group, title, name, verb in product(rule["apiGroups"], rule["resources"], names, rule["verbs"]):
            resource, _slash, subresource = title.partition("/")
            what = {"group": group, "resource": resource, "subresource": subresource, "name": name}
            yield {**place, **what, "verb": verb}


def _is_allowed(api: Api, user: str, attributes: Object) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:serviceaccounts"], "resourceAttributes": attributes},
    }
    return bool(api.create(_REVIEWS, review)["status"]["allowed"])
