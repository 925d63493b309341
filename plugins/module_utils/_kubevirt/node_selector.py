# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node selector of a VMI's virt-launcher pods, by KubeVirt's rules.

Follows pkg/virt-controller/services/nodeselectorrenderer.go, newNodeSelectorRenderer in services/template.go, and
watch/topology/tsc.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt import labels
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

_MODELS_OF_THE_HOST = frozenset({"host-model", "host-passthrough"})
# Of features.hyperv, with labels of the same names. What QEMU does without the host's kernel has no label.
_HYPERV = (
    "frequencies",
    "ipi",
    "reenlightenment",
    "reset",
    "runtime",
    "synic",
    "synictimer",
    "tlbflush",
    "vpindex",
)


def node_selector(vmi: Object, configuration: Configuration) -> dict[str, str]:
    """Node labels by key, as in the node selector of the VMI's virt-launcher pods."""
    spec, status = vmi["spec"], vmi.get("status") or {}
    selector = {labels.SCHEDULABLE: "true"}
    if spec.get("architecture"):
        selector[labels.ARCHITECTURE] = spec["architecture"].lower()
    selector.update(configuration.node_selectors)
    selector.update(spec.get("nodeSelector") or {})
    selector.update(dict.fromkeys(_required(vmi, status, configuration), "true"))
    return selector


def own_node_selector(vmi: Object) -> dict[str, str]:
    """The same without what only the cluster's configuration brings about, for who does not know it."""
    return node_selector(vmi, Configuration())


def _required(vmi: Object, status: Object, configuration: Configuration) -> Iterator[str]:
    """Keys of labels that have to be `true`, whatever the selectors say."""
    domain = vmi["spec"].get("domain") or {}
    cpu = domain.get("cpu") or {}
    if cpu.get("dedicatedCpuPlacement"):
        yield labels.CPU_MANAGER
    if configuration.enabled("HypervStrictCheck"):
        yield from _hyperv(domain)
    yield from _cpu(cpu)
    # libvirt's own name for the machine, once it has one, is stricter than the name in the specification.
    machine = (status.get("machine") or {}).get("type") or (domain.get("machine") or {}).get("type")
    if machine:
        yield f"{labels.MACHINE_TYPE}{machine}"
    if frequency := _tsc_frequency(domain, status):
        yield f"{labels.TSC_FREQUENCY}{frequency}"
    if cpu.get("realtime") is not None:
        yield labels.REALTIME
    yield from _launch_security(domain.get("launchSecurity"), vmi["spec"].get("architecture") or "")


def _cpu(cpu: Object) -> Iterator[str]:
    # KubeVirt reads the features only of a VMI with a model, which its webhook gives to each.
    if not cpu.get("model"):
        return
    if cpu["model"] not in _MODELS_OF_THE_HOST:
        yield f"{labels.CPU_MODEL}{cpu['model']}"
    for feature in cpu.get("features") or ():
        if feature.get("policy", "") in ("", "require"):
            yield f"{labels.CPU_FEATURE}{feature['name']}"


def _hyperv(domain: Object) -> Iterator[str]:
    features = (domain.get("features") or {}).get("hyperv") or {}
    for name in _HYPERV:
        if (features.get(name) or {}).get("enabled"):
            yield f"{labels.HYPERV_LABEL}{name}"
    evmcs = features.get("evmcs")
    if evmcs is not None and evmcs.get("enabled") is not False:
        yield f"{labels.CPU_VENDOR}Intel"


def _tsc_frequency(domain: Object, status: Object) -> int:
    """In hertz; 0 if any will do. KubeVirt notes in the status which one the VMI was started with."""
    features = (domain.get("cpu") or {}).get("features") or ()
    invariant = any(entry["name"] == "invtsc" and entry.get("policy") in ("require", "force") for entry in features)
    hyperv = (domain.get("features") or {}).get("hyperv") or {}
    if not invariant and not (hyperv.get("reenlightenment") or {}).get("enabled"):
        return 0
    return int((status.get("topologyHints") or {}).get("tscFrequency") or 0)


def _launch_security(given: Object | None, architecture: str) -> Iterator[str]:
    if given is None:
        return
    if given.get("sev") is not None or given.get("snp") is not None:
        yield labels.SEV
    if ((given.get("sev") or {}).get("policy") or {}).get("encryptedState"):
        yield labels.SEV_ES
    if given.get("snp") is not None:
        yield labels.SEV_SNP
    if architecture == "s390x":
        yield labels.SECURE_EXECUTION
    if given.get("tdx") is not None:
        yield labels.TDX
