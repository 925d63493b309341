# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of what is read of KubeVirt's objects."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import each, every, record
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes_core import (
    AFFINITY,
    AMOUNTS,
    CONDITIONS,
    LABEL_SELECTOR,
    LABELS,
    NAMED,
    RESOURCES,
    SPREAD,
    TEXTS,
    TOLERATIONS,
    resource,
)

_SWITCH = record(flags="enabled")
HYPERV = record(
    of=dict.fromkeys(
        "evmcs frequencies ipi reenlightenment relaxed reset runtime synic tlbflush vapic vpindex vendorid".split(),
        _SWITCH,
    ),
    synictimer=record(flags="enabled", direct=_SWITCH),
    spinlocks=record(flags="enabled", wholes="spinlocks"),
)
_DISK = record(
    "name",
    texts="name serial",
    wholes="bootOrder",
    cdrom=record(),
    disk=record(),
    lun=record(flags="reservation"),
)
_INTERFACE = record(
    "name",
    texts="name model",
    binding=record("name", texts="name"),
    bridge=record(),
    masquerade=record(),
    passt=record(),
    sriov=record(),
)
DEVICE = record(texts="name deviceName claimName requestName")
LAUNCH_SECURITY = record(sev=record(policy=record(flags="encryptedState")), snp=record(), tdx=record())
CPU_FEATURES = each(record("name", texts="name policy"))
_CPU = record(
    texts="model",
    wholes="cores maxSockets sockets threads",
    flags="dedicatedCpuPlacement isolateEmulatorThread",
    features=CPU_FEATURES,
    numa=record(guestMappingPassthrough=record()),
    realtime=record(),
)
_DOMAIN = record(
    texts="ioThreadsPolicy",
    cpu=_CPU,
    devices=record(
        flags="autoattachGraphicsDevice autoattachPodInterface autoattachSerialConsole autoattachVSOCK "
        "blockMultiQueue logSerialConsole networkInterfaceMultiqueue",
        disks=each(_DISK),
        filesystems=NAMED,
        gpus=each(DEVICE),
        hostDevices=each(DEVICE),
        interfaces=each(_INTERFACE),
        tpm=record(flags="enabled persistent"),
    ),
    features=record(hyperv=HYPERV, hypervPassthrough=_SWITCH),
    firmware=record(
        bootloader=record(efi=record(flags="persistent secureBoot")),
        kernelBoot=record(container=record(texts="image imagePullPolicy")),
    ),
    ioThreads=record(wholes="supplementalPoolThreadCount"),
    launchSecurity=LAUNCH_SECURITY,
    machine=record(texts="type"),
    memory=record(
        amounts="guest maxGuest", hugepages=record(amounts="pageSize"), reservedOverhead=record(amounts="addedOverhead")
    ),
    resources=record(flags="overcommitGuestOverhead", requests=AMOUNTS, limits=AMOUNTS),
)
_CLAIM = record("claimName", texts="claimName", flags="readOnly hotpluggable")
_VOLUME = record(
    "name",
    texts="name",
    containerDisk=record("image", texts="image imagePullPolicy"),
    containerPath=record(texts="path"),
    dataVolume=record("name", texts="name", flags="hotpluggable"),
    ephemeral=record("persistentVolumeClaim", persistentVolumeClaim=_CLAIM),
    hostDisk=record("path", texts="path type", amounts="capacity", flags="shared"),
    memoryDump=_CLAIM,
    persistentVolumeClaim=_CLAIM,
)
_PROBE = record(exec=record(), guestAgentPing=record(), httpGet=record(), tcpSocket=record())
_VMI_SPEC = record(
    texts="architecture evictionStrategy hostname priorityClassName schedulerName startStrategy",
    wholes="terminationGracePeriodSeconds",
    affinity=AFFINITY,
    domain=_DOMAIN,
    livenessProbe=_PROBE,
    networks=each(record("name", texts="name", pod=record(), multus=record("networkName", texts="networkName"))),
    nodeSelector=LABELS,
    readinessProbe=_PROBE,
    resourceClaims=NAMED,
    tolerations=TOLERATIONS,
    topologySpreadConstraints=SPREAD,
    utilityVolumes=each(record("name", texts="name claimName")),
    volumes=each(_VOLUME),
)

_MIGRATION_STATE = record(
    texts="abortStatus endTimestamp failureReason migrationPolicyName migrationUid mode sourceNode sourcePod "
    "startTimestamp targetNode targetPod",
    flags="abortRequested completed failed",
)
_PHASES = each(record("phase", texts="phase phaseTransitionTimestamp"))
_TRACKING = record(texts="state", backupStatus=record(texts="backupName", flags="completed"))
_CLAIM_INFO = record(texts="claimName volumeMode", accessModes=TEXTS, capacity=AMOUNTS)

VMI = resource(
    "spec",
    spec=_VMI_SPEC,
    status=record(
        texts="evacuationNodeName launcherContainerImageVersion migrationMethod migrationTransport nodeName phase "
        "qosClass reason selinuxContext",
        wholes="runtimeUser",
        activePods=LABELS,
        changedBlockTracking=_TRACKING,
        conditions=CONDITIONS,
        currentCPUTopology=record(wholes="cores sockets threads"),
        machine=record(texts="type"),
        memory=record(amounts="guestAtBoot guestCurrent guestRequested"),
        migratedVolumes=each(record("volumeName", texts="volumeName", sourcePVCInfo=_CLAIM_INFO)),
        migrationState=_MIGRATION_STATE,
        phaseTransitionTimestamps=_PHASES,
        topologyHints=record(wholes="tscFrequency"),
        volumeStatus=each(
            record("name", texts="name phase reason", hotplugVolume=record(), persistentVolumeClaimInfo=_CLAIM_INFO)
        ),
    ),
)

# Its name is made of the owner's.
_TEMPLATE = record(
    "spec", metadata=record(texts="name generateName", labels=LABELS, annotations=LABELS), spec=_VMI_SPEC
)
_REVISED = record(texts="kind name", controllerRevisionRef=record(texts="name"))
_MATCHER = record(texts="kind name inferFromVolume revisionName")

VM = resource(
    "spec",
    spec=record(
        "template",
        texts="runStrategy",
        flags="running",
        dataVolumeTemplates=each(record("metadata", metadata=record("name", texts="name"))),
        instancetype=_MATCHER,
        preference=_MATCHER,
        template=_TEMPLATE,
    ),
    status=record(
        texts="printableStatus runStrategy",
        flags="created ready",
        changedBlockTracking=_TRACKING,
        conditions=CONDITIONS,
        instancetypeRef=_REVISED,
        preferenceRef=_REVISED,
    ),
)
VMI_REPLICA_SET = resource(
    "spec",
    spec=record("template", wholes="replicas", flags="paused", selector=LABEL_SELECTOR, template=_TEMPLATE),
    status=record(wholes="replicas readyReplicas", texts="labelSelector", conditions=CONDITIONS),
)
MIGRATION = resource(
    "spec",
    spec=record("vmiName", texts="vmiName priority", addedNodeSelector=LABELS, sendTo=record(), receive=record()),
    status=record(
        texts="phase",
        conditions=CONDITIONS,
        migrationState=_MIGRATION_STATE,
        phaseTransitionTimestamps=_PHASES,
    ),
)
MIGRATION_POLICY = resource(
    spec=record(
        amounts="bandwidthPerMigration",
        wholes="completionTimeoutPerGiB",
        flags="allowAutoConverge allowPostCopy allowWorkloadDisruption",
        selectors=record(namespaceSelector=LABELS, virtualMachineInstanceSelector=LABELS),
    )
)

_CONFIGURATION = record(
    texts="cpuModel defaultRuntimeClass evictionStrategy machineType vmRolloutStrategy vmStateStorageClass "
    "additionalGuestMemoryOverheadRatio",
    amounts="cpuRequest",
    architectureConfiguration=record(
        of=dict.fromkeys("amd64 arm64 ppc64le s390x".split(), record(texts="machineType"))
    ),
    autoCPULimitNamespaceLabelSelector=LABEL_SELECTOR,
    changedBlockTrackingLabelSelectors=record(),
    developerConfiguration=record(
        wholes="cpuAllocationRatio memoryOvercommit minimumClusterTSCFrequency",
        flags="useEmulation",
        featureGates=TEXTS,
        nodeSelectors=LABELS,
    ),
    hypervisors=each(record("name", texts="name")),
    liveUpdateConfiguration=record(wholes="maxCpuSockets maxHotplugRatio", amounts="maxGuest"),
    migrations=record(
        texts="network nodeDrainTaintKey",
        wholes="completionTimeoutPerGiB parallelMigrationsPerCluster parallelOutboundMigrationsPerNode progressTimeout "
        "utilityVolumesTimeout",
        amounts="bandwidthPerMigration",
        flags="allowAutoConverge allowPostCopy allowWorkloadDisruption disableTLS matchSELinuxLevelOnMigration "
        "unsafeMigrationOverride",
    ),
    network=record(
        texts="defaultNetworkInterface",
        flags="permitBridgeInterfaceOnPodNetwork",
        binding=every(
            record(
                texts="sidecarImage networkAttachmentDefinition domainAttachmentType",
                computeResourceOverhead=RESOURCES,
                migration=record(),
            )
        ),
    ),
    permittedHostDevices=record(
        of=dict.fromkeys(
            "pciHostDevices mediatedDevices usb".split(), each(record("resourceName", texts="resourceName"))
        )
    ),
    supportContainerResources=each(record("type", texts="type", resources=RESOURCES)),
    virtualMachineOptions=record(disableSerialConsoleLog=record()),
)
KUBEVIRT = resource(
    spec=record(configuration=_CONFIGURATION, workloadUpdateStrategy=record(workloadUpdateMethods=TEXTS)),
    status=record(
        texts="phase observedKubeVirtVersion targetKubeVirtVersion operatorVersion defaultArchitecture",
        conditions=CONDITIONS,
    ),
)
