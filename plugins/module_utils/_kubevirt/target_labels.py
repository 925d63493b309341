# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of a migration's target pod: those of the VMI as it is now, and KubeVirt's own.

What the running pod has beside them was taken from the VMI since, or came from a webhook, which may give it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod_labels import pod_labels

Object = Mapping[str, Any]

_PINNED = ("kubevirt.io", labels.CREATED_BY, "vm.kubevirt.io/name", "vmi.kubevirt.io/id")
# Of labels of these domains it is known who gives them: KubeVirt, and the API server together with a node.
_KNOWN = ("kubevirt.io", "topology.kubernetes.io")
_MESH = "istio.io"
_MESH_WANTED = "sidecar.istio.io/inject"


def target_labels(vmi: Object, source_pod: Object) -> dict[str, str]:
    """All, the uid of the migration left empty. A service mesh gives its own again if the VMI wants it."""
    before, found = source_pod["metadata"].get("labels") or {}, pod_labels(vmi)
    pinned = {key: before[key] for key in _PINNED if key in before}
    wanted = found.get(_MESH_WANTED) == "true"
    mesh = {key: value for key, value in before.items() if wanted and _is_of(key, _MESH)}
    return {**mesh, **found, **pinned, labels.MIGRATION_JOB: ""}


def doubtful_labels(source_pod: Object, target_pod: Object) -> list[str]:
    """Keys of those of the running pod that the target pod may have, too."""
    before, found = (pod["metadata"].get("labels") or {} for pod in (source_pod, target_pod))
    return sorted(key for key in before.keys() - found.keys() if not any(_is_of(key, domain) for domain in _KNOWN))


def _is_of(key: str, domain: str) -> bool:
    prefix = key.partition("/")[0]
    return prefix == domain or prefix.endswith(f".{domain}")
