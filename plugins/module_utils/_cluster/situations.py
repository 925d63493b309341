# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at what is on a node that is to be emptied."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.evictions import pods_on
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.migrations import API_VERSION, VMIS, unfinished
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.paths import collection_path
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.departures import Situation
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import (
    has_ended,
    of_a_machine,
    stays,
    tolerates_cordon,
)

Object = dict[str, Any]

# virt-controller sets it as soon as the VMI's pod is ready, and virt-handler moves it with a migration.
_NODE_LABEL = "kubevirt.io/nodeName"
_ENDED = ("Succeeded", "Failed")  # phases of a VMI


def look(client: Client, node: str, *, first: Collection[str] | None) -> Situation:
    """first: uids of the pods that were to leave at the first look, None at that one. Raises Failure.

    A pod that has come since was let in by its tolerations, and would come again.
    """
    pods = pods_on(client, node)
    expected = [pod for pod in pods if first is None or pod["metadata"]["uid"] in first or not tolerates_cordon(pod)]
    vmis = _vmis_on(client, node)
    namespaces = sorted({vmi["metadata"]["namespace"] for vmi in vmis})
    found = {name: unfinished(client, name) for name in namespaces}
    return Situation(
        node=node,
        vmis=tuple(vmis),
        pods=tuple(pod for pod in expected if not of_a_machine(pod) and not stays(pod)),
        launchers=tuple(pod for pod in pods if of_a_machine(pod) and not has_ended(pod)),
        migrations={f"{name}/{vmi}": item for name, items in found.items() for vmi, item in items.items()},
    )


def _vmis_on(client: Client, node: str) -> list[Object]:
    query = {"labelSelector": f"{_NODE_LABEL}={node}"}
    page = client.get(collection_path(API_VERSION, None, VMIS), f"list VMIs on node {node}", **query)
    return [vmi for vmi in page["items"] if (vmi.get("status") or {}).get("phase") not in _ENDED]
