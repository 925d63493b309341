# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of what is read of nodes, pods and namespaces, and of what guards or shapes pods."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import PREFERRED, REQUIRED
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.shapes import (
    Shape,
    amount,
    each,
    every,
    record,
    share,
    text,
)

TEXTS = each(text)
LABELS = every(text)
AMOUNTS = every(amount)

METADATA = record(
    texts="name generateName namespace uid creationTimestamp deletionTimestamp",
    labels=LABELS,
    annotations=LABELS,
    ownerReferences=each(record("kind name", texts="apiVersion kind name uid", flags="controller")),
)
CONDITIONS = each(record("type status", texts="type status reason message"))


def resource(needed: str = "", /, *, texts: str = "", **parts: Shape | str) -> Shape:
    """An object of the API."""
    return record(f"metadata {needed}", of={"metadata": METADATA}, texts=f"apiVersion kind {texts}", **parts)


_REQUIREMENTS = each(record("key operator", texts="key operator", values=TEXTS))
LABEL_SELECTOR = record(matchLabels=LABELS, matchExpressions=_REQUIREMENTS)
NODE_TERM = record(matchExpressions=_REQUIREMENTS, matchFields=_REQUIREMENTS)
NODE_SELECTOR = record("nodeSelectorTerms", nodeSelectorTerms=each(NODE_TERM))

_POD_TERM = record(
    "topologyKey",
    texts="topologyKey",
    labelSelector=LABEL_SELECTOR,
    namespaceSelector=LABEL_SELECTOR,
    namespaces=TEXTS,
    matchLabelKeys=TEXTS,
    mismatchLabelKeys=TEXTS,
)
_POD_AFFINITY = record(
    of={
        REQUIRED: each(_POD_TERM),
        PREFERRED: each(record("weight podAffinityTerm", wholes="weight", podAffinityTerm=_POD_TERM)),
    }
)
AFFINITY = record(
    nodeAffinity=record(
        of={
            REQUIRED: NODE_SELECTOR,
            PREFERRED: each(record("weight preference", wholes="weight", preference=NODE_TERM)),
        }
    ),
    podAffinity=_POD_AFFINITY,
    podAntiAffinity=_POD_AFFINITY,
)
TOLERATIONS = each(record(texts="key operator value effect", wholes="tolerationSeconds"))
SPREAD = each(
    record(
        "maxSkew topologyKey whenUnsatisfiable",
        wholes="maxSkew minDomains",
        texts="topologyKey whenUnsatisfiable nodeAffinityPolicy nodeTaintsPolicy",
        labelSelector=LABEL_SELECTOR,
        matchLabelKeys=TEXTS,
    )
)
RESOURCES = record(requests=AMOUNTS, limits=AMOUNTS, claims=each(record("name", texts="name request")))
NAMED = each(record("name", texts="name"))

NODE = resource(
    spec=record(flags="unschedulable", taints=each(record("key effect", texts="key value effect"))),
    status=record(
        addresses=each(record("type address", texts="type address")),
        allocatable=AMOUNTS,
        capacity=AMOUNTS,
        declaredFeatures=TEXTS,
        conditions=CONDITIONS,
        images=each(record(names=TEXTS, wholes="sizeBytes")),
        nodeInfo=record(
            texts="architecture bootID containerRuntimeVersion kernelVersion kubeletVersion operatingSystem osImage"
        ),
    ),
)

_CONTAINERS = each(
    record(
        "name",
        texts="name image restartPolicy",
        resources=RESOURCES,
        ports=each(record("containerPort", texts="hostIP protocol", wholes="hostPort containerPort")),
        restartPolicyRules=each(record(texts="action")),
    )
)
VOLUME_SOURCES = {
    "awsElasticBlockStore": record("volumeID", texts="volumeID", wholes="partition", flags="readOnly"),
    "azureDisk": record("diskName diskURI", texts="diskName diskURI", flags="readOnly"),
    "azureFile": record("shareName", texts="shareName", flags="readOnly"),
    "cinder": record("volumeID", texts="volumeID", flags="readOnly"),
    "gcePersistentDisk": record("pdName", texts="pdName", wholes="partition", flags="readOnly"),
    "portworxVolume": record("volumeID", texts="volumeID", flags="readOnly"),
    "vsphereVolume": record("volumePath", texts="volumePath"),
}
_VOLUMES = each(
    record(
        "name",
        of=VOLUME_SOURCES,
        texts="name",
        csi=record("driver", texts="driver", flags="readOnly"),
        emptyDir=record(),
        ephemeral=record(
            volumeClaimTemplate=record("spec", spec=record(texts="storageClassName", resources=RESOURCES))
        ),
        hostPath=record("path", texts="path type"),
        image=record(texts="reference"),
        iscsi=record("iqn", texts="targetPortal iqn", wholes="lun", flags="readOnly"),
        persistentVolumeClaim=record("claimName", texts="claimName", flags="readOnly"),
        rbd=record("image monitors", texts="image pool", monitors=TEXTS, flags="readOnly"),
    )
)
_CONTAINER_STATUSES = each(record("name", texts="name imageID", resources=RESOURCES, allocatedResources=AMOUNTS))

POD = resource(
    "spec",
    spec=record(
        texts="nodeName schedulerName priorityClassName preemptionPolicy runtimeClassName restartPolicy",
        wholes="priority terminationGracePeriodSeconds activeDeadlineSeconds",
        flags="hostNetwork hostUsers",
        affinity=AFFINITY,
        containers=_CONTAINERS,
        initContainers=_CONTAINERS,
        nodeSelector=LABELS,
        overhead=AMOUNTS,
        resourceClaims=NAMED,
        resources=RESOURCES,
        schedulingGates=NAMED,
        tolerations=TOLERATIONS,
        topologySpreadConstraints=SPREAD,
        volumes=_VOLUMES,
    ),
    status=record(
        texts="phase reason nominatedNodeName qosClass",
        allocatedResources=AMOUNTS,
        conditions=CONDITIONS,
        containerStatuses=_CONTAINER_STATUSES,
        initContainerStatuses=_CONTAINER_STATUSES,
        resources=RESOURCES,
    ),
)

NAMESPACE = resource(status=record(texts="phase"))

POD_DISRUPTION_BUDGET = resource(
    spec=record(
        texts="unhealthyPodEvictionPolicy",
        minAvailable=share,
        maxUnavailable=share,
        selector=LABEL_SELECTOR,
    ),
    status=record(
        wholes="currentHealthy desiredHealthy disruptionsAllowed expectedPods observedGeneration",
        conditions=CONDITIONS,
    ),
)

_SCOPES = each(record("scopeName operator", texts="scopeName operator", values=TEXTS))
RESOURCE_QUOTA = resource(
    spec=record(hard=AMOUNTS, scopes=TEXTS, scopeSelector=record(matchExpressions=_SCOPES)),
    status=record(hard=AMOUNTS, used=AMOUNTS),
)
LIMIT_RANGE = resource(
    spec=record(
        limits=each(
            record(
                texts="type",
                min=AMOUNTS,
                max=AMOUNTS,
                default=AMOUNTS,
                defaultRequest=AMOUNTS,
                maxLimitRequestRatio=AMOUNTS,
            )
        )
    )
)
PRIORITY_CLASS = resource("value", wholes="value", flags="globalDefault", texts="preemptionPolicy")
RUNTIME_CLASS = resource(
    texts="handler",
    overhead=record(podFixed=AMOUNTS),
    scheduling=record(nodeSelector=LABELS, tolerations=TOLERATIONS),
)
PLAIN = resource()

SERVICE = resource(spec=record(selector=LABELS))
OWNER = resource(
    spec=record(wholes="replicas", selector=LABEL_SELECTOR),
    status=record(wholes="replicas readyReplicas availableReplicas"),
)
# Its selector is a mapping of labels, from before there were others.
REPLICATION_CONTROLLER = resource(
    spec=record(wholes="replicas", selector=LABELS),
    status=record(wholes="replicas readyReplicas availableReplicas"),
)
DAEMON_SET = resource(
    spec=record(selector=LABEL_SELECTOR),
    status=record(wholes="desiredNumberScheduled numberAvailable numberReady"),
)
