# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of what is read of instance types, of preferences, and of the revisions of both.

Of what a revision holds no API server has seen to the types, so it is asked for each that is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import Shape, each, record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes_core import LABELS, resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes_kubevirt import (
    CPU_FEATURES,
    DEVICE,
    HYPERV,
    LAUNCH_SECURITY,
)

_INSTANCE_TYPE = record(
    "cpu memory",
    texts="ioThreadsPolicy schedulerName",
    annotations=LABELS,
    cpu=record(
        "guest",
        texts="model",
        wholes="guest maxSockets",
        flags="dedicatedCPUPlacement isolateEmulatorThread",
        features=CPU_FEATURES,
        numa=record(guestMappingPassthrough=record()),
        realtime=record(),
    ),
    gpus=each(DEVICE),
    hostDevices=each(DEVICE),
    ioThreads=record(wholes="supplementalPoolThreadCount"),
    launchSecurity=LAUNCH_SECURITY,
    memory=record("guest", amounts="guest maxGuest", wholes="overcommitPercent", hugepages=record(amounts="pageSize")),
    nodeSelector=LABELS,
)

_PREFERENCE = record(
    texts="preferredArchitecture",
    wholes="preferSpreadSocketToCoreRatio preferredTerminationGracePeriodSeconds",
    annotations=LABELS,
    cpu=record(
        texts="preferredCPUTopology",
        preferredCPUFeatures=CPU_FEATURES,
        spreadOptions=record(texts="across", wholes="ratio"),
    ),
    devices=record(
        texts="preferredInterfaceModel",
        flags="preferredAutoattachGraphicsDevice preferredAutoattachPodInterface preferredAutoattachSerialConsole",
        preferredTPM=record(flags="enabled persistent"),
    ),
    features=record(preferredHyperv=HYPERV),
    firmware=record(flags="preferredUseBios preferredUseEfi", preferredEfi=record(flags="persistent secureBoot")),
    machine=record(texts="preferredMachineType"),
    requirements=record(
        texts="architecture",
        cpu=record("guest", wholes="guest"),
        memory=record("guest", amounts="guest"),
    ),
)

SPECS: Mapping[str, Shape] = {
    "VirtualMachineInstancetype": _INSTANCE_TYPE,
    "VirtualMachineClusterInstancetype": _INSTANCE_TYPE,
    "VirtualMachinePreference": _PREFERENCE,
    "VirtualMachineClusterPreference": _PREFERENCE,
}

INSTANCE_TYPE = resource("spec", spec=_INSTANCE_TYPE)
PREFERENCE = resource(spec=_PREFERENCE)
REVISION = resource(data=record())
