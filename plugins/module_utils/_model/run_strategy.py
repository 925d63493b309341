# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a VirtualMachine runs. Follows RunStrategy in kubevirt.io/api/core/v1/types.go."""

from __future__ import annotations

from typing import Final

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

ALWAYS: Final = "Always"
ONCE: Final = "Once"
MANUAL: Final = "Manual"
RERUN_ON_FAILURE: Final = "RerunOnFailure"
HALTED: Final = "Halted"
# By these a VM is started and stopped by request, and its strategy stays what it is.
BY_REQUEST: Final = frozenset({MANUAL, RERUN_ON_FAILURE})


def run_strategy(vm: Object) -> str:
    """Of a VirtualMachine; `running` is an older way to say it."""
    spec = vm.get("spec") or {}
    return str(spec.get("runStrategy") or (ALWAYS if spec.get("running") else HALTED))
