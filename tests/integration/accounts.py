# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Service accounts that may do just what the table of rights says of somebody, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import (
    LEASE_NAMESPACE,
    Need,
    Right,
    manifests,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import reasons

from integration.clusters import delete
from testbed.access import await_permissions, service_account_kubeconfig
from testbed.api import Api, Object, object_path
from testbed.handle import RunningTestbed

GROUP = "rbac.authorization.k8s.io"


@contextmanager
def account(
    testbed: RunningTestbed, namespace: str, needs: Iterable[Need], leases: str = LEASE_NAMESPACE
) -> Iterator[str]:
    """A kubeconfig. Of an account in a namespace that is a test's own, and gives its name to all that is made."""
    policies = manifests(namespace, reasons(needs), leases)
    items = [*policies, *(_binding(policy, namespace) for policy in policies)]
    kubeconfig = service_account_kubeconfig(testbed.home, f"{namespace}/limited")
    testbed.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": leases}})
    for item in items:
        testbed.api.apply(item)
    for policy in policies:
        await_permissions(testbed.api, f"{namespace}/limited", policy)
    try:
        yield str(kubeconfig)
    finally:
        for item in items:
            delete(testbed.api, object_path(item))


def regrant(api: Api, name: str, rights: Iterable[Right], leases: str = LEASE_NAMESPACE) -> None:
    """Let the account of that name have these rights from now on."""
    for policy in manifests(name, rights, leases):
        api.apply(policy)


def _binding(policy: Object, namespace: str) -> Object:
    return {
        "apiVersion": policy["apiVersion"],
        "kind": f"{policy['kind']}Binding",
        "metadata": policy["metadata"],
        "roleRef": {"apiGroup": GROUP, "kind": policy["kind"], "name": policy["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": namespace}],
    }
