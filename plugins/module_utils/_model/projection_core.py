# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of nodes, pods and namespaces, and of what guards or shapes pods.

The scheduler's plugins read most of it; the rest decides what a drain may do with a pod (owners, mirror pods, volumes
that die with the pod) and what admission adds to a pod that is created anew (quotas, limit ranges, classes).
"""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.projection import (
    conditions,
    each,
    explained_condition,
    fields,
    keys,
    more_than,
    resource,
    typed,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.resources import KUBEVIRTS_DEVICES

NODE = resource(
    # virt-handler renews its heartbeat each minute; whether it is alive stands in label kubevirt.io/schedulable.
    # Who maintains the node stands in the collection's own annotation.
    annotations=keys(
        "virtops.kubevirt/maintenance",
        prefixes=("kubevirt.io/", "node-labeller.kubevirt.io/"),
        but=("kubevirt.io/heartbeat",),
    ),
    spec=fields("unschedulable", taints=each(fields("key value effect"))),
    status=fields(
        "allocatable declaredFeatures",
        # By it a device that the node lacks is told from one that has yet to come back after a restart.
        capacity=keys(prefixes=(KUBEVIRTS_DEVICES,)),
        conditions=conditions,
        images=each(fields("names sizeBytes")),
        nodeInfo=fields("architecture bootID kubeletVersion operatingSystem"),
    ),
)

_CONTAINER = fields(
    "name image restartPolicy restartPolicyRules resources",
    ports=each(fields("hostIP hostPort containerPort protocol")),
)

# Volumes that tie a pod to nodes or to other pods, images that a node may hold, and what a drain would destroy.
VOLUME = fields(
    "name emptyDir persistentVolumeClaim",
    awsElasticBlockStore=fields("volumeID partition readOnly"),
    azureDisk=fields("diskName diskURI readOnly"),
    azureFile=fields("shareName readOnly"),
    cinder=fields("volumeID readOnly"),
    csi=fields("driver readOnly"),
    ephemeral=fields(volumeClaimTemplate=fields(spec=fields("storageClassName accessModes resources volumeMode"))),
    gcePersistentDisk=fields("pdName partition readOnly"),
    hostPath=fields("path type"),
    image=fields("reference"),
    iscsi=fields("targetPortal iqn lun readOnly"),
    portworxVolume=fields("volumeID readOnly"),
    rbd=fields("monitors image pool readOnly"),
    vsphereVolume=fields("volumePath"),
)

_CONTAINER_STATUS = fields("name resources allocatedResources")
_DISK_STATUS = fields("name resources allocatedResources imageID")


def _container_status(value: Any) -> Any:
    """Only of container disks KubeVirt wants the very image again, and their containers are called after them."""
    of_a_disk = value is not None and str(value.get("name")).startswith("volume")
    return (_DISK_STATUS if of_a_disk else _CONTAINER_STATUS)(value)


POD = resource(
    annotations=keys(
        "kubernetes.io/config.mirror", "kubevirt.io/memory-overhead-bytes", "kubevirt.io/migrationJobName"
    ),
    spec=fields(
        "nodeName nodeSelector affinity tolerations topologySpreadConstraints schedulerName schedulingGates "
        "schedulingGroup priority priorityClassName preemptionPolicy overhead resources resourceClaims "
        "runtimeClassName restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds hostNetwork hostUsers",
        containers=each(_CONTAINER),
        initContainers=each(_CONTAINER),
        volumes=each(VOLUME, more_than("name")),
    ),
    status=fields(
        "phase reason nominatedNodeName resources allocatedResources qosClass resourceClaimStatuses "
        "extendedResourceClaimStatus nodeAllocatableResourceClaimStatuses",
        conditions=each(explained_condition, typed("PodScheduled", "Ready", "PodResizePending", "DisruptionTarget")),
        containerStatuses=each(_container_status, more_than("name")),
        initContainerStatuses=each(_container_status, more_than("name")),
    ),
)

NAMESPACE = resource(
    # Admission merges these into every new pod of the namespace.
    annotations=keys(
        "openshift.io/node-selector",
        "scheduler.alpha.kubernetes.io/defaultTolerations",
        "scheduler.alpha.kubernetes.io/node-selector",
    ),
    status=fields("phase"),
)

POD_DISRUPTION_BUDGET = resource(
    spec=fields("minAvailable maxUnavailable selector unhealthyPodEvictionPolicy"),
    status=fields(
        "currentHealthy desiredHealthy disruptionsAllowed expectedPods observedGeneration", conditions=conditions
    ),
)

RESOURCE_QUOTA = resource(spec=fields("hard scopes scopeSelector"), status=fields("hard used"))
LIMIT_RANGE = resource(spec=fields("limits"))
PRIORITY_CLASS = resource("value globalDefault preemptionPolicy")
# By it the definition of a network names the device that a pod needs for it; its configuration may hold secrets.
NETWORK_ATTACHMENT_DEFINITION = resource(annotations=keys("k8s.v1.cni.cncf.io/resourceName"))
RUNTIME_CLASS = resource("handler overhead scheduling")

# The owners of pods. The scheduler spreads pods of one owner by its selector where no constraint of theirs says how.
SERVICE = resource(spec=fields("selector"))
OWNER = resource(
    spec=fields("replicas selector"),
    status=fields("replicas readyReplicas availableReplicas"),
)
DAEMON_SET = resource(
    spec=fields("selector"),
    status=fields("desiredNumberScheduled numberAvailable numberReady"),
)
