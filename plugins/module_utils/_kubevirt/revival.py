# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VMI that has come to its end is started again, and by whom.

Follows syncRunStrategy in pkg/virt-controller/watch/vm/vm.go, and watch/replicaset/replicaset.go beside it. VMs of a
VirtualMachinePool follow their own run strategy: the pool only keeps their number.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    VM,
    VMI_REPLICA_SET,
    Workloads,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.owners import controller
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.run_strategy import (
    ALWAYS,
    RERUN_ON_FAILURE,
    run_strategy,
)


@dataclass(frozen=True, slots=True)
class Revival:
    """Whether it is started again (None if that is not known), and a clause that says why. new: by another VMI."""

    starts: bool | None
    reason: str
    new: bool = False


def revival(vmi: Object, workloads: Workloads, *, failed: bool) -> Revival:
    """`failed`: the guest breaks off; else it is shut down in order."""
    owner = controller(vmi)
    if owner is None or owner["kind"] not in (VM, VMI_REPLICA_SET):
        return Revival(False, "nothing that owns it starts it again")
    title, name = f"{owner['kind']} {owner['name']}", f"{vmi['metadata'].get('namespace') or 'default'}/{owner['name']}"
    item = workloads.vm(name) if owner["kind"] == VM else workloads.replica_set(name)
    if item is None:
        return Revival(None, f"{title}, which decides whether it starts again, is not known")
    if item["metadata"].get("deletionTimestamp"):
        return Revival(False, f"{title} is being deleted")
    return _by_vm(title, item, failed) if owner["kind"] == VM else _by_replica_set(title, item)


def _by_vm(title: str, vm: Object, failed: bool) -> Revival:
    strategy = run_strategy(vm)
    if strategy == ALWAYS or (strategy == RERUN_ON_FAILURE and failed):
        return Revival(True, f"{title} starts it again (runStrategy {strategy})")
    if strategy == RERUN_ON_FAILURE:
        reason = f"{title} starts it again only after a failure (runStrategy {strategy}), not when it is shut down"
        return Revival(False, reason)
    return Revival(False, f"{title} does not start it again (runStrategy {strategy})")


def _by_replica_set(title: str, replica_set: Object) -> Revival:
    if (replica_set.get("spec") or {}).get("paused"):
        return Revival(False, f"{title} is paused and starts no other one")
    return Revival(True, f"{title} starts another one in its place", new=True)
