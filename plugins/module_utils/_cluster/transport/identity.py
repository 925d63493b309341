# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster answers. An address says nothing: behind it may be another cluster since yesterday."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

OTHER_CLUSTER = "OtherCluster"


def cluster_uid(client: Client) -> str:
    """The uid of namespace kube-system, which lives as long as its cluster. Raises Failure."""
    namespace = client.get("/api/v1/namespaces/kube-system", "read namespace kube-system")
    return str(namespace["metadata"]["uid"])


def require_cluster(client: Client, expected: str) -> None:
    """Raises Failure with reason OtherCluster unless it is this one."""
    require_same(cluster_uid(client), expected, client.server)


def require_same(found: str, expected: str, where: str) -> None:
    """The same of a cluster whose uid has been read. where: from which server or file."""
    if found != expected:
        raise Failure(
            "go on in this cluster",
            where,
            f"it is another cluster than the one that was planned for: its uid is {found}, not {expected}",
            "Point host, kubeconfig and context to the cluster of the plan, or plan anew under a new name.",
            reason=OTHER_CLUSTER,
            details={"cluster_uid": found, "expected_uid": expected},
        )
