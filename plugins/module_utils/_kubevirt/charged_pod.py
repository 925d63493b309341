# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration's target pod as a quota charges it.

Where it fits is asked of the running pod's sizes; but KubeVirt renders it anew, and adds limits where a quota wants
them, even if the quota came after the VM was started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration, Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.pod import LauncherError, launcher_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import with_identity

Object = Mapping[str, Any]


def charged_pod(pod: Object, vmi: Object, configuration: Configuration, lists: Lists) -> Object:
    """The target pod with its containers' resources as they will be. Raises `QuantityError`, `SelectorError`."""
    try:
        fresh = launcher_pod(with_identity(vmi), configuration, lists)["spec"]
    except LauncherError:
        return pod
    kinds = ("containers", "initContainers")
    resized = {kind: _resized(pod["spec"].get(kind) or (), fresh.get(kind) or ()) for kind in kinds}
    return {**pod, "spec": {**pod["spec"], **resized}}


def _resized(containers: Sequence[Object], fresh: Sequence[Object]) -> list[Object]:
    """What others have injected stays as it is."""
    found = {container["name"]: container.get("resources") or {} for container in fresh}
    return [
        {**container, "resources": found.get(container["name"], container.get("resources") or {})}
        for container in containers
    ]
