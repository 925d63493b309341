# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of a launcher pod, by which affinity terms and disruption budgets find it.

Follows podLabels in pkg/virt-controller/services/template.go, pkg/util/net/dns/sanitize.go and
pkg/apimachinery/labels.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import CREATED_BY

Object = Mapping[str, Any]

_ISTIO = "sidecar.istio.io/inject"
_LONGEST = 63
_HASH = 8


def pod_labels(vmi: Object) -> dict[str, str]:
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
