# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of KubeVirt's objects: what its launcher pods are rendered from, and what decides a VM's fate.

Guests' secrets (cloud-init, Ignition, sysprep, access credentials, launch measurements) are left out: of a volume that
may hold one only its presence is kept, of probes only their kind, as these add to the launcher pod's memory.
"""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import embedded
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import (
    each,
    explained_conditions,
    fields,
    keys,
    metadata,
    presence,
    resource,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.secret_fields import (
    HOOK_SIDECARS,
    SECRET_ANNOTATIONS,
)

_HOOK = fields("image", pvc=fields("name"))


def _hooks(text: Any) -> Any:
    """A JSON list of sidecars, without their arguments and scripts. Other text is made empty: no list either."""
    found = embedded(text)
    if not isinstance(found, list) or not all(map(_is_hook, found)):
        return ""
    return json.dumps([_HOOK(hook) for hook in found])


def _is_hook(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("pvc") or {}, dict)


ANNOTATIONS = keys(
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    # By it a service mesh adds containers to the pod.
    "sidecar.istio.io/inject",
    prefixes=("kubevirt.io/", "alpha.kubevirt.io/"),
    but=SECRET_ANNOTATIONS,
    parts={HOOK_SIDECARS: _hooks},
)

_PROBE = fields(exec=presence, guestAgentPing=presence, httpGet=presence, tcpSocket=presence)

_VOLUME = fields(
    "name emptyDisk persistentVolumeClaim dataVolume ephemeral memoryDump downwardMetrics",
    cloudInitConfigDrive=presence,
    cloudInitNoCloud=presence,
    configMap=presence,
    containerDisk=fields("image imagePullPolicy"),
    containerPath=fields("path"),
    downwardAPI=presence,
    hostDisk=fields("capacity path shared type"),
    secret=presence,
    serviceAccount=presence,
    sysprep=presence,
)

LAUNCH_SECURITY = fields(sev=fields("policy attestation"), snp=presence, tdx=presence)

_DOMAIN = fields(
    "cpu devices features ioThreads ioThreadsPolicy machine memory resources clock",
    firmware=fields("bootloader", kernelBoot=fields(container=fields("image imagePullPolicy"))),
    launchSecurity=LAUNCH_SECURITY,
)

_VMI_SPEC = fields(
    "affinity architecture evictionStrategy hostname networks nodeSelector priorityClassName resourceClaims "
    "schedulerName startStrategy terminationGracePeriodSeconds tolerations topologySpreadConstraints",
    domain=_DOMAIN,
    livenessProbe=_PROBE,
    readinessProbe=_PROBE,
    utilityVolumes=each(fields("name claimName")),
    volumes=each(_VOLUME),
)

_MIGRATION_STATE = fields(
    "abortRequested abortStatus completed endTimestamp failed failureReason migrationConfiguration migrationPolicyName "
    "migrationUid mode sourceNode sourcePod startTimestamp targetNode targetPod"
)

VMI = resource(
    annotations=ANNOTATIONS,
    spec=_VMI_SPEC,
    status=fields(
        "activePods changedBlockTracking currentCPUTopology deviceStatus evacuationNodeName "
        "launcherContainerImageVersion machine memory migratedVolumes migrationMethod migrationTransport nodeName "
        "phase qosClass reason runtimeUser selinuxContext topologyHints",
        conditions=explained_conditions,
        migrationState=_MIGRATION_STATE,
        volumeStatus=each(fields("name phase reason hotplugVolume persistentVolumeClaimInfo containerDiskVolume")),
    ),
)

# Replicas are called after their template, if it says how.
_TEMPLATE = fields(metadata=metadata(ANNOTATIONS, "generateName"), spec=_VMI_SPEC)

VM = resource(
    annotations=ANNOTATIONS,
    spec=fields(
        "runStrategy running instancetype preference",
        dataVolumeTemplates=each(fields(metadata=fields("name"))),
        template=_TEMPLATE,
    ),
    status=fields(
        "changedBlockTracking created instancetypeRef preferenceRef ready printableStatus runStrategy",
        conditions=explained_conditions,
    ),
)

VMI_REPLICA_SET = resource(
    annotations=ANNOTATIONS,
    spec=fields("replicas paused selector", template=_TEMPLATE),
    status=fields("replicas readyReplicas labelSelector", conditions=explained_conditions),
)

MIGRATION = resource(
    annotations=ANNOTATIONS,
    spec=fields("vmiName addedNodeSelector priority", sendTo=presence, receive=presence),
    status=fields("phase", conditions=explained_conditions, migrationState=_MIGRATION_STATE),
)

MIGRATION_POLICY = resource("spec")

KUBEVIRT = resource(
    annotations=ANNOTATIONS,
    spec=fields(
        "configuration workloadUpdateStrategy",
        infra=fields("replicas nodePlacement"),
        workloads=fields("replicas nodePlacement"),
    ),
    status=fields(
        "phase observedKubeVirtVersion targetKubeVirtVersion operatorVersion defaultArchitecture",
        conditions=explained_conditions,
    ),
)
