# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a migration's target pod asks of a node's CPU because of the CPU that the guest runs on.

Follows createTargetPod, prepareNodeSelectorForHostCpuModel and getHostCpuModelFromMap in
pkg/virt-controller/watch/migration/migration.go.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.no_target_pod import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

Selector = dict[str, str]

_SIGNS_OF_A_MIGRATION = (labels.CPU_FEATURE, labels.HOST_MODEL_MIGRATION)


def with_source_cpu(
    selector: Selector, vmi: Object, source_pod: Object, source_node: Object | None
) -> Selector | NoTargetPod:
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


def _host_model(source_pod: Object, source_node: Object) -> Selector | NoTargetPod:
    """The CPU that the guest has seen since it was started.

    A pod that names a model or features is taken for one that has been migrated, and asks for the same again. The first
    pod of a VMI that requires features is mistaken for one: the model of its node is not asked for.
    """
    before: Selector = source_pod["spec"].get("nodeSelector") or {}
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


def _labels(node: Object) -> Selector:
    return node["metadata"].get("labels") or {}


def _vendor(found: Selector) -> str:
    """The label that names a CPU's vendor, or nothing; of several, which no real node has, KubeVirt takes any."""
    return min((key for key in found if key.startswith(labels.CPU_VENDOR)), default="")


def _missing(vmi: Object) -> NoTargetPod:
    name = (vmi.get("status") or {}).get("nodeName")
    if not name:
        return NoTargetPod("source-node-unknown", "it runs on no node", "wait until it runs")
    return NoTargetPod("source-node-unknown", f"its node {name} does not exist", "restart it")
