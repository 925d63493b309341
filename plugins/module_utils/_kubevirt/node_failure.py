# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long Kubernetes leaves the pods of a node alone that it has lost.

Follows pkg/controller/tainteviction/taint_eviction.go of Kubernetes: a lost node gets a taint, and each pod is deleted
when it has tolerated that long enough. Nobody is left there to confirm the deletion, so the pod stays until the node is
back, is fenced (taint node.kubernetes.io/out-of-service), is deleted, or somebody forces the deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import Taint, toleration

Object = Mapping[str, Any]

UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
# What admission gives to pods that do not say.
DEFAULT_SECONDS = 300


def seconds_until_deletion(pod: Object | None) -> int | None:
    """From the taint on; None for never. Without a pod, that of one that does not say."""
    if pod is None:
        return DEFAULT_SECONDS
    tolerating = [entry for entry in pod["spec"].get("tolerations") or () if toleration(entry).tolerates(UNREACHABLE)]
    limits = [entry["tolerationSeconds"] for entry in tolerating if entry.get("tolerationSeconds") is not None]
    if not tolerating:
        return 0
    return max(0, min(limits)) if limits else None
