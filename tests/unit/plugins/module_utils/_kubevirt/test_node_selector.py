# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.node_selector import (
    node_selector,
    own_node_selector,
)

from unit.plugins.module_utils._kubevirt.machines import vmi

ORDINARY = {"kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
STRICT = Configuration(feature_gates=frozenset({"HypervStrictCheck"}))

# What a domain adds to the ordinary selector: keys of labels that must be true.
DOMAINS: list[tuple[dict[str, Any], set[str]]] = [
    ({"cpu": {"model": "host-model"}}, set()),
    ({"cpu": {"model": "host-passthrough"}}, set()),
    ({"cpu": {"model": "Haswell"}}, {"cpu-model.node.kubevirt.io/Haswell"}),
    ({"cpu": {"model": "host-model", "features": [{"name": "aes"}]}}, {"cpu-feature.node.kubevirt.io/aes"}),
    (
        {"cpu": {"model": "host-model", "features": [{"name": "aes", "policy": "require"}]}},
        {"cpu-feature.node.kubevirt.io/aes"},
    ),
    ({"cpu": {"model": "host-model", "features": [{"name": "aes", "policy": "optional"}]}}, set()),
    # Without a model KubeVirt does not read the features.
    ({"cpu": {"features": [{"name": "aes"}]}}, set()),
    ({"cpu": {"dedicatedCpuPlacement": True}}, {"kubevirt.io/cpumanager"}),
    ({"cpu": {"realtime": {}}}, {"kubevirt.io/realtime"}),
    ({"machine": {"type": "q35"}}, {"machine-type.node.kubevirt.io/q35"}),
    ({"launchSecurity": {"sev": {}}}, {"kubevirt.io/sev"}),
    ({"launchSecurity": {"sev": {"policy": {"encryptedState": True}}}}, {"kubevirt.io/sev", "kubevirt.io/sev-es"}),
    ({"launchSecurity": {"snp": {}}}, {"kubevirt.io/sev", "kubevirt.io/sev-snp"}),
    ({"launchSecurity": {"tdx": {}}}, {"kubevirt.io/tdx"}),
]


@pytest.mark.parametrize(("domain", "keys"), DOMAINS)
def test_labels_that_a_domain_needs(domain: dict[str, Any], keys: set[str]) -> None:
    found = node_selector(vmi(domain=domain), Configuration())
    assert found == ORDINARY | dict.fromkeys(keys, "true")


def test_secure_execution_is_of_one_architecture() -> None:
    found = node_selector(vmi(architecture="s390x", domain={"launchSecurity": {}}), Configuration())
    assert found["kubevirt.io/s390-pv"] == "true"


def test_the_vmi_wins_over_the_configuration_and_that_over_kubevirt() -> None:
    configured = Configuration(node_selectors={"kubernetes.io/arch": "arm64", "pool": "vms", "rack": "1"})
    found = node_selector(vmi(nodeSelector={"rack": "2", "kubevirt.io/schedulable": "maybe"}), configured)
    assert found == {"kubevirt.io/schedulable": "maybe", "kubernetes.io/arch": "arm64", "pool": "vms", "rack": "2"}


def test_without_the_configuration_the_rest_is_known() -> None:
    assert own_node_selector(vmi(nodeSelector={"rack": "2"})) == ORDINARY | {"rack": "2"}


def test_the_machine_that_libvirt_reports_is_asked_for() -> None:
    machine = vmi(domain={"machine": {"type": "q35"}}, status={"machine": {"type": "pc-q35-rhel9.6.0"}})
    assert "machine-type.node.kubevirt.io/pc-q35-rhel9.6.0" in own_node_selector(machine)
    assert "machine-type.node.kubevirt.io/q35" not in own_node_selector(machine)


HYPERV = {
    "vpindex": {"enabled": True},
    "synictimer": {"enabled": True, "direct": {}},
    "ipi": {"enabled": False},
    "vapic": {"enabled": True},
    "evmcs": {},
}


def test_hyperv_counts_only_where_it_is_checked() -> None:
    machine = vmi(domain={"features": {"hyperv": HYPERV}})
    assert own_node_selector(machine) == ORDINARY
    assert node_selector(machine, STRICT) == ORDINARY | {
        "hyperv.node.kubevirt.io/vpindex": "true",
        "hyperv.node.kubevirt.io/synictimer": "true",
        "cpu-vendor.node.kubevirt.io/Intel": "true",
    }


@pytest.mark.parametrize(
    ("domain", "wanted"),
    [
        ({"cpu": {"model": "host-model", "features": [{"name": "invtsc", "policy": "force"}]}}, True),
        # An empty policy requires the feature, but KubeVirt's check of the clock does not know it.
        ({"cpu": {"model": "host-model", "features": [{"name": "invtsc"}]}}, False),
        ({"features": {"hyperv": {"reenlightenment": {"enabled": True}}}}, True),
        ({"features": {"hyperv": {"reenlightenment": {}}}}, False),
    ],
)
def test_the_clock_that_the_guest_was_started_with(domain: dict[str, Any], wanted: bool) -> None:
    machine = vmi(domain=domain, status={"topologyHints": {"tscFrequency": 2500000000}})
    found = own_node_selector(machine).get("scheduling.node.kubevirt.io/tsc-frequency-2500000000")
    assert (found == "true") == wanted
