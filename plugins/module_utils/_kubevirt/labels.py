# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels by which KubeVirt finds nodes and pods. Follows kubevirt.io/api/core/v1/types.go.

Those of nodes come from virt-handler's node labeller; a name with a slash at its end is completed by what is meant.
"""

from __future__ import annotations

from typing import Final

ARCHITECTURE: Final = "kubernetes.io/arch"

SCHEDULABLE: Final = "kubevirt.io/schedulable"
CPU_MANAGER: Final = "kubevirt.io/cpumanager"
REALTIME: Final = "kubevirt.io/realtime"
SEV: Final = "kubevirt.io/sev"
SEV_ES: Final = "kubevirt.io/sev-es"
SEV_SNP: Final = "kubevirt.io/sev-snp"
SECURE_EXECUTION: Final = "kubevirt.io/s390-pv"
TDX: Final = "kubevirt.io/tdx"
OBSOLETE_HOST_MODEL: Final = "node-labeller.kubevirt.io/obsolete-host-model"
CPU_MODEL: Final = "cpu-model.node.kubevirt.io/"
CPU_FEATURE: Final = "cpu-feature.node.kubevirt.io/"
CPU_VENDOR: Final = "cpu-vendor.node.kubevirt.io/"
HYPERV: Final = "hyperv.node.kubevirt.io/"
MACHINE_TYPE: Final = "machine-type.node.kubevirt.io/"
TSC_FREQUENCY: Final = "scheduling.node.kubevirt.io/tsc-frequency-"
# What a node's own CPU is, what it needs for that, and for which nodes' CPUs it can stand in.
HOST_MODEL: Final = "host-model-cpu.node.kubevirt.io/"
HOST_MODEL_FEATURE: Final = "host-model-required-features.node.kubevirt.io/"
HOST_MODEL_MIGRATION: Final = "cpu-model-migration.node.kubevirt.io/"

CREATED_BY: Final = "kubevirt.io/created-by"
MIGRATION_JOB: Final = "kubevirt.io/migrationJobUID"
