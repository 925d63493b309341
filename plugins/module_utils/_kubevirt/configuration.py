# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt's configuration of a cluster, with KubeVirt's own defaults where it says nothing.

Follows pkg/virt-config/virt-config.go and configuration.go of KubeVirt 1.8: the object's configuration is laid over the
defaults; an object without a phase, or one that is being deleted, does not count; a feature gate that is not generally
available is off unless it is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object

DEFAULT_ARCHITECTURE = "amd64"
KVM = "kvm"
LIVE_UPDATE = "LiveUpdate"
# Of the KubeVirt object, and of VMIs that it counts for.
EVEN_PARITY = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"
_MACHINE_TYPES: Mapping[str, str] = {"amd64": "q35", "arm64": "virt", "s390x": "s390-ccw-virtio"}


@dataclass(frozen=True, slots=True)
class Migrations:
    """How VMIs are migrated where no MigrationPolicy says otherwise.

    bandwidth: bytes per second, 0 is no limit. Timeouts in seconds; the one of completion for each GiB of the guest's
    memory and of disks that are copied. match_selinux_level: the target pod gets the source's SELinux level.
    by_priority: a migration's priority counts while it waits, and system-critical is what a drain's get.
    """

    parallel_per_cluster: int = 5
    parallel_outbound_per_node: int = 2
    bandwidth: int = 0
    completion_timeout_per_gib: int = 150
    progress_timeout: int = 150
    utility_volumes_timeout: int = 150
    auto_converge: bool = False
    post_copy: bool = False
    allow_workload_disruption: bool = False
    match_selinux_level: bool = True
    unsafe_override: bool = False
    drain_taint_key: str = "kubevirt.io/drain"
    network: str = ""
    by_priority: bool = False


@dataclass(frozen=True, slots=True)
class SupportContainer:
    """What the configuration asks for the containers of one type that stand beside the guest; quantities as given."""

    requests: Object = field(default_factory=dict)
    limits: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """`version`: of KubeVirt, as v1.8.4; empty if it is not known. namespace: of the KubeVirt object, and of its pods.

    memory_overcommit: per cent of the pod's memory that the guest sees. memory_overhead_ratio: None for 1.

    cpu_allocation_ratio: virtual CPUs for each CPU that is requested. emulator_even_parity: dedicated CPUs are even in
    number. permitted_devices: resource names; None permits all. network_bindings: binding plugins by name.
    auto_cpu_limit_namespaces: a label selector, or None. tracks_changed_blocks: of VMs that are chosen by label.
    max_*: what VMs can grow to while they run, if they do not say it themselves.
    """

    version: str = ""
    namespace: str = ""
    architecture: str = DEFAULT_ARCHITECTURE
    machine_type: str = ""
    machine_types: Mapping[str, str] = field(default_factory=lambda: dict(_MACHINE_TYPES))
    hypervisor: str = KVM
    use_emulation: bool = False
    feature_gates: frozenset[str] = frozenset()
    node_selectors: Mapping[str, str] = field(default_factory=dict)
    cpu_model: str = ""
    cpu_request: str | None = None
    cpu_allocation_ratio: int = 10
    memory_overcommit: int = 100
    memory_overhead_ratio: float | None = None
    minimum_tsc_frequency: int | None = None
    emulator_even_parity: bool = False
    runtime_class: str = ""
    eviction_strategy: str = "None"
    default_network_interface: str = "bridge"
    bridge_on_pod_network: bool = True
    network_bindings: Mapping[str, Object] = field(default_factory=dict)
    permitted_devices: frozenset[str] | None = None
    support_containers: Mapping[str, SupportContainer] = field(default_factory=dict)
    serial_console_log: bool = True
    auto_cpu_limit_namespaces: Object | None = None
    vm_state_storage_class: str = ""
    tracks_changed_blocks: bool = False
    vm_rollout_strategy: str = LIVE_UPDATE
    max_hotplug_ratio: int = 4
    max_cpu_sockets: int = 0
    max_guest: str | None = None
    migrations: Migrations = field(default_factory=Migrations)

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate that is not generally available is on."""
        return gate in self.feature_gates

    def default_machine_type(self, architecture: str) -> str:
        return self.machine_type or self.machine_types.get(architecture) or self.machine_types[DEFAULT_ARCHITECTURE]


def configuration(lists: Lists) -> Configuration:
    """The configuration that counts in the cluster of these lists. Raises `QuantityError`."""
    kubevirt = _effective(lists.get("kubevirts") or ())
    if kubevirt is None:
        return Configuration()
    given: Object = (kubevirt.get("spec") or {}).get("configuration") or {}
    developer: Object = given.get("developerConfiguration") or {}
    network: Object = given.get("network") or {}
    live_update: Object = given.get("liveUpdateConfiguration") or {}
    gates = frozenset(developer.get("featureGates") or ())
    return Configuration(
        version=(kubevirt.get("status") or {}).get("observedKubeVirtVersion") or "",
        namespace=kubevirt["metadata"].get("namespace") or "",
        architecture=(kubevirt.get("status") or {}).get("defaultArchitecture") or "",
        machine_type=given.get("machineType") or "",
        machine_types=_machine_types(given.get("architectureConfiguration") or {}),
        hypervisor=_hypervisor(given, gates),
        use_emulation=bool(developer.get("useEmulation")),
        feature_gates=gates,
        node_selectors=developer.get("nodeSelectors") or {},
        cpu_model=given.get("cpuModel") or "",
        cpu_request=_text(given.get("cpuRequest")),
        cpu_allocation_ratio=_positive(developer.get("cpuAllocationRatio"), 10),
        memory_overcommit=_positive(developer.get("memoryOvercommit"), 100),
        memory_overhead_ratio=_ratio(given.get("additionalGuestMemoryOverheadRatio")),
        minimum_tsc_frequency=developer.get("minimumClusterTSCFrequency"),
        emulator_even_parity="AlignCPUs" in gates and EVEN_PARITY in (kubevirt["metadata"].get("annotations") or {}),
        runtime_class=given.get("defaultRuntimeClass") or "",
        eviction_strategy=given.get("evictionStrategy") or "None",
        default_network_interface=network.get("defaultNetworkInterface") or "bridge",
        bridge_on_pod_network=network.get("permitBridgeInterfaceOnPodNetwork") is not False,
        network_bindings=network.get("binding") or {},
        permitted_devices=_permitted(given.get("permittedHostDevices")),
        support_containers=_support_containers(given.get("supportContainerResources") or ()),
        serial_console_log=(given.get("virtualMachineOptions") or {}).get("disableSerialConsoleLog") is None,
        auto_cpu_limit_namespaces=given.get("autoCPULimitNamespaceLabelSelector"),
        tracks_changed_blocks="IncrementalBackup" in gates and bool(given.get("changedBlockTrackingLabelSelectors")),
        vm_state_storage_class=given.get("vmStateStorageClass") or "",
        vm_rollout_strategy=given.get("vmRolloutStrategy") or LIVE_UPDATE,
        max_hotplug_ratio=live_update.get("maxHotplugRatio") or 4,
        max_cpu_sockets=live_update.get("maxCpuSockets") or 0,
        max_guest=_text(live_update.get("maxGuest")),
        migrations=_migrations(given.get("migrations") or {}, gates),
    )


def _effective(kubevirts: Sequence[Object]) -> Object | None:
    """The object whose configuration KubeVirt follows; of several, which it allows nowhere, the last."""
    found = None
    for kubevirt in kubevirts:
        living = not kubevirt["metadata"].get("deletionTimestamp")
        if living and (kubevirt.get("status") or {}).get("phase"):
            found = kubevirt
    return found


def _migrations(given: Object, gates: frozenset[str]) -> Migrations:
    post_copy = bool(given.get("allowPostCopy"))
    disruption = given.get("allowWorkloadDisruption")
    return Migrations(
        parallel_per_cluster=_given(given, "parallelMigrationsPerCluster", 5),
        parallel_outbound_per_node=_given(given, "parallelOutboundMigrationsPerNode", 2),
        bandwidth=quantity.units(quantity.parse(given.get("bandwidthPerMigration") or 0)),
        completion_timeout_per_gib=_given(given, "completionTimeoutPerGiB", 150),
        progress_timeout=_given(given, "progressTimeout", 150),
        utility_volumes_timeout=_given(given, "utilityVolumesTimeout", 150),
        auto_converge=bool(given.get("allowAutoConverge")),
        post_copy=post_copy,
        allow_workload_disruption=post_copy if disruption is None else bool(disruption),
        match_selinux_level=given.get("matchSELinuxLevelOnMigration") is not False,
        unsafe_override=bool(given.get("unsafeMigrationOverride")),
        drain_taint_key=given.get("nodeDrainTaintKey") or Migrations().drain_taint_key,
        network=given.get("network") or "",
        by_priority="MigrationPriorityQueue" in gates,
    )


def _given(values: Object, name: str, default: int) -> int:
    """A number that may be 0 on purpose."""
    value = values.get(name)
    return default if value is None else int(value)


def _positive(value: int | None, default: int) -> int:
    # KubeVirt takes no other, and keeps what it had before.
    return value if value and value > 0 else default


def _text(amount: object) -> str | None:
    return None if amount is None else str(amount)


def _ratio(text: object) -> float | None:
    try:
        ratio = float(str(text)) if text else math.inf
    except ValueError:
        return None
    return ratio if math.isfinite(ratio) else None


def _machine_types(given: Object) -> dict[str, str]:
    own = {name: (given.get(name) or {}).get("machineType") for name in _MACHINE_TYPES}
    return {name: own[name] or default for name, default in _MACHINE_TYPES.items()}


def _hypervisor(given: Object, gates: frozenset[str]) -> str:
    listed = given.get("hypervisors") or ()
    return str(listed[0]["name"]) if listed and "ConfigurableHypervisor" in gates else KVM


def _permitted(given: Object | None) -> frozenset[str] | None:
    if given is None:
        return None
    lists = (given.get(name) or () for name in ("pciHostDevices", "mediatedDevices", "usb"))
    return frozenset(device["resourceName"] for devices in lists for device in devices)


def _support_containers(given: Sequence[Object]) -> dict[str, SupportContainer]:
    found = {}
    for entry in given:
        resources = entry.get("resources") or {}
        found[entry["type"]] = SupportContainer(resources.get("requests") or {}, resources.get("limits") or {})
    return found
