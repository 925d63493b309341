# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod that KubeVirt makes for a migration of a VMI, or why it can make none.

Follows createTargetPod in pkg/virt-controller/watch/migration/migration.go. KubeVirt renders the pod afresh from the
VMI; here the running pod is the base, as it also shows what admission adds. All that can be changed while a VMI runs is
made anew: sizes, runtime class, node selector, affinity, tolerations, spread and labels. What it asks of a node's CPU
because of the CPU that the guest runs on follows prepareNodeSelectorForHostCpuModel and getHostCpuModelFromMap there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import affinity
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.container_disks import with_digests
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.labels import target_labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher import traits
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.admission import (
    merged_affinity,
    merged_spread,
    of_runtime_class,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.containers import IMAGE_VOLUME
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.launcher.vmi import with_identity
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import node_selector
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.target_resources import resized
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    HOSTNAME,
    REQUIRED,
    JsonObject,
    Object,
)

_TOLERATED_BY_ADMISSION = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_NO_SELINUX = "none"
_STATE_OF = "persistent-state-for"
_SHARED = "ReadWriteMany"
# What a pod has been asked for that has been migrated.
_SIGNS_OF_A_MIGRATION = (labels.CPU_FEATURE, labels.HOST_MODEL_MIGRATION)
_LEAST_COLONS = "user:role:type".count(":")

_Selector = dict[str, str]


def target_pod(
    vmi: Object,
    source_pod: Object,
    source_node: Object | None,
    configuration: Configuration,
    namespace: Namespace,
    added_node_selector: Mapping[str, str] | None = None,
) -> JsonObject | NoTargetPod:
    """The v1.Pod as the API server would store it, without a node, a status, or the uid of its migration.

    `source_pod`: see `workloads.py`. `source_node`: the node of the VMI's status, None if there is none.
    `namespace`: the VMI's.

    `added_node_selector`: of the migration; where the VMI's own selector has the same key, KubeVirt takes that one. It
    may change which nodes count for spreading, too: a verdict on the pod without it is not one on the pod with it.
    Parts of the VMI and of the source pod are shared, not copied. Raises `QuantityError`, `SelectorError`.
    """
    vmi = with_identity(vmi, _created_by(source_pod))
    selector = {**(added_node_selector or {}), **node_selector(vmi, configuration)}
    whole_selector = _with_source_cpu(selector, vmi, source_pod, source_node)
    if isinstance(whole_selector, NoTargetPod):
        return whole_selector
    rendered = {**source_pod["spec"], **resized(source_pod["spec"], vmi, configuration, namespace)}
    disks = with_digests(vmi, {**source_pod, "spec": rendered}, configuration.enabled(IMAGE_VOLUME))
    if isinstance(disks, NoTargetPod):
        return disks
    volumes = _volumes_of_target(vmi, disks.get("volumes", rendered.get("volumes") or []))
    if isinstance(volumes, NoTargetPod):
        return volumes
    if problem := _selinux_problem(vmi, configuration):
        return problem
    pod_labels = target_labels(vmi, source_pod)
    wishes = _away_from_itself(affinity(vmi), vmi["metadata"]["uid"])
    before, metadata = source_pod["spec"], source_pod["metadata"]
    spec: JsonObject = {
        **{key: value for key, value in rendered.items() if key != "nodeName"},
        **disks,
        "volumes": volumes,
        "nodeSelector": whole_selector,
        "affinity": merged_affinity(wishes, pod_labels),
        "tolerations": _tolerations(vmi["spec"].get("tolerations") or (), before.get("tolerations") or ()),
        "topologySpreadConstraints": merged_spread(vmi["spec"].get("topologySpreadConstraints") or (), pod_labels),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-launcher-{vmi['metadata']['name']}-target",
            "namespace": metadata.get("namespace") or "default",
            "labels": pod_labels,
            "ownerReferences": metadata.get("ownerReferences") or [],
        },
        "spec": _with_runtime_class(spec, configuration, namespace),
    }


def _created_by(source_pod: Object) -> str:
    """The VMI's uid; empty if the pod was written by hand and does not say it."""
    return (source_pod["metadata"].get("labels") or {}).get(labels.CREATED_BY) or ""


def _with_runtime_class(spec: Object, configuration: Configuration, namespace: Namespace) -> Object:
    """With what admission makes of the RuntimeClass that is configured now; of the running pod's if that is unknown."""
    before = spec.get("runtimeClassName") or ""
    name = configuration.runtime_class if configuration.version else before
    stale = {"runtimeClassName", "overhead"} if name in namespace.runtime_classes or name != before else set()
    kept = {key: value for key, value in spec.items() if key not in stale}
    chosen = {**kept, "runtimeClassName": name} if name else kept
    return {**chosen, **of_runtime_class(chosen, namespace)}


def _selinux_problem(vmi: Object, configuration: Configuration) -> NoTargetPod | None:
    context = (vmi.get("status") or {}).get("selinuxContext") or ""
    if not configuration.migrations.match_selinux_level or context == _NO_SELINUX:
        return None
    remedy = "check that virt-handler runs on its node"
    if not context:
        problem = "its status names no SELinux context, which its target pod would share"
        return NoTargetPod("selinux-context-unknown", problem, remedy)
    if context.count(":") < _LEAST_COLONS:
        problem = f"the SELinux context {context!r} in its status is not one"
        return NoTargetPod("selinux-context-unknown", problem, remedy)
    return None


def _away_from_itself(wishes: Object, uid: str) -> JsonObject:
    """The only thing that keeps the target pod from the node of the source."""
    apart = wishes.get("podAntiAffinity") or {}
    own = {"labelSelector": {"matchLabels": {labels.CREATED_BY: uid}}, "topologyKey": HOSTNAME}
    return {**wishes, "podAntiAffinity": {**apart, REQUIRED: [*(apart.get(REQUIRED) or ()), own]}}


def _tolerations(own: Sequence[Object], before: Sequence[Object]) -> list[Object]:
    """The VMI's, then those that admission gave to the running pod and will give to the new one."""
    given = (entry for entry in before if entry.get("key") in _TOLERATED_BY_ADMISSION)
    return [*own, *(entry for entry in given if entry not in own)]


def _volumes_of_target(vmi: Object, volumes: Sequence[Object]) -> Sequence[Object] | NoTargetPod:
    """Of a running pod's volumes those that the target pod of a migration has, too.

    Unless both pods can mount the claim of the state at once, the target gets a new one, whose name is drawn by lot and
    which does not exist yet: it is left out. Follows handleBackendStorage in migration.go beside the above, and
    CreatePVCForMigrationTarget in pkg/storage/backend-storage/backend-storage.go.
    """
    if not traits.needs_state(vmi):
        return volumes
    for status in (vmi.get("status") or {}).get("volumeStatus") or ():
        claim = status.get("persistentVolumeClaimInfo") or {}
        if status["name"].startswith(_STATE_OF) and claim.get("claimName"):
            shared = (claim.get("accessModes") or [""])[0] == _SHARED
            return volumes if shared else [volume for volume in volumes if _claim(volume) != claim["claimName"]]
    return NoTargetPod(
        "state-claim-unknown",
        "its status names no PersistentVolumeClaim with the state (vTPM, EFI variables) that is to go with it",
        "check that the claim is bound",
    )


def _claim(volume: Object) -> str | None:
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")


def _with_source_cpu(
    selector: _Selector, vmi: Object, source_pod: Object, source_node: Object | None
) -> _Selector | NoTargetPod:
    """The node selector with what makes a node's CPU do for a guest that runs already.

    `selector`: of the target pod, with what its migration adds: a vendor that it names is not looked up.
    """
    named = dict(selector)
    if ((vmi["spec"].get("domain") or {}).get("cpu") or {}).get("model") == "host-model":
        # KubeVirt wants the node even where it does not need it.
        model = _missing(vmi) if source_node is None else _host_model(source_pod, source_node)
        if isinstance(model, NoTargetPod):
            return model
        named |= model
    if _vendor(named):
        return named
    if source_node is None:
        return _missing(vmi)
    vendor = _vendor(_labels(source_node))
    return {**named, vendor: "true"} if vendor else named


def _host_model(source_pod: Object, source_node: Object) -> _Selector | NoTargetPod:
    """The CPU that the guest has seen since it was started.

    A pod that names a model or features is taken for one that has been migrated, and asks for the same again. The first
    pod of a VMI that requires features is mistaken for one: the model of its node is not asked for.
    """
    before: _Selector = source_pod["spec"].get("nodeSelector") or {}
    again = {key: value for key, value in before.items() if any(sign in key for sign in _SIGNS_OF_A_MIGRATION)}
    if again:
        return again
    models, features = (
        {key.removeprefix(prefix): value for key, value in _labels(source_node).items() if key.startswith(prefix)}
        for prefix in (labels.HOST_MODEL, labels.HOST_MODEL_FEATURE)
    )
    if not models:
        return NoTargetPod(
            "host-model-unknown",
            f"its node {source_node['metadata']['name']} has no label {labels.HOST_MODEL}<model>, which names the CPU",
            "check that virt-handler runs on the node",
        )
    # A node has one model; of several, KubeVirt takes any.
    model = min(models)
    wanted = {f"{labels.CPU_FEATURE}{feature}": value for feature, value in features.items()}
    return {**wanted, f"{labels.HOST_MODEL_MIGRATION}{model}": models[model]}


def _labels(node: Object) -> _Selector:
    return node["metadata"].get("labels") or {}


def _vendor(found: _Selector) -> str:
    """The label that names a CPU's vendor, or nothing; of several, which no real node has, KubeVirt takes any."""
    return min((key for key in found if key.startswith(labels.CPU_VENDOR)), default="")


def _missing(vmi: Object) -> NoTargetPod:
    name = (vmi.get("status") or {}).get("nodeName")
    if not name:
        return NoTargetPod("source-node-unknown", "it runs on no node", "wait until it runs")
    return NoTargetPod("source-node-unknown", f"its node {name} does not exist", "restart it")
