# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels by which KubeVirt finds nodes and pods, and all labels of launcher pods.

The names follow kubevirt.io/api/core/v1/types.go. Those of nodes come from virt-handler's node labeller; a name with a
slash at its end is completed by what is meant.

By those of launcher pods, of a start and of a migration, affinity terms and disruption budgets find them. They follow
podLabels in pkg/virt-controller/services/template.go, pkg/util/net/dns/sanitize.go and pkg/apimachinery/labels.go.
"""

from __future__ import annotations

import hashlib
from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

ARCHITECTURE: Final = "kubernetes.io/arch"

SCHEDULABLE: Final = "kubevirt.io/schedulable"
CPU_MANAGER: Final = "kubevirt.io/cpumanager"
REALTIME: Final = "kubevirt.io/realtime"
SEV: Final = "kubevirt.io/sev"
SEV_ES: Final = "kubevirt.io/sev-es"
SEV_SNP: Final = "kubevirt.io/sev-snp"
SECURE_EXECUTION: Final = "kubevirt.io/s390-pv"
TDX: Final = "kubevirt.io/tdx"
OBSOLETE_HOST_MODEL: Final = "node-labeller.kubevirt.io/obsolete-host-model"
CPU_MODEL: Final = "cpu-model.node.kubevirt.io/"
CPU_FEATURE: Final = "cpu-feature.node.kubevirt.io/"
CPU_VENDOR: Final = "cpu-vendor.node.kubevirt.io/"
HYPERV_LABEL: Final = "hyperv.node.kubevirt.io/"
MACHINE_TYPE: Final = "machine-type.node.kubevirt.io/"
TSC_FREQUENCY: Final = "scheduling.node.kubevirt.io/tsc-frequency-"
# What a node's own CPU is, what it needs for that, and for which nodes' CPUs it can stand in.
HOST_MODEL: Final = "host-model-cpu.node.kubevirt.io/"
HOST_MODEL_FEATURE: Final = "host-model-required-features.node.kubevirt.io/"
HOST_MODEL_MIGRATION: Final = "cpu-model-migration.node.kubevirt.io/"

CREATED_BY: Final = "kubevirt.io/created-by"
MIGRATION_JOB: Final = "kubevirt.io/migrationJobUID"

_MESH = "istio.io"
_ISTIO = "sidecar.istio.io/inject"
_LONGEST = 63
_HASH = 8
# Labels that stay as the running pod has them.
_PINNED = ("kubevirt.io", CREATED_BY, "vm.kubevirt.io/name", "vmi.kubevirt.io/id")
# Of labels of these domains it is known who gives them: KubeVirt, and the API server together with a node.
_KNOWN = ("kubevirt.io", "topology.kubernetes.io")


def pod_labels(vmi: Object) -> dict[str, str]:
    """Those of the pod that a VMI is started in."""
    metadata = vmi["metadata"]
    labels = {
        **(metadata.get("labels") or {}),
        "kubevirt.io": "virt-launcher",
        CREATED_BY: metadata["uid"],
        "vm.kubevirt.io/name": _host_name(vmi),
        "vmi.kubevirt.io/id": _identifier(metadata["name"]),
    }
    mesh = (metadata.get("annotations") or {}).get(_ISTIO)
    return labels if mesh is None else {**labels, _ISTIO: mesh}


def _host_name(vmi: Object) -> str:
    name = str(vmi["metadata"]["name"]).split(".", maxsplit=1)[0]
    return str(vmi["spec"].get("hostname") or name[:_LONGEST])


def _identifier(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    # KubeVirt's choice; nothing secret hangs on it.
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: _LONGEST - _HASH - 1]}-{digest[:_HASH]}"


def target_labels(vmi: Object, source_pod: Object) -> dict[str, str]:
    """Those of a migration's target pod: of the VMI as it is now, and KubeVirt's own, the migration's uid left empty.

    What the running pod has beside them was taken from the VMI since, or came from a webhook, which may give it again:
    a service mesh does if the VMI wants it.
    """
    before, found = source_pod["metadata"].get("labels") or {}, pod_labels(vmi)
    pinned = {key: before[key] for key in _PINNED if key in before}
    wanted = found.get(_ISTIO) == "true"
    mesh = {key: value for key, value in before.items() if wanted and _is_of(key, _MESH)}
    return {**mesh, **found, **pinned, MIGRATION_JOB: ""}


def doubtful_labels(source_pod: Object, target_pod: Object) -> list[str]:
    """Keys of those of the running pod that the target pod may have, too."""
    before, found = (pod["metadata"].get("labels") or {} for pod in (source_pod, target_pod))
    return sorted(key for key in before.keys() - found.keys() if not any(_is_of(key, domain) for domain in _KNOWN))


def _is_of(key: str, domain: str) -> bool:
    prefix = key.partition("/")[0]
    return prefix == domain or prefix.endswith(f".{domain}")
