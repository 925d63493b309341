# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of instance types, of preferences, and of the revisions of both that VMs go by.

What a preference says of disks, sound, input or clocks never shows in a launcher pod.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import fields, resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection_kubevirt import (
    ANNOTATIONS,
    LAUNCH_SECURITY,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import Misfit
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes_instance_types import SPECS

_INSTANCE_TYPE = fields(
    "cpu gpus hostDevices ioThreads ioThreadsPolicy memory nodeSelector schedulerName",
    annotations=ANNOTATIONS,
    launchSecurity=LAUNCH_SECURITY,
)

_PREFERENCE = fields(
    "cpu machine preferSpreadSocketToCoreRatio preferredArchitecture preferredTerminationGracePeriodSeconds "
    "requirements",
    annotations=ANNOTATIONS,
    devices=fields(
        "preferredAutoattachGraphicsDevice preferredAutoattachPodInterface preferredAutoattachSerialConsole "
        "preferredInterfaceModel preferredTPM"
    ),
    features=fields("preferredHyperv"),
    firmware=fields("preferredEfi preferredUseBios preferredUseEfi"),
)

_BY_KIND = {
    "VirtualMachineInstancetype": _INSTANCE_TYPE,
    "VirtualMachineClusterInstancetype": _INSTANCE_TYPE,
    "VirtualMachinePreference": _PREFERENCE,
    "VirtualMachineClusterPreference": _PREFERENCE,
}


def _stored(data: Any) -> Any:
    """The object that a revision holds; of one that is neither an instance type nor a preference only the kind.

    The API server takes anything, so what cannot be read as one is left out, too.
    """
    if not isinstance(data, dict):
        return None
    named = {name: data[name] for name in ("apiVersion", "kind") if isinstance(data.get(name), str)}
    kind = named.get("kind") or ""
    if kind in _BY_KIND and _fits(kind, data.get("spec")):
        return {**named, "spec": _BY_KIND[kind](data["spec"])}
    return named


def _fits(kind: str, spec: Any) -> bool:
    try:
        SPECS[kind](spec)
    except Misfit:
        return False
    return True


INSTANCE_TYPE = resource(spec=_INSTANCE_TYPE)
PREFERENCE = resource(spec=_PREFERENCE)
REVISION = resource(data=_stored)
