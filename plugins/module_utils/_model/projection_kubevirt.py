# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of KubeVirt's objects: what its launcher pods are rendered from, and what decides a VM's fate.

Guests' secrets (cloud-init, sysprep, access credentials, launch measurements) are left out: of a volume that may hold
one only its presence is kept, of probes only their kind, as these add to the launcher pod's memory.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import (
    each,
    explained_conditions,
    fields,
    keys,
    metadata,
    presence,
    resource,
)

_ANNOTATIONS = keys(
    "descheduler.alpha.kubernetes.io/prefer-no-eviction", prefixes=("kubevirt.io/", "alpha.kubevirt.io/")
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

_DOMAIN = fields(
    "cpu devices features ioThreads ioThreadsPolicy machine memory resources clock",
    firmware=fields("bootloader", kernelBoot=fields(container=fields("image imagePullPolicy"))),
    launchSecurity=fields(sev=fields("policy attestation"), snp=presence, tdx=presence),
)

_VMI_SPEC = fields(
    "affinity architecture evictionStrategy networks nodeSelector priorityClassName resourceClaims schedulerName "
    "startStrategy terminationGracePeriodSeconds tolerations topologySpreadConstraints",
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
    annotations=_ANNOTATIONS,
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

_TEMPLATE = fields(metadata=metadata(_ANNOTATIONS), spec=_VMI_SPEC)

VM = resource(
    annotations=_ANNOTATIONS,
    spec=fields(
        "runStrategy running instancetype preference",
        dataVolumeTemplates=each(fields(metadata=fields("name"))),
        template=_TEMPLATE,
    ),
    status=fields("created ready printableStatus runStrategy", conditions=explained_conditions),
)

VMI_REPLICA_SET = resource(
    annotations=_ANNOTATIONS,
    spec=fields("replicas paused selector", template=_TEMPLATE),
    status=fields("replicas readyReplicas labelSelector", conditions=explained_conditions),
)

MIGRATION = resource(
    annotations=_ANNOTATIONS,
    spec=fields("vmiName addedNodeSelector priority", sendTo=presence, receive=presence),
    status=fields("phase", conditions=explained_conditions, migrationState=_MIGRATION_STATE),
)

MIGRATION_POLICY = resource("spec")

KUBEVIRT = resource(
    annotations=_ANNOTATIONS,
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
