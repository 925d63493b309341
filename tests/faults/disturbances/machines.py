# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs, their owners and their migrations."""

from __future__ import annotations

from faults.disturbances.contract import name_of
from faults.invocation import Going
from faults.scene import ENDED, Scene, title
from integration.clusters import KUBEVIRT, MIGRATIONS, VMIS, delete
from testbed.api import ApiError, Object, object_path, resource_path

_MIB = 2**20


def migration_deleted(scene: Scene, _going: Going) -> str:
    flying = [item for item in scene.migrations() if (item.get("status") or {}).get("phase") not in ENDED]
    if not flying:
        return "nothing: no migration in flight"
    item = scene.random.choice(flying)["metadata"]
    delete(scene.api, resource_path(KUBEVIRT, MIGRATIONS, item["namespace"], item["name"]))
    return f"migration {item['name']} deleted"


def migrations_fail(scene: Scene, _going: Going) -> str:
    scene.testbed.inject("migration-failure", "--probability", "0.5", "--for", "10s")
    return "half of all migrations fail for 10 s"


def migrated_by_somebody(scene: Scene, _going: Going) -> str:
    movable = [vmi for vmi in scene.vmis() if title(vmi) in scene.movable]
    vmi = scene.random.choice(movable)["metadata"]
    migration: Object = {
        "apiVersion": KUBEVIRT,
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"generateName": "somebody-", "namespace": vmi["namespace"]},
        "spec": {"vmiName": vmi["name"]},
    }
    try:
        scene.api.create(resource_path(KUBEVIRT, MIGRATIONS, vmi["namespace"]), migration)
    except ApiError as error:
        return f"nothing: {error}"
    return f"somebody migrates {vmi['namespace']}/{vmi['name']}"


def pod_evicted(scene: Scene, _going: Going) -> str:
    """Somebody evicts a VM's pod, upon which KubeVirt evacuates the VM."""
    return scene.evict(scene.random.choice([vmi for vmi in scene.vmis() if title(vmi) in scene.movable]))


def guests_slow(scene: Scene, _going: Going) -> str:
    scene.testbed.inject("slow-migration", "--factor", "10", "--for", "20s")
    return "migrations ten times as slow for 20 s"


def guests_never_converge(scene: Scene, _going: Going) -> str:
    scene.testbed.inject("never-converges", "--for", "20s")
    return "no guest converges for 20 s"


def guest_shut_down(scene: Scene, _going: Going) -> str:
    vmi = scene.random.choice(scene.vmis())
    scene.touched.add(title(vmi))
    scene.testbed.inject("guest-shutdown", "--vmi", title(vmi), "--for", "2s")
    return f"the guest of {title(vmi)} shuts down"


def vm_created(scene: Scene, _going: Going) -> str:
    """Somebody starts a VM that may be anywhere."""
    namespace = scene.random.choice(scene.vmis())["metadata"]["namespace"]
    name = f"newcomer-{scene.random.randrange(10**6)}"
    domain = {"devices": {}, "resources": {"requests": {"memory": str(64 * _MIB)}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"domain": domain, "evictionStrategy": "LiveMigrate"}}
    vm: Object = {
        "apiVersion": KUBEVIRT,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": "Always", "template": template},
    }
    scene.touched.add(title(vm))
    scene.api.create(resource_path(KUBEVIRT, "virtualmachines", namespace), vm)
    scene.extras.append(object_path(vm))
    return f"somebody starts {title(vm)}"


def vm_deleted(scene: Scene, _going: Going) -> str:
    """Its owner deletes a VM's VMI, which starts anew if it is to."""
    vmi = scene.random.choice(scene.vmis())
    scene.touched.add(title(vmi))
    delete(scene.api, resource_path(KUBEVIRT, VMIS, vmi["metadata"]["namespace"], name_of(vmi)))
    return f"{title(vmi)} deleted"


def vm_stopped(scene: Scene, _going: Going) -> str:
    """Its owner switches a VM off."""
    vms = scene.api.items(resource_path(KUBEVIRT, "virtualmachines"))
    running = [vm for vm in vms if vm["spec"].get("runStrategy") == "Always"]
    if not running:
        return "nothing: no VM to switch off"
    vm = scene.random.choice(running)
    scene.touched.add(title(vm))
    scene.stopped.add(title(vm))
    path = resource_path(KUBEVIRT, "virtualmachines", vm["metadata"]["namespace"], name_of(vm))
    scene.api.patch(path, {"spec": {"runStrategy": "Halted"}})
    return f"{title(vm)} switched off by its owner"


def vm_relabelled(scene: Scene, _going: Going) -> str:
    vmi = scene.random.choice(scene.vmis())
    path = resource_path(KUBEVIRT, VMIS, vmi["metadata"]["namespace"], name_of(vmi))
    scene.api.patch(path, {"metadata": {"labels": {"faults/somebody": "was-here"}}})
    return f"{title(vmi)} got a label"
