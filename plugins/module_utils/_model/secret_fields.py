# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a secret can stand in a VMI, or in a template of one: no snapshot keeps it, no result shows it.

Follows VirtualMachineInstanceSpec in kubevirt.io/api/core/v1. Names of Secrets are none.
"""

from __future__ import annotations

IGNITION = "kubevirt.io/ignitiondata"
# A JSON list of sidecars with their arguments.
HOOK_SIDECARS = "hooks.kubevirt.io/hookSidecars"
# All that kubectl applied, as text.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

SECRET_ANNOTATIONS = frozenset({IGNITION, HOOK_SIDECARS, LAST_APPLIED})

# Each of them is called so for one purpose only.
SECRET_FIELDS = frozenset(
    {
        # Of cloud-init.
        "userData",
        "userDataBase64",
        "networkData",
        "networkDataBase64",
        # Of a kernel that is booted directly.
        "kernelArgs",
        # Of SEV: what the owner of the guest has agreed upon with the processor.
        "session",
        "dhCert",
        # Of probes: passwords in arguments, tokens in headers.
        "command",
        "httpHeaders",
    }
)
