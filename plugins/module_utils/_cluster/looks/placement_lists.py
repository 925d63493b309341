# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the scheduler would look at to place a pod now, and nothing else, read from the cluster."""

from __future__ import annotations

import json

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.collector import (
    paused_collector,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.listing import read_lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.permissions import (
    explain_forbidden,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

# KubeVirt's configuration, quotas and classes shape launcher pods; the others are kube-scheduler's.
_ALWAYS = (
    "kubevirts",
    "namespaces",
    "nodes",
    "resourcequotas",
    "limitranges",
    "priorityclasses",
    "runtimeclasses",
    "networkattachmentdefinitions",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "pods",
)
_STORAGE = (
    "pvcs",
    "pvs",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
)
_PAGE_SIZE = 500


def read_placement_lists(client: Client, *, storage: bool) -> Lists:
    """Lists by their names in a snapshot. `storage`: whether the pod has volumes of the cluster. Raises Failure."""
    kinds = [BY_NAME[name] for name in (*_ALWAYS, *(_STORAGE if storage else ()))]
    try:
        with paused_collector():
            lines = read_lists(client, kinds, _PAGE_SIZE)
            return {name: [json.loads(line) for line in found or ()] for name, found in lines.items()}
    except Failure as error:
        if error.status != 403:
            raise
        raise explain_forbidden(client, kinds, error) from error
